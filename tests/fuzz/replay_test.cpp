// SPDX-License-Identifier: MIT
//
// S6: what fuzzers found, and cheap mutations of it, on every run of the tests. The sanitizers of
// the build are what makes it worthwhile.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <span>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/base/checkpoint_state.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/random.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/measure/attack_score.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/targets.h"

namespace elliptical::test {
namespace {

class Replay : public testing::TestWithParam<FuzzTarget> {};

TEST_P(Replay, S6CorpusAndMutations) {
  const std::vector<std::string> corpus = read_corpus(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus) run_target(GetParam(), bytes);
  RandomStream random(RandomKey(1).derive(GetParam().name));
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = mutate(corpus, random);
    if (GetParam().damage != nullptr && i % 2 == 1) {
      bytes = corpus[random.below(corpus.size())];
      for (uint64_t times = random.below(3) + 1; times > 0; --times) {
        bytes = GetParam().damage(bytes, random);
      }
    }
    run_target(GetParam(), bytes);
  }
}

// A folder without a target would be replayed by nobody, and the whole is part of every clone.
TEST(Corpus, S6EveryFolderHasATargetAndAllAreSmall) {
  std::set<std::string> names, folders;
  for (const FuzzTarget& target : fuzz_targets()) names.insert(target.name);
  uintmax_t num_bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus_folder())) {
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
    if (entry.is_regular_file()) num_bytes += entry.file_size();
  }
  EXPECT_EQ(names, folders);
  EXPECT_LT(num_bytes, 1'000'000);
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
