// SPDX-License-Identifier: MIT
#include "elliptical/data/text/small_language.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "elliptical/base/random.h"

namespace elliptical::data {
namespace {

constexpr uint64_t kNouns = 48, kVerbs = 24,
                   kAdjectives = 16;  // of a topic; the common list has as many
constexpr uint64_t kNames = 40;

/// Ranks with probabilities proportional to 1 / (rank + 2).
class ZipfTable {
 public:
  explicit ZipfTable(uint64_t size) {
    double sum = 0;
    for (uint64_t rank = 0; rank < size; ++rank) {
      sum += 1.0 / static_cast<double>(rank + 2);
      cumulative_.push_back(sum);
    }
  }
  uint64_t draw(RandomStream& random) const {
    const double u = random.uniform() * cumulative_.back();
    const auto place = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
    return std::min<uint64_t>(static_cast<uint64_t>(place - cumulative_.begin()),
                              cumulative_.size() - 1);
  }

 private:
  std::vector<double> cumulative_;
};

/// Two syllables; different numbers below 4900 give different ones.
std::string syllables(uint64_t number) {
  constexpr std::string_view kConsonants = "bdfgklmnprstvz", kVowels = "aeiou";
  std::string text;
  uint64_t rest = number * 2003 % 4900;  // 2003 and 4900 have no common factor
  for (int i = 0; i < 2; ++i) {
    text += kConsonants[rest % 14];
    rest /= 14;
    text += kVowels[rest % 5];
    rest /= 5;
  }
  return text;
}

/// List 0 is common to all topics, list t + 1 belongs to topic t.
std::string noun(uint64_t list, uint64_t rank, bool plural) {
  return syllables(list * kNouns + rank) + (plural ? "ns" : "n");
}
std::string verb(uint64_t list, uint64_t rank, bool plural) {
  return syllables(list * kVerbs + rank) + (plural ? "k" : "ks");
}
std::string adjective(uint64_t list, uint64_t rank) {
  return syllables(list * kAdjectives + rank) + "sh";
}
std::string hero_name(uint64_t number) {
  std::string name = syllables(4000 + number);
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

/// Writes one line.
class LineWriter {
 public:
  explicit LineWriter(RandomKey key)
      : random_(key), topic_(topics().draw(random_)), hero_(names().draw(random_)) {}
  LineWriter(RandomKey key, uint64_t topic)
      : random_(key), topic_(topic), hero_(names().draw(random_)) {}

  std::string write() {
    say(hero_name(hero_));
    verb_phrase(false, 0);
    say(".");
    const uint64_t num_sentences = 2 + random_.below(5);
    for (uint64_t i = 0; i < num_sentences; ++i) sentence();
    // The memory of the line: its hero and its first noun.
    say("so");
    say(hero_name(hero_));
    content_verb(false);
    say("the");
    say(first_noun_);
    say(".");
    return std::move(line_);
  }

 private:
  static const ZipfTable& topics() {
    static const ZipfTable table(kSmallLanguageTopics);
    return table;
  }
  static const ZipfTable& names() {
    static const ZipfTable table(kNames);
    return table;
  }

  void say(std::string_view word) {
    if (!line_.empty()) line_ += ' ';
    line_ += word;
  }

  bool chance(double probability) { return random_.uniform() < probability; }
  uint64_t list() { return chance(0.8) ? topic_ + 1 : 0; }

  void content_noun(bool plural) {
    static const ZipfTable table(kNouns);
    if (!first_noun_.empty() && chance(0.02)) {
      say("<unk>");
      return;
    }
    const std::string word = noun(list(), table.draw(random_), plural);
    if (first_noun_.empty()) first_noun_ = word;
    say(word);
  }
  void content_verb(bool plural) {
    static const ZipfTable table(kVerbs);
    say(verb(list(), table.draw(random_), plural));
  }
  void content_adjective() {
    static const ZipfTable table(kAdjectives);
    say(adjective(list(), table.draw(random_)));
  }

  void noun_phrase(bool plural, int depth) {
    constexpr std::array<const char*, 3> kOne = {"the", "a", "this"};
    constexpr std::array<const char*, 3> kMany = {"the", "some", "these"};
    say((plural ? kMany : kOne)[random_.below(3)]);
    while (chance(0.3)) content_adjective();
    content_noun(plural);
    if (depth >= 2) return;
    if (chance(0.2)) {
      constexpr std::array<const char*, 4> kPrepositions = {"of", "near", "with", "under"};
      say(kPrepositions[random_.below(4)]);
      noun_phrase(chance(0.5), depth + 1);
    } else if (chance(0.15)) {
      say("that");
      verb_phrase(plural, depth + 1);
      say(",");
    }
  }

  void verb_phrase(bool plural, int depth) {
    if (chance(0.15)) {
      say(plural ? "are" : "is");
      content_adjective();
      return;
    }
    content_verb(plural);
    if (chance(0.8)) noun_phrase(chance(0.4), depth + 1);
  }

  void hero() { chance(0.5) ? say(hero_name(hero_)) : say(hero_ % 2 == 0 ? "he" : "she"); }

  void sentence() {
    const bool quoted = chance(0.15);
    if (quoted) {
      hero();
      say("said");
      say("\"");
    }
    if (chance(0.4)) {
      hero();
      verb_phrase(false, 0);
    } else {
      const bool plural = chance(0.4);
      noun_phrase(plural, 0);
      verb_phrase(plural, 0);
    }
    if (quoted) say("\"");
    say(".");
  }

  RandomStream random_;
  uint64_t topic_, hero_;
  std::string line_, first_noun_;
};

}  // namespace

std::string small_language_line(RandomKey key, uint64_t topic) {
  return LineWriter(key, topic).write();
}

std::string small_language_text(Split split, const SmallLanguageOptions& options) {
  const RandomKey key = RandomKey(options.seed).derive("small language").derive(to_string(split));
  const int64_t num_lines = split == Split::kTrain ? options.train_lines : options.eval_lines;
  std::string text;
  for (int64_t line = 0; line < num_lines; ++line) {
    text += LineWriter(key.derive(static_cast<uint64_t>(line))).write();
    text += '\n';
  }
  return text;
}

TextSource small_language_source(const SmallLanguageOptions& options) {
  TextSource source{.name = std::string(kSmallLanguage)};
  source.files = "made up";
  source.origins.fill(source.name);
  source.read = [options](Split split) { return small_language_text(split, options); };
  return source;
}

}  // namespace elliptical::data
