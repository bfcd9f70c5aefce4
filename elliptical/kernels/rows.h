// SPDX-License-Identifier: MIT
//
// A contiguous matrix of float32 as the layers on rows take it: (rows, C), vectors beside it (C).
#pragma once

#include <cstdint>

namespace elliptical::kernels {

struct Rows {
  int64_t rows = 0, C = 0;
};

}  // namespace elliptical::kernels
