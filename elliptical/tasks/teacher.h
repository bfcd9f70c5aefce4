// SPDX-License-Identifier: MIT
//
// A trained model that the second head of another one learns from (DeiT's distillation), with z the
// head's logits and t the teacher's:
//
//   hard   -log softmax(z)_argmax(t)
//   soft   tau^2 KL(softmax(t / tau) || softmax(z / tau)), averaged over pictures and classes
//
// It is a run folder, which says what model it is, or a safetensors file of the model that the
// options describe. It sees the same augmented and mixed pictures, without gradient, resized
// (bicubic) where it reads another size.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/base/options.h"
#include "elliptical/models/image_model.h"

namespace elliptical::tasks {

enum class TeacherKind { kNone, kHard, kSoft };
std::string_view to_string(TeacherKind kind);

struct TeacherOptions {
  TeacherKind kind = TeacherKind::kNone;
  std::string weights;
  double share = 0.5;
  double temperature = 1.0;
  ChosenOptions model{models::image_model_choices(), "vit"};  ///< of a file; a run has its own

  void visit(FieldList& fields);
};

class Teacher {
 public:
  /// Throws ConfigError unless it has these classes, DataError when its weights can not be read.
  /// `kind` is not kNone. `notice` hears which checkpoints of a run are damaged.
  Teacher(const TeacherOptions& options, int64_t num_classes, const Notice& notice);

  /// logits (B, K) of the second head, pixels (B, 3, S, S) in [0, 1] -> scalar.
  at::Tensor loss(const at::Tensor& logits, const at::Tensor& pixels) const;

 private:
  at::Tensor say(const at::Tensor& pixels) const;

  TeacherOptions options_;
  std::shared_ptr<models::ImageModel> model_;
  at::Tensor mean_, std_;  ///< (3, 1, 1)
};

}  // namespace elliptical::tasks
