// SPDX-License-Identifier: MIT
#include "tests/fuzz/corpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace elliptical::test {

using namespace std::string_view_literals;

std::filesystem::path corpus_folder() {
  return std::filesystem::path(ELLIPTICAL_SOURCE_DIR) / "tests/fixtures/corpus";
}

std::vector<std::string> read_corpus(const std::string& name) {
  const auto folder = corpus_folder() / name;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
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

}  // namespace elliptical::test
