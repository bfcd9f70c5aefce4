// SPDX-License-Identifier: MIT
//
// Parts of a data set that have pictures of all its classes alike. Pictures in class folders lie
// class after class, so the first so many would be of the first classes only, and equal parts in
// that order would be classes.
//
// Everything is a function of the labels alone: it does not change from run to run, and sets with
// the same pictures in other damage have the same parts.
#pragma once

#include <cstdint>
#include <vector>

namespace elliptical::data {

/// The first `count` numbers of a fixed random order of all pictures that takes turns among the
/// classes: in any beginning of it two classes differ by at most one picture, unless one of them
/// has no more. Less is a beginning of more. `labels` are 0 to num_classes - 1.
std::vector<int64_t> balanced_order(const std::vector<int64_t>& labels,
                                    int64_t num_classes,
                                    int64_t count);

/// For each picture the part, 0 to num_parts - 1, that it is in. Parts differ by at most one
/// picture, in all and in each class. With fewer pictures than parts the last parts are empty.
std::vector<int64_t> balanced_parts(const std::vector<int64_t>& labels, int64_t num_parts);

}  // namespace elliptical::data
