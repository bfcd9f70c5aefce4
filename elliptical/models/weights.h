// SPDX-License-Identifier: MIT
//
// Pretrained weights by name: into a model that may read pictures of another size or tell other
// classes apart than the one they were trained with.
//
// - Positions are resized on their grid (bicubic, align_corners = false); those of class tokens
//   stay. So are the gates of position-aware attention, along both grids.
// - Heads for another number of classes keep their first values.
// - Parameters of an attention variant that the weights know nothing about (a bandwidth, a gate)
//   keep their first values.
//
// What was not simply copied is said in notices. Anything else that does not fit is one DataError
// that lists all of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "elliptical/models/image_model.h"

namespace elliptical::models {

/// Copies `weights`, of any floating type, into the model. `source` opens messages. Returns the
/// notices.
std::vector<std::string> load_weights(ImageModel& model,
                                      const std::map<std::string, at::Tensor>& weights,
                                      const std::string& source);

/// Positions (1, prefix + g^2, C) for another grid: (1, num_tokens, C). Both parts behind the
/// prefix must be squares.
at::Tensor resize_positions(const at::Tensor& positions, int64_t num_prefix, int64_t num_tokens);

/// Gates (H, N, N), N = prefix + g^2, for another grid, along queries and keys.
at::Tensor resize_gates(const at::Tensor& gates, int64_t num_prefix, int64_t num_tokens);

}  // namespace elliptical::models
