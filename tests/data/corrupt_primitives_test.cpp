// SPDX-License-Identifier: MIT
//
// What corruptions are made of, each against its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "elliptical/data/corrupt/canny_impl.h"
#include "elliptical/data/corrupt/disc_kernel_impl.h"
#include "elliptical/data/corrupt/gaussian_filter_impl.h"
#include "elliptical/data/corrupt/hsv_impl.h"
#include "elliptical/data/corrupt/motion_blur_impl.h"
#include "elliptical/data/corrupt/plasma_impl.h"
#include "elliptical/data/corrupt/warp_impl.h"
#include "elliptical/data/corrupt/zoom_impl.h"

namespace elliptical::data {
namespace {

Field noise_field(int64_t width, int64_t height, int64_t channels, uint64_t seed) {
  Field field(width, height, channels);
  RandomStream random{RandomKey(seed)};
  for (double& value : field.values) value = random.uniform();
  return field;
}

double sum(const Field& field) {
  return std::accumulate(field.values.begin(), field.values.end(), 0.0);
}

void expect_near(const Field& a, const Field& b, double tolerance) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) ASSERT_NEAR(a.values[i], b.values[i], tolerance);
}

/// The filter as its definition says: both sums at once, every index extended on its own.
Field slow_gaussian(const Field& field, double sigma, Border border, double cut_off) {
  const auto radius = static_cast<int64_t>(cut_off * sigma + 0.5);
  const auto extend = [border](int64_t i, int64_t size) {
    return border == Border::kNearest ? std::clamp<int64_t>(i, 0, size - 1) : mirror_index(i, size);
  };
  Field result(field.width, field.height, field.channels);
  for (int64_t y = 0; y < field.height; ++y) {
    for (int64_t x = 0; x < field.width; ++x) {
      double weights = 0;
      for (int64_t dy = -radius; dy <= radius; ++dy) {
        for (int64_t dx = -radius; dx <= radius; ++dx) {
          const double weight =
              std::exp(-static_cast<double>(dx * dx + dy * dy) / (2 * sigma * sigma));
          weights += weight;
          const double* const from =
              field.at(extend(y + dy, field.height), extend(x + dx, field.width));
          for (int64_t c = 0; c < field.channels; ++c) result.at(y, x)[c] += weight * from[c];
        }
      }
      for (int64_t c = 0; c < field.channels; ++c) result.at(y, x)[c] /= weights;
    }
  }
  return result;
}

TEST(GaussianFilter, IsItsDefinitionAtEveryWidthAndBorder) {
  const Field field = noise_field(13, 9, 3, 1);
  for (const double sigma : {0.3, 1.0, 2.2, 7.0}) {  // the last kernel is wider than the picture
    for (const Border border : {Border::kNearest, Border::kMirror}) {
      for (const double cut_off : {3.0, 4.0}) {
        Field fast = field;
        gaussian_filter(fast, sigma, border, cut_off);
        expect_near(fast, slow_gaussian(field, sigma, border, cut_off), 1e-12);
      }
    }
  }
}

TEST(GaussianFilter, KeepsConstantsAndWithAMirrorTheSum) {
  Field constant(10, 6, 3);
  std::fill(constant.values.begin(), constant.values.end(), 0.7);
  gaussian_filter(constant, 1.5);
  for (const double value : constant.values) EXPECT_NEAR(value, 0.7, 1e-14);
  Field field = noise_field(17, 11, 1, 2);
  const double before = sum(field);
  gaussian_filter(field, 30.0, Border::kMirror, 3.0);
  EXPECT_NEAR(sum(field), before, 1e-10);
}

TEST(GaussianFilter, NoWidthIsNoChange) {
  Field field = noise_field(5, 4, 1, 3);
  const std::vector<double> before = field.values;
  gaussian_filter(field, 0.0);
  gaussian_filter(field, 0.1);  // radius int(0.4 + 0.5) = 0
  EXPECT_EQ(field.values, before);
}

