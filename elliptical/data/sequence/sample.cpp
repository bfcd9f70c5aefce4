// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/sample.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

namespace elliptical::data {
namespace {

constexpr int64_t kFrame = 2;
constexpr size_t kShownIds = 400;
constexpr std::array<std::array<uint8_t, 3>, 4> kClassColours = {
    {{90, 90, 90}, {40, 170, 60}, {60, 90, 220}, {210, 140, 30}}};

void fill(Image& image, int64_t top, int64_t left, int64_t side, const uint8_t* colour) {
  for (int64_t y = top; y < top + side; ++y) {
    for (int64_t x = left; x < left + side; ++x) {
      std::copy_n(colour, Image::kChannels, image.at(y, x));
    }
  }
}

/// Where the grey value 0 is among the ids.
int32_t id_of_black(const SequenceSet& set) { return set.form().vocabulary[0] == "0" ? 0 : 1; }

std::string shown_ids(const SequenceSet& set, const std::vector<int32_t>& ids) {
  // Tokens of expressions are words; bytes are not.
  const std::string between = set.num_ids() < 100 ? " " : "";
  std::string text;
  for (size_t i = 0; i < std::min(ids.size(), kShownIds); ++i) {
    if (i > 0) text += between;
    text += set.form().vocabulary[static_cast<size_t>(ids[i])];
  }
  return ids.size() > kShownIds ? text + between + "..." : text;
}

}  // namespace

SequenceSample sample_sequences(const SequenceSet& set, int64_t count) {
  SequenceSample sample{.count = std::min(count, set.size()), .class_counts = {}, .ranges = {}};
  sample.class_counts.resize(static_cast<size_t>(set.num_classes()));
  const auto note = [&](const std::string& name, int64_t value) {
    const auto [place, is_new] = sample.ranges.try_emplace(name, SampleRange{value, value, 0});
    SampleRange& range = place->second;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
    range.mean += static_cast<double>(value) / static_cast<double>(sample.count);
  };
  using Clock = std::chrono::steady_clock;
  Clock::duration spent{};
  for (int64_t i = 0; i < sample.count; ++i) {
    const auto start = Clock::now();
    const SequenceExample example = set.get(i);
    spent += Clock::now() - start;
    ++sample.class_counts[static_cast<size_t>(example.label)];
    note("ids", static_cast<int64_t>(example.ids.size()));
    if (set.form().is_pair) note("second ids", static_cast<int64_t>(example.second_ids.size()));
    for (const auto& [name, value] : example.facts) note(name, value);
  }
  sample.seconds = std::chrono::duration<double>(spent).count();
  return sample;
}

std::string shown_example(const SequenceSet& set, int64_t index) {
  if (set.form().side > 0) {
    const std::string side = std::to_string(set.form().side);
    return "a picture of " + side + " x " + side + " pixels";
  }
  const SequenceExample example = set.get(index);
  std::string text = shown_ids(set, example.ids);
  if (set.form().is_pair) text += "\n" + shown_ids(set, example.second_ids);
  return text;
}

Image contact_sheet(const SequenceSet& set, int64_t count, int64_t columns, int64_t scale) {
  const int64_t side = set.form().side;
  if (side == 0 || columns < 1 || scale < 1) {
    throw std::invalid_argument("contact_sheet: must be of pictures, is of " + set.name());
  }
  count = std::min(count, set.size());
  const int64_t cell = side * scale + 2 * kFrame, rows = (count + columns - 1) / columns;
  Image sheet(cell * std::min(columns, count), cell * rows, 255);
  for (int64_t i = 0; i < count; ++i) {
    const SequenceExample example = set.get(i);
    const int64_t top = i / columns * cell, left = i % columns * cell;
    fill(sheet, top, left, cell,
         kClassColours[static_cast<size_t>(example.label) % kClassColours.size()].data());
    for (int64_t pixel = 0; pixel < side * side; ++pixel) {
      const auto grey =
          static_cast<uint8_t>(example.ids[static_cast<size_t>(pixel)] - id_of_black(set));
      const std::array<uint8_t, 3> colour = {grey, grey, grey};
      fill(sheet, top + kFrame + pixel / side * scale, left + kFrame + pixel % side * scale, scale,
           colour.data());
    }
  }
  return sheet;
}

}  // namespace elliptical::data
