// SPDX-License-Identifier: MIT
//
// A model that tells pictures apart, as attacks see it, and the pictures it is attacked on. Pictures
// are pixels (B, 3, H, W) in [0, 1]; what the network itself reads are normalized pixels,
// (pixel - mean) / std per channel. Attacks of the strict profile change pixels, those of the
// published profile change normalized pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "elliptical/tasks/task.h"

namespace elliptical::tasks {

/// An evaluation of pictures that have one class each.
class PictureSet : public EvalSet {
 public:
  /// Of the targets, which are numbers of classes.
  virtual std::vector<std::string> class_names() const = 0;
  /// Which outputs of a classifier the classes of the data are, in their order; empty: all.
  virtual std::vector<int64_t> class_columns() const { return {}; }
  /// How many are read, each once for every kind of damage, always in this order.
  virtual int64_t num_pictures() const = 0;
  /// The number in the data set of the picture at a place of that order. What is random about a
  /// picture depends on it, and not on which other pictures are read.
  virtual int64_t picture_number(int64_t place) const { return place; }
  /// In how many parts pictures are also counted apart, 0: none; which one a place belongs to.
  virtual int64_t num_blocks() const { return 0; }
  virtual int64_t block_of(int64_t /*place*/) const { return 0; }
};

class Classifier {
 public:
  virtual ~Classifier() = default;
  /// How they are read is said in `options`, the evaluation options of the task.
  virtual std::unique_ptr<PictureSet> picture_set(Options& options) = 0;
  virtual int64_t num_classes() const = 0;
  /// What the network itself reads; a batch of it is prepared (Batch). Task::forward takes both, and
  /// has a gradient for both.
  virtual at::Tensor normalize(const at::Tensor& pixels) const = 0;
};

}  // namespace elliptical::tasks
