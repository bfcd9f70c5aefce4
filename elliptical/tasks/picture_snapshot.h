// SPDX-License-Identifier: MIT
//
// Where a classifier of pictures looks. The heat map of a layer is what its class token attends to,
// patch by patch; a model without class token has the mean over all queries instead. Attention
// rollout (Abnar and Zuidema, ACL 2020) follows attention through all layers, with a half for the
// residual connection:
//
//   A_l' = rows of (mean over heads A_l + I) / 2, scaled to sum 1;    R = A_L' ... A_1'    (N, N)
//
// In a model whose later layers have fewer tokens it follows the last layers that have equally
// many. It says where attention goes, not what the model makes of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "elliptical/models/image_model.h"
#include "elliptical/tasks/image_evaluation.h"
#include "elliptical/tasks/task.h"

namespace elliptical::tasks {

/// Pictures of a snapshot, tokens that a model may have for one, and bytes of the whole maps of the
/// first picture, beyond which they are left out.
inline constexpr int64_t kSnapshotPictures = 4, kMaxSnapshotTokens = 1024,
                         kMaxTraceBytes = int64_t{64} << 20;

/// Maps (H, N, N) of layers, first to last -> R (N, N), double.
at::Tensor attention_rollout(const std::vector<at::Tensor>& maps);

/// Maps (.., N, N) -> (.., G, G), what each patch gets of the first token, or of the mean over all
/// tokens where `num_prefix`, the number of tokens in front of the G G patches, is 0.
at::Tensor heat_map(const at::Tensor& maps, int64_t num_prefix);

/// The heat maps of one picture.
struct PictureHeat {
  std::vector<at::Tensor> layers;  ///< (H, G, G)
  at::Tensor rollout;              ///< (G, G), of the last layer's grid
};

/// Of a trace with B = 1; nothing where it has no maps.
std::optional<PictureHeat> picture_heat(const nn::Trace& trace, int64_t num_prefix);

/// The first pictures of different classes, `kSnapshotPictures` at most, of a set that reads one
/// undamaged picture at a time (docs/records.md says what is in it), as the task's model sees them.
Snapshot picture_snapshot(Task& task, const models::ImageModel& model, const ImageEvalSet& set);

}  // namespace elliptical::tasks