TEST(DiscKernel, SumsToOneUnlessItTouchesTheEdgeOfItsGrid) {
  for (const double radius : {0.3, 1.0, 3.0, 6.0}) {
    EXPECT_NEAR(sum(disc_kernel(radius, 0.5)), 1.0, 1e-12) << radius;
  }
  // Measured with OpenCV's GaussianBlur, which made the released pictures.
  EXPECT_NEAR(sum(disc_kernel(8, 0.5)), 1.0129755, 1e-6);
  EXPECT_NEAR(sum(disc_kernel(10, 0.5)), 1.0107858, 1e-6);
}

TEST(DiscKernel, IsADisc) {
  const Field kernel = disc_kernel(6, 0.1);  // too narrow a Gaussian to smooth anything
  ASSERT_EQ(kernel.width, 17);
  int inside = 0;
  for (int64_t y = -8; y <= 8; ++y) {
    for (int64_t x = -8; x <= 8; ++x) inside += x * x + y * y <= 36 ? 1 : 0;
  }
  for (int64_t y = -8; y <= 8; ++y) {
    for (int64_t x = -8; x <= 8; ++x) {
      EXPECT_NEAR(*kernel.at(y + 8, x + 8), x * x + y * y <= 36 ? 1.0 / inside : 0.0, 1e-12);
    }
  }
  EXPECT_EQ(disc_kernel(10, 0.5).width, 21);
}

TEST(Correlate, IsItsDefinition) {
  const Field field = noise_field(7, 5, 2, 4), kernel = noise_field(5, 5, 1, 5);
  Field expected(7, 5, 2);
  for (int64_t y = 0; y < 5; ++y) {
    for (int64_t x = 0; x < 7; ++x) {
      for (int64_t dy = -2; dy <= 2; ++dy) {
        for (int64_t dx = -2; dx <= 2; ++dx) {
          const double* from = field.at(reflect_index(y + dy, 5), reflect_index(x + dx, 7));
          for (int64_t c = 0; c < 2; ++c) {
            expected.at(y, x)[c] += *kernel.at(dy + 2, dx + 2) * from[c];
          }
        }
      }
    }
  }
  expect_near(correlate(field, kernel), expected, 1e-12);
}

TEST(Indices, OutsideAPictureAreInsideItsMirrors) {
  const int64_t mirrored[] = {2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1};
  const int64_t reflected[] = {0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1};
  for (int64_t i = -4; i < 8; ++i) {
    EXPECT_EQ(mirror_index(i, 3), mirrored[i + 4]) << i;
    EXPECT_EQ(reflect_index(i, 3), reflected[i + 4]) << i;
  }
  EXPECT_EQ(reflect_index(5, 1), 0);
}

// IC-7
TEST(MotionBlur, TapsSumToOneAndLieOnOneSide) {
  double total = 0;
  for (const MotionTap& tap : motion_taps(10, 3, 0)) {
    total += tap.weight;
    EXPECT_EQ(tap.dy, 0);
    EXPECT_GE(tap.dx, 0);
  }
  EXPECT_NEAR(total, 1, 1e-12);
  const std::vector<MotionTap> taps = motion_taps(15, 5, -90);
  ASSERT_EQ(taps.size(), 31u);
  EXPECT_EQ(taps[0].dy, 0);
  EXPECT_EQ(taps[30].dy, -30);
  EXPECT_EQ(taps[30].dx, 0);
  EXPECT_GT(taps[0].weight, taps[1].weight);
}

TEST(MotionBlur, IsItsDefinition) {
  constexpr int64_t kWidth = 9, kHeight = 6;
  std::vector<uint8_t> bytes(kWidth * kHeight * 2);
  RandomStream random{RandomKey(6)};
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  for (const double degrees : {0.0, 30.0, -100.0, 180.0}) {
    const std::vector<MotionTap> taps = motion_taps(7, 4, degrees);  // longer than the picture
    const std::vector<uint8_t> blurred = motion_blur(bytes, kWidth, kHeight, 2, taps);
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x) {
        for (int64_t c = 0; c < 2; ++c) {
          double expected = 0;
          for (const MotionTap& tap : taps) {
            const int64_t row = std::clamp<int64_t>(y + tap.dy, 0, kHeight - 1);
            const int64_t column = std::clamp<int64_t>(x + tap.dx, 0, kWidth - 1);
            expected += tap.weight * bytes[(row * kWidth + column) * 2 + c];
          }
          // Half a step of rounding; sums are in float.
          EXPECT_NEAR(blurred[(y * kWidth + x) * 2 + c], expected, 0.5 + 1e-4);
        }
      }
    }
  }
  const std::vector<uint8_t> constant(30, 201);
  EXPECT_EQ(motion_blur(constant, 5, 6, 1, motion_taps(3, 2, 20)), constant);
}

