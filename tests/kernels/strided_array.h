// SPDX-License-Identifier: MIT
//
// A (B, H, N, D) array that owns its memory and lies in it as a test wants: any order of axes,
// gaps, stride 0, negative strides, a first element that no vector register would call aligned.
// What lies between the elements is poison: NaN, or true in masks. A kernel that reads it gives
// itself away, one that writes it is caught by `gaps_untouched`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "elliptical/kernels/attention.h"

namespace elliptical::kernels::test {

using Sizes4 = std::array<int64_t, 4>;

/// How an array lies in memory. Outer to inner is the order of axes in memory, not of (b, h, n, d).
struct Layout {
  std::array<int, 4> order{0, 1, 2, 3};    ///< axis 0 = b ... 3 = d, slowest first
  std::array<int64_t, 4> gap{0, 0, 0, 0};  ///< unused steps after the last index of an axis
  std::array<bool, 4> expanded{};          ///< stride 0: all indices share one element
  std::array<bool, 4> reversed{};          ///< negative stride
  int64_t offset = 0;                      ///< unused elements in front
};

template <class T>
class StridedArray {
 public:
  StridedArray() = default;
  explicit StridedArray(const Sizes4& sizes, const Layout& layout = {}) : sizes_(sizes) {
    int64_t step = 1;
    int64_t first = layout.offset;
    for (int place = 3; place >= 0; --place) {
      const int axis = layout.order[place];
      if (layout.expanded[axis]) continue;
      const int64_t extent = std::max<int64_t>(sizes[axis], 1) + layout.gap[axis];
      strides_[axis] = layout.reversed[axis] ? -step : step;
      if (layout.reversed[axis]) first += step * (std::max<int64_t>(sizes[axis], 1) - 1);
      step *= extent;
    }
    size_ = layout.offset + step;
    storage_ = std::make_unique<T[]>(static_cast<size_t>(size_));
    std::fill_n(storage_.get(), size_, poison());
    data_ = storage_.get() + first;
  }

  T& at(int64_t b, int64_t h, int64_t n, int64_t d) {
    return data_[b * strides_[0] + h * strides_[1] + n * strides_[2] + d * strides_[3]];
  }
  T at(int64_t b, int64_t h, int64_t n, int64_t d) const {
    return const_cast<StridedArray*>(this)->at(b, h, n, d);
  }
  const Sizes4& sizes() const { return sizes_; }
  explicit operator bool() const { return data_ != nullptr; }

  View<T> view() { return {data_, strides_[0], strides_[1], strides_[2], strides_[3]}; }
  View<const T> view() const { return {data_, strides_[0], strides_[1], strides_[2], strides_[3]}; }

  /// Calls body(b, h, n, d) for every element, d fastest.
  template <class Body>
  void for_each(Body body) const {
    for (int64_t b = 0; b < sizes_[0]; ++b)
      for (int64_t h = 0; h < sizes_[1]; ++h)
        for (int64_t n = 0; n < sizes_[2]; ++n)
          for (int64_t d = 0; d < sizes_[3]; ++d) body(b, h, n, d);
  }

  /// All elements in the order of `for_each`.
  std::vector<T> values() const {
    std::vector<T> result;
    for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) { result.push_back(at(b, h, n, d)); });
    return result;
  }

  /// True when every element of the storage that is no element of the array still is poison.
  bool gaps_untouched() const {
    std::vector<bool> used(static_cast<size_t>(size_));
    for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
      used[static_cast<size_t>(&const_cast<StridedArray*>(this)->at(b, h, n, d) - storage_.get())] =
          true;
    });
    const T expected = poison();
    for (int64_t i = 0; i < size_; ++i) {
      if (!used[static_cast<size_t>(i)] && std::memcmp(&storage_[i], &expected, sizeof(T)) != 0)
        return false;
    }
    return true;
  }

 private:
  static T poison() {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::quiet_NaN();
    return T(1);
  }

  Sizes4 sizes_{};
  std::array<int64_t, 4> strides_{};
  int64_t size_ = 0;
  std::unique_ptr<T[]> storage_;
  T* data_ = nullptr;
};

}  // namespace elliptical::kernels::test
