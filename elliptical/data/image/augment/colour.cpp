// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/colour.h"

#include <algorithm>
#include <array>

namespace elliptical::data {
namespace {

constexpr int kLevels = 256;
using Table = std::array<uint8_t, kLevels>;

/// The table of `f(level)`.
template <class F>
Table table_of(F f) {
  Table table;
  for (int level = 0; level < kLevels; ++level) table[level] = static_cast<uint8_t>(f(level));
  return table;
}

void look_up(Image& picture, const Table& table) {
  for (uint8_t& value : picture.pixels) value = table[value];
}

void look_up(Image& picture, const Table& table, int64_t channel) {
  for (size_t i = channel; i < picture.pixels.size(); i += Image::kChannels) {
    picture.pixels[i] = table[picture.pixels[i]];
  }
}

std::array<int64_t, kLevels> histogram(const Image& picture, int64_t channel) {
  std::array<int64_t, kLevels> counts{};
  for (size_t i = channel; i < picture.pixels.size(); i += Image::kChannels) {
    ++counts[picture.pixels[i]];
  }
  return counts;
}

/// Pillow blends in float.
uint8_t blend(uint8_t degraded, uint8_t value, float factor) {
  const float mixed = static_cast<float>(degraded) +
                      factor * static_cast<float>(static_cast<int>(value) - degraded);
  if (mixed <= 0.0f) return 0;
  return mixed >= 255.0f ? 255 : static_cast<uint8_t>(mixed);
}

/// The 3 x 3 mean that counts the middle five times, rounded; border pixels stay.
Image smoothed(const Image& picture) {
  constexpr int kCentre = 5, kSum = 13;
  Image result = picture;
  for (int64_t y = 1; y + 1 < picture.height; ++y) {
    for (int64_t x = 1; x + 1 < picture.width; ++x) {
      for (int64_t channel = 0; channel < Image::kChannels; ++channel) {
        int sum = (kCentre - 1) * picture.at(y, x)[channel];
        for (int64_t row = y - 1; row <= y + 1; ++row) {
          for (int64_t column = x - 1; column <= x + 1; ++column) {
            sum += picture.at(row, column)[channel];
          }
        }
        result.at(y, x)[channel] = static_cast<uint8_t>((2 * sum + kSum) / (2 * kSum));
      }
    }
  }
  return result;
}

}  // namespace

void auto_contrast(Image& picture) {
  for (int64_t channel = 0; channel < Image::kChannels; ++channel) {
    const auto counts = histogram(picture, channel);
    int low = 0, high = kLevels - 1;
    while (low < high && counts[low] == 0) ++low;
    while (high > low && counts[high] == 0) --high;
    if (high <= low) continue;
    const double scale = 255.0 / (high - low);
    const double offset = -low * scale;
    look_up(picture, table_of([&](int level) {
              return std::clamp(static_cast<int>(level * scale + offset), 0, 255);
            }),
            channel);
  }
}

void equalize(Image& picture) {
  for (int64_t channel = 0; channel < Image::kChannels; ++channel) {
    const auto counts = histogram(picture, channel);
    const auto last = std::find_if(counts.rbegin(), counts.rend(), [](int64_t n) { return n > 0; });
    if (last == counts.rend()) continue;
    const int64_t step = (picture.width * picture.height - *last) / 255;
    if (step == 0) continue;
    int64_t sum = step / 2;
    look_up(picture, table_of([&](int level) {
              const int64_t value = std::min<int64_t>(sum / step, 255);
              sum += counts[level];
              return value;
            }),
            channel);
  }
}

void invert(Image& picture) {
  look_up(picture, table_of([](int level) { return 255 - level; }));
}

void posterize(Image& picture, int bits) {
  const int mask = ~((1 << (8 - bits)) - 1);
  look_up(picture, table_of([mask](int level) { return level & mask; }));
}

void solarize(Image& picture, int threshold) {
  look_up(picture,
          table_of([threshold](int level) { return level < threshold ? level : 255 - level; }));
}

void solarize_add(Image& picture, int amount) {
  look_up(picture, table_of([amount](int level) {
            return level < 128 ? std::min(255, level + amount) : level;
          }));
}

void adjust_colour(Image& picture, double factor) {
  const auto weight = static_cast<float>(factor);
  for (size_t i = 0; i < picture.pixels.size(); i += Image::kChannels) {
    uint8_t* const pixel = picture.pixels.data() + i;
    const uint8_t degraded = grey(pixel);
    for (int64_t c = 0; c < Image::kChannels; ++c) pixel[c] = blend(degraded, pixel[c], weight);
  }
}

void adjust_contrast(Image& picture, double factor) {
  int64_t sum = 0;
  for (size_t i = 0; i < picture.pixels.size(); i += Image::kChannels) {
    sum += grey(picture.pixels.data() + i);
  }
  const auto count = static_cast<double>(std::max<int64_t>(picture.width * picture.height, 1));
  const auto mean = static_cast<uint8_t>(static_cast<double>(sum) / count + 0.5);
  const auto weight = static_cast<float>(factor);
  look_up(picture,
          table_of([&](int level) { return blend(mean, static_cast<uint8_t>(level), weight); }));
}

void adjust_brightness(Image& picture, double factor) {
  const auto weight = static_cast<float>(factor);
  look_up(picture,
          table_of([&](int level) { return blend(0, static_cast<uint8_t>(level), weight); }));
}

void adjust_sharpness(Image& picture, double factor) {
  const auto weight = static_cast<float>(factor);
  const Image degraded = smoothed(picture);
  for (size_t i = 0; i < picture.pixels.size(); ++i) {
    picture.pixels[i] = blend(degraded.pixels[i], picture.pixels[i], weight);
  }
}

}  // namespace elliptical::data
