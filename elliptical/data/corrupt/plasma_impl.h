// SPDX-License-Identifier: MIT
//
// Clouds: a fractal height map by the diamond-square method, on a torus.
#pragma once

#include "elliptical/base/random.h"
#include "elliptical/data/corrupt/field_impl.h"

namespace elliptical::data {

/// (size, size), a power of two at least 2; values from 0 to 1, both of which occur. Noise of level
/// l is w U(-w, w), w = 100 / decay^l: a large decay gives smooth clouds.
Field plasma(int64_t size, double decay, RandomKey key);

}  // namespace elliptical::data
