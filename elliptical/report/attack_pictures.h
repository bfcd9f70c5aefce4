// SPDX-License-Identifier: MIT
//
// Pictures before and after an attack, made small enough for a page. They are what
//   elliptical attack RUN --attack pgd --eps 1/255
// left in attack.safetensors of the run: clean, adversarial (B, 3, h, w) in [0, 1], labels (B),
// clean_logits, adversarial_logits (B, K); metadata class_names. Those whose prediction changed
// come first. Large pictures are averaged over square cells.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elliptical/report/run_data.h"

namespace elliptical::report {

/// Bytes that all pictures of a page may have together, and pictures of a run.
inline constexpr size_t kAttackPictureBytes = 900'000, kMaxAttackPictures = 8;

/// One object for each chosen run that has such a file:
///   run, attack, eps, height, width, cell (pixels of a side of a cell),
///   pictures: [{label, before, after, names, clean, difference, largest}]
/// `names` are what label, before and after are called, "class 3" where the file has no names.
/// `clean` are bytes (height, width, 3), `difference` signed ones, in 127ths of `largest`, which is
/// a part of the range of a pixel; both base64. What can not be read is named in `problems`.
nlohmann::json read_attack_pictures(const std::vector<RunData>& runs,
                                    const std::vector<size_t>& chosen,
                                    std::vector<std::string>& problems,
                                    size_t max_bytes = kAttackPictureBytes);

}  // namespace elliptical::report
