// SPDX-License-Identifier: MIT
//
// One aligned allocation cut into arrays of floats: the working memory of one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <new>

#include "hwy/aligned_allocator.h"

namespace elliptical::kernels {

class Arena {
 public:
  /// An array of `count` floats; its address is written to `*pointer`.
  struct Piece {
    float** pointer;
    int64_t count;
  };

  explicit Arena(std::initializer_list<Piece> pieces) {
    int64_t total = 1;
    for (const Piece& piece : pieces) total += padded(piece.count);
    memory_ = hwy::AllocateAligned<float>(static_cast<size_t>(total));
    if (!memory_) throw std::bad_alloc();
    float* next = memory_.get();
    for (const Piece& piece : pieces) {
      *piece.pointer = next;
      next += padded(piece.count);
    }
  }

 private:
  /// Each array starts on a cache line.
  static int64_t padded(int64_t count) { return (count + 15) / 16 * 16; }

  hwy::AlignedFreeUniquePtr<float[]> memory_;
};

}  // namespace elliptical::kernels
