// SPDX-License-Identifier: MIT
//
// snapshot.safetensors of runs, made small enough for a page. Maps of attention keep one byte a
// weight (its square root, relative to the largest of the head), queries, keys and metrics two
// bytes a number (relative to the largest of the layer). Long texts: maps are averaged over cells
// of neighbouring tokens, so that rows still sum to one; queries, keys and metrics are of the first
// tokens only. Of pictures this is the first one, patch by patch; heat_maps.h has the others.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elliptical/report/run_data.h"

namespace elliptical::report {

/// Bytes that all snapshots of a page may have together.
inline constexpr size_t kSnapshotBytes = 1'700'000;

/// One object for each chosen run that has a snapshot of text, or one of pictures with whole maps:
///   run, step, split, words (of all tokens) or prefix (tokens in front of a square of patches),
///   layers: [{heads, dim, tokens, cell (tokens of a cell of a map), shown (tokens that have
///   queries), map, map_scales, weights, weight_scales, queries, query_scale, keys, key_scale,
///   metric, metric_scale}]
/// Bytes are base64, numbers little endian. `weights` are the maps of the `shown` tokens without
/// cells; absent where they are the maps. `metric` is absent where there is none. What can not be
/// read is named in `problems`.
nlohmann::json read_snapshots(const std::vector<RunData>& runs,
                              const std::vector<size_t>& chosen,
                              std::vector<std::string>& problems,
                              size_t max_bytes = kSnapshotBytes);

std::string base64(std::string_view bytes);

}  // namespace elliptical::report