TEST(Zoom, FactorOneIsTheIdentityAndOthersShowTheMiddle) {
  const Field field = noise_field(11, 8, 3, 7);
  EXPECT_EQ(zoom_centre(field, 1.0).values, field.values);
  // A plane stays a plane: 224 / 2 = 112 pixels become 224 with the corners kept.
  Field plane(224, 224);
  for (int64_t y = 0; y < 224; ++y) {
    for (int64_t x = 0; x < 224; ++x) *plane.at(y, x) = static_cast<double>(3 * x + y);
  }
  const Field zoomed = zoom_centre(plane, 2.0);
  for (const int64_t i : {0, 100, 223}) {
    const double source = 56 + static_cast<double>(i) * 111.0 / 223.0;
    EXPECT_NEAR(*zoomed.at(i, i), 4 * source, 1e-9);
  }
}

// IC-8
TEST(Plasma, GoesFromZeroToOneAndWrapsAround) {
  for (const double decay : {1.4, 2.0, 3.0}) {
    const Field map = plasma(256, decay, RandomKey(8));
    EXPECT_EQ(*std::min_element(map.values.begin(), map.values.end()), 0.0);
    EXPECT_EQ(*std::max_element(map.values.begin(), map.values.end()), 1.0);
    double inner = 0, seam = 0;
    for (int64_t i = 0; i < 256; ++i) {
      inner += std::abs(*map.at(i, 100) - *map.at(i, 101)) / 256;
      inner += std::abs(*map.at(100, i) - *map.at(101, i)) / 256;
      seam += std::abs(*map.at(i, 255) - *map.at(i, 0)) / 256;
      seam += std::abs(*map.at(255, i) - *map.at(0, i)) / 256;
    }
    EXPECT_LT(seam, 2 * inner) << decay;  // as smooth across the edge as inside
  }
  EXPECT_EQ(plasma(32, 2, RandomKey(1)).values, plasma(32, 2, RandomKey(1)).values);
  EXPECT_NE(plasma(32, 2, RandomKey(1)).values, plasma(32, 2, RandomKey(2)).values);
}

TEST(Hsv, OfKnownColours) {
  const double orange[] = {1.0, 0.5, 0.0}, grey[] = {0.3, 0.3, 0.3}, pink[] = {1.0, 0.0, 0.5};
  EXPECT_NEAR(to_hsv(orange)[0], 30 / 360.0, 1e-12);
  EXPECT_NEAR(to_hsv(pink)[0], 330 / 360.0, 1e-12);
  EXPECT_EQ(to_hsv(grey), (std::array<double, 3>{0, 0, 0.3}));
}

TEST(Hsv, ComesBack) {
  RandomStream random{RandomKey(9)};
  for (int i = 0; i < 1000; ++i) {
    const double rgb[] = {random.uniform(), random.uniform(), i % 5 == 0 ? 0.0 : random.uniform()};
    const std::array<double, 3> back = to_rgb(to_hsv(rgb));
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(back[c], rgb[c], 1e-12);
  }
}

TEST(Canny, FindsTheOutlineOfASquare) {
  constexpr int64_t kSide = 20;
  std::vector<uint8_t> grey(kSide * kSide);
  for (int64_t y = 6; y < 14; ++y) {
    for (int64_t x = 6; x < 14; ++x) grey[y * kSide + x] = 200;
  }
  const std::vector<uint8_t> edges = canny_edges(grey, kSide, kSide, 50, 150);
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < kSide; ++x) {
      const int64_t out = std::max(std::abs(2 * x - 19), std::abs(2 * y - 19));  // 7: last inside
      if (edges[y * kSide + x] != 0) {
        EXPECT_TRUE(out == 7 || out == 9) << x << ' ' << y;
      }
    }
  }
  // Middles of the sides: one of the two places, never both.
  for (int64_t i = 8; i < 12; ++i) {
    EXPECT_EQ(edges[i * kSide + 5] + edges[i * kSide + 6], 1);
    EXPECT_EQ(edges[13 * kSide + i] + edges[14 * kSide + i], 1);
  }
}

