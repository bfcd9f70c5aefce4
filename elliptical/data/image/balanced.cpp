// SPDX-License-Identifier: MIT
#include "elliptical/data/image/balanced.h"

#include <algorithm>
#include <numeric>

#include "elliptical/base/distributions.h"
#include "elliptical/base/random.h"

namespace elliptical::data {

std::vector<int64_t> balanced_order(const std::vector<int64_t>& labels,
                                    int64_t num_classes,
                                    int64_t count) {
  // Fixed for ever: numbers that were measured on a part are compared with later ones.
  constexpr RandomKey kKey = RandomKey(1).derive("balanced order");
  std::vector<std::vector<int64_t>> of_class(static_cast<size_t>(num_classes));
  for (size_t i = 0; i < labels.size(); ++i) {
    of_class[static_cast<size_t>(labels[i])].push_back(static_cast<int64_t>(i));
  }
  std::vector<uint64_t> classes(of_class.size());  // that have pictures left
  std::iota(classes.begin(), classes.end(), uint64_t{0});
  const size_t wanted = std::min(labels.size(), static_cast<size_t>(count));
  std::vector<int64_t> order;
  order.reserve(wanted);
  for (uint64_t round = 0; order.size() < wanted; ++round) {
    std::erase_if(classes, [&](uint64_t k) { return of_class[k].size() <= round; });
    const RandomKey turns = kKey.derive("turns").derive(round);
    for (uint64_t turn = 0; turn < classes.size() && order.size() < wanted; ++turn) {
      const uint64_t k = classes[permuted(turns, classes.size(), turn)];
      order.push_back(of_class[k][permuted(kKey.derive(k), of_class[k].size(), round)]);
    }
  }
  return order;
}

std::vector<int64_t> balanced_parts(const std::vector<int64_t>& labels, int64_t num_parts) {
  std::vector<size_t> by_class(labels.size());
  std::iota(by_class.begin(), by_class.end(), size_t{0});
  std::stable_sort(by_class.begin(), by_class.end(),
                   [&](size_t a, size_t b) { return labels[a] < labels[b]; });
  // Dealt like cards, class after class: no part gets a second one before all have one.
  std::vector<int64_t> parts(labels.size());
  for (size_t i = 0; i < by_class.size(); ++i) {
    parts[by_class[i]] = static_cast<int64_t>(i) % num_parts;
  }
  return parts;
}

}  // namespace elliptical::data
