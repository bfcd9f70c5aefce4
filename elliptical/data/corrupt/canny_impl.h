// SPDX-License-Identifier: MIT
//
// Edges of a grey picture (Canny 1986), and how far each pixel is from them: the two steps of
// OpenCV that the corruption `spatter` draws the rims of drops with.
#pragma once

#include <cstdint>
#include <vector>

namespace elliptical::data {

/// 1 on edges. Gradients by Sobel with repeated borders, |gx| + |gy|; kept where they are largest
/// across the edge, and above `high` or connected to such a place through places above `low`.
std::vector<uint8_t> canny_edges(
    const std::vector<uint8_t>& grey, int64_t width, int64_t height, int low, int high);

/// Distance to the nearest place with a 1, along steps of length 1, 1.4 and 2.1969 (a knight's
/// move): at most 2 % from the Euclidean one. Infinite where there is no 1.
std::vector<float> distance_to(const std::vector<uint8_t>& ones, int64_t width, int64_t height);

}  // namespace elliptical::data
