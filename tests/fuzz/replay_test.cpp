// SPDX-License-Identifier: MIT
//
// S6: what fuzzers found, and cheap mutations of it, on every run of the tests. The sanitizers of
// the build are what makes it worthwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string_view>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/base/checkpoint_state.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/random.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/measure/attack_score.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/targets.h"

namespace elliptical::test {
namespace {

using namespace std::string_view_literals;

const auto kCorpora = std::filesystem::path(ELLIPTICAL_SOURCE_DIR) / "tests/fixtures/corpus";

std::vector<std::string> read_corpus(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpora / name))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

std::string mutate(const std::vector<std::string>& corpus, RandomStream& random) {
  std::string bytes = corpus[random.below(corpus.size())];
  const uint64_t num_changes = 1 + random.below(4);
  for (uint64_t i = 0; i < num_changes; ++i) {
    const size_t place = random.below(bytes.size() + 1);
    const size_t length = random.below(std::min<size_t>(bytes.size() - place, 16) + 1);
    constexpr auto kTelling = "\0\xFF\x7F\x80 \n\"{}[]:,.-09ea=\\"sv;
    switch (random.below(5)) {
      case 0:
        if (place < bytes.size()) bytes[place] = static_cast<char>(random.next());
        break;
      case 1:
        if (place < bytes.size()) bytes[place] = kTelling[random.below(kTelling.size())];
        break;
      case 2:
        bytes.erase(place, length);
        break;
      case 3:
        bytes.insert(place, std::string(bytes, place, length));
        break;
      default: {
        const std::string& other = corpus[random.below(corpus.size())];
        bytes.insert(place, other, random.below(other.size() + 1), 16);
      }
    }
  }
  return bytes;
}

class Replay : public testing::TestWithParam<FuzzTarget> {};

TEST_P(Replay, S6CorpusAndMutations) {
  const std::vector<std::string> corpus = read_corpus(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus) GetParam().run(bytes);
  RandomStream random(RandomKey(1).derive(GetParam().name));
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = mutate(corpus, random);
    if (GetParam().damage != nullptr && i % 2 == 1) {
      bytes = corpus[random.below(corpus.size())];
      for (uint64_t times = random.below(3) + 1; times > 0; --times) {
        bytes = GetParam().damage(bytes, random);
      }
    }
    GetParam().run(bytes);
  }
}

// The programs of tools/fuzz are made of the folders.
TEST(Targets, HaveTheNamesOfTheCorpora) {
  std::set<std::string> corpora, targets;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpora))
    corpora.insert(entry.path().filename());
  for (const FuzzTarget& target : fuzz_targets()) targets.insert(target.name);
  EXPECT_EQ(targets, corpora);
}

/// Of 1000 damaged files of a corpus those that `accepts` does not throw at.
template <class Accepts>
int num_accepted(const char* name,
                 std::string (*damage)(std::string_view, RandomStream&),
                 Accepts accepts) {
  const std::vector<std::string> corpus = read_corpus(name);
  RandomStream random(RandomKey(2).derive(name));
  int num_accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string bytes = damage(corpus[random.below(corpus.size())], random);
    num_accepted += succeeds<DataError>([&] { accepts(bytes); }) ? 1 : 0;
  }
  return num_accepted;
}

// Were all of it refused by the first check of a format, nothing behind would be tested.
TEST(Damage, GetsPastTheFirstCheckAndIsDamage) {
  const int states = num_accepted("state", damage_json, [](const std::string& bytes) {
    checkpoint_state_checksum(bytes, "f");
  });
  EXPECT_GT(states, 200);
  EXPECT_LT(states, 900);
  const int headers = num_accepted("snapshot", damage_tensors, [](const std::string& bytes) {
    parse_safetensors_header(std::as_bytes(std::span(bytes)), bytes.size(), "f");
  });
  EXPECT_GT(headers, 200);
  EXPECT_LT(headers, 900);
  const int batches = num_accepted("attacks", damage_lines, [](const std::string& bytes) {
    measure::to_attacked_batch(parse_record(bytes.substr(0, bytes.find('\n'))));
  });
  EXPECT_GT(batches, 200);
  EXPECT_LT(batches, 900);
}

INSTANTIATE_TEST_SUITE_P(Targets,
                         Replay,
                         testing::ValuesIn(fuzz_targets()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace elliptical::test