TEST(Canny, WeakEdgesCountWhereStrongOnesLeadToThem) {
  constexpr int64_t kSide = 16;
  // A vertical edge that fades from 60 (strong: 4 * 60 > 150) to 20 (weak: 80), and a weak one.
  std::vector<uint8_t> grey(kSide * kSide);
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 5; x < 10; ++x) grey[y * kSide + x] = y < 8 ? 60 : 20;
    for (int64_t x = 10; x < kSide; ++x) grey[y * kSide + x] = y < 8 ? 60 : 40;
  }
  const std::vector<uint8_t> edges = canny_edges(grey, kSide, kSide, 50, 150);
  EXPECT_EQ(edges[3 * kSide + 4] + edges[3 * kSide + 5], 1);
  EXPECT_EQ(edges[14 * kSide + 4] + edges[14 * kSide + 5], 1);
  EXPECT_EQ(canny_edges(std::vector<uint8_t>(grey.size(), 9), kSide, kSide, 50, 150),
            std::vector<uint8_t>(grey.size(), 0));
  for (uint8_t& value : grey) value /= 4;  // nothing is strong now
  EXPECT_EQ(canny_edges(grey, kSide, kSide, 50, 150), std::vector<uint8_t>(grey.size(), 0));
}

TEST(DistanceTo, IsNearlyEuclidean) {
  constexpr int64_t kWidth = 40, kHeight = 30;
  std::vector<uint8_t> ones(kWidth * kHeight);
  RandomStream random{RandomKey(10)};
  for (int i = 0; i < 6; ++i) ones[random.below(ones.size())] = 1;
  const std::vector<float> distances = distance_to(ones, kWidth, kHeight);
  for (int64_t p = 0; p < kWidth * kHeight; ++p) {
    double nearest = std::numeric_limits<double>::infinity();
    for (int64_t q = 0; q < kWidth * kHeight; ++q) {
      if (ones[q] == 0) continue;
      nearest = std::min(nearest, std::hypot(p % kWidth - q % kWidth, p / kWidth - q / kWidth));
    }
    EXPECT_NEAR(distances[p], nearest, 0.021 * nearest);
  }
  for (const float distance : distance_to(std::vector<uint8_t>(12), 4, 3)) {
    EXPECT_EQ(distance, std::numeric_limits<float>::infinity());
  }
}

TEST(Warp, SamplesBetweenPixelsAndOutside) {
  Field field(3, 2);
  field.values = {0, 10, 20, 100, 110, 120};
  const Field between = warp(field, reflect_index, [](int64_t x, int64_t y) {
    return Point{static_cast<double>(x) + 0.25, static_cast<double>(y) - 0.5};
  });
  // Row -0.5 is half of row 1 (reflected) and half of row 0; column 2.25 leans towards column 1.
  EXPECT_DOUBLE_EQ(*between.at(0, 0), 52.5);
  EXPECT_DOUBLE_EQ(*between.at(0, 2), 50 + 17.5);
  const Field mirrored = warp(field, mirror_index, [](int64_t x, int64_t y) {
    return Point{static_cast<double>(x) + 1.0, static_cast<double>(y) - 1.0};
  });
  EXPECT_DOUBLE_EQ(*mirrored.at(0, 2), 20);
  EXPECT_DOUBLE_EQ(*mirrored.at(1, 0), 10);
}

TEST(Warp, AffineMapTakesThreePointsToThree) {
  const std::array<Point, 3> from = {Point{1, 2}, {5, -1}, {0, 7}};
  const std::array<Point, 3> to = {Point{3, 3}, {-2, 8}, {6, 0.5}};
  const PlaneMap map = affine_map(from, to);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(map(from[i]).x, to[i].x, 1e-12);
    EXPECT_NEAR(map(from[i]).y, to[i].y, 1e-12);
  }
}

}  // namespace
}  // namespace elliptical::data
