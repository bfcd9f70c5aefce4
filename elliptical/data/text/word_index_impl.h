// SPDX-License-Identifier: MIT
//
// Words by number and numbers by word, for hundreds of millions of look-ups: open addressing with
// the hash beside the number, so that a look-up that ends elsewhere rarely touches a word. Keeps
// views of the words: whoever owns the text must live longer.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "elliptical/base/random.h"

namespace elliptical::data {

class WordIndex {
 public:
  static constexpr int32_t kNone = -1;

  WordIndex() : slots_(kMinSlots) {}

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  std::string_view word(int32_t number) const { return words_[static_cast<size_t>(number)]; }

  int32_t find(std::string_view word) const {
    const uint32_t hash = hash_of(word);
    return slots_[find_slot(word, hash)].number;
  }

  /// The number of a word; a new word gets the next one.
  int32_t insert(std::string_view word) {
    const uint32_t hash = hash_of(word);
    Slot& slot = slots_[find_slot(word, hash)];
    if (slot.number != kNone) return slot.number;
    const auto number = static_cast<int32_t>(words_.size());
    slot = {hash, number};
    words_.push_back(word);
    if (2 * words_.size() > slots_.size()) grow();
    return number;
  }

 private:
  static constexpr size_t kMinSlots = 1024;  // powers of two

  struct Slot {
    uint32_t hash = 0;
    int32_t number = kNone;
  };

  template <class T>
  static uint64_t load(const char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  /// Loads overlap instead of running over single bytes: loops of unpredictable length are dear.
  static uint32_t hash_of(std::string_view word) {
    const char* bytes = word.data();
    const size_t size = word.size();
    uint64_t hash = size * 0x9E3779B97F4A7C15u;
    if (size >= 8) {
      for (size_t i = 8; i < size; i += 8) hash = mix_bits(hash ^ load<uint64_t>(bytes + i - 8));
      hash ^= load<uint64_t>(bytes + size - 8);
    } else if (size >= 4) {
      hash ^= load<uint32_t>(bytes) << 32 | load<uint32_t>(bytes + size - 4);
    } else if (size > 0) {
      hash ^= load<uint8_t>(bytes) << 16 | load<uint8_t>(bytes + size / 2) << 8 |
              load<uint8_t>(bytes + size - 1);
    }
    return static_cast<uint32_t>(mix_bits(hash) >> 32);
  }

  /// The slot that holds the word, or the empty one where it belongs.
  size_t find_slot(std::string_view word, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    while (slots_[i].number != kNone &&
           (slots_[i].hash != hash || words_[static_cast<size_t>(slots_[i].number)] != word)) {
      i = (i + 1) & mask;
    }
    return i;
  }

  void grow() {
    std::vector<Slot> old(4 * slots_.size());
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.number == kNone) continue;
      size_t i = slot.hash & mask;
      while (slots_[i].number != kNone) i = (i + 1) & mask;
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<std::string_view> words_;
};

}  // namespace elliptical::data
