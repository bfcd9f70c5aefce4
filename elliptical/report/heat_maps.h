// SPDX-License-Identifier: MIT
//
// Where classifiers of pictures look, from snapshot.safetensors of runs (docs/records.md): pictures
// (P, 3, S, S), heat maps (P, H, G, G) of each layer and attention rollout (P, G, G). Runs that saw
// the same pictures share them, so that methods can be shown side by side.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elliptical/report/run_data.h"

namespace elliptical::report {

/// Bytes that the maps of a page may have together, and pictures of a page.
inline constexpr size_t kHeatMapBytes = 700'000, kMaxHeatPictures = 8;

/// {pictures: [{name, number, side, pixels}], runs: [{run, data, split, grid (of the rollout),
///   layers: [{heads, grid, maps, scales}], shown: [{picture, said, rollout, scale}]}]}
/// `pixels` are bytes (side, side, 3); the `maps` of a layer are bytes (shown, 1 + heads, grid,
/// grid), the mean over heads first, square roots in 254ths of the `scales` (shown * (1 + heads)),
/// 255 what is no number; `rollout` is packed alike. All bytes are base64. Where bytes are short,
/// `heads` is 0: the mean is left; then pictures are left out. Runs that have no heat maps are left
/// out, what can not be read is named in `problems`.
nlohmann::json read_heat_maps(const std::vector<RunData>& runs,
                              const std::vector<size_t>& chosen,
                              std::vector<std::string>& problems,
                              size_t max_bytes = kHeatMapBytes);

}  // namespace elliptical::report
