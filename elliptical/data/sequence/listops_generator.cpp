// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/listops_generator.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>
#include <unordered_set>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/sequence/encodings_impl.h"
#include "elliptical/data/sequence/listops.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDeepest = 10;
constexpr uint64_t kMaxArguments = 10;
constexpr double kDigitShare = 0.75;

RandomKey listops_key(uint64_t seed) { return RandomKey(seed).derive("listops"); }

/// Of a kept expression: what is remembered, and what tells it from others.
struct Kept {
  uint64_t draw, hash;
  uint8_t value;
};

/// Equal expressions have equal hashes. Different ones may, once in billions of sets: then one of
/// them is missing, which does no harm.
uint64_t hash_of(const std::vector<int32_t>& tokens) {
  uint64_t hash = 0;
  for (const int32_t token : tokens) hash = mix_bits(hash ^ static_cast<uint64_t>(token)) + 1;
  return hash;
}

std::vector<Kept> keep_of(RandomKey key, uint64_t first, uint64_t last) {
  std::vector<Kept> kept;
  for (uint64_t draw = first; draw < last; ++draw) {
    const auto tokens = draw_listops(key, draw, kMaxListOpsLength);
    if (!tokens || static_cast<int64_t>(tokens->size()) < kMinListOpsLength) continue;
    kept.push_back({draw, hash_of(*tokens), static_cast<uint8_t>(listops_value(*tokens))});
  }
  return kept;
}

int64_t total(const ListOpsOptions& options) {
  return options.train_examples + 2 * options.eval_examples;
}

// The cache: a line of text, eight bytes a draw, one byte a value, and the checksum of all that.

std::string cache_header(const ListOpsOptions& options) {
  return "elliptical listops draws 1, seed " + std::to_string(options.seed) + ", " +
         std::to_string(total(options)) + "\n";
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string cache_text(const ListOpsOptions& options, const ListOpsDraws& found) {
  std::string text = cache_header(options);
  text += bytes_of(found.draws);
  text += bytes_of(found.values);
  return text + sha256_hex(text);
}

std::optional<ListOpsDraws> read_cache(const ListOpsOptions& options, const fs::path& file) {
  const auto count = static_cast<size_t>(total(options));
  const std::string header = cache_header(options);
  constexpr size_t kSumBytes = 64;
  const size_t num_bytes = header.size() + count * (sizeof(uint64_t) + 1) + kSumBytes;
  try {
    if (!fs::exists(file)) return std::nullopt;
    const std::string text = read_file(file, num_bytes);
    if (text.size() != num_bytes || !text.starts_with(header)) return std::nullopt;
    const std::string_view body = std::string_view(text).substr(0, num_bytes - kSumBytes);
    if (sha256_hex(body) != text.substr(body.size())) return std::nullopt;
    ListOpsDraws found{std::vector<uint64_t>(count), std::vector<uint8_t>(count)};
    const char* from = text.data() + header.size();
    std::memcpy(found.draws.data(), from, count * sizeof(uint64_t));
    std::memcpy(found.values.data(), from + count * sizeof(uint64_t), count);
    return found;
  } catch (const DataError&) {  // unreadable or longer: as good as none
    return std::nullopt;
  }
}

class GeneratedListOps : public SequenceSet {
 public:
  GeneratedListOps(Split split,
                   const ListOpsOptions& options,
                   const ListOpsDraws& all,
                   int64_t max_length)
      : SequenceSet(SequenceForm{.name = "listops",
                                 .class_names = digit_names(),
                                 .vocabulary = listops_vocabulary(),
                                 .max_length = max_length}),
        split_(split),
        options_(options) {
    const int64_t first = split == Split::kTrain   ? 0
                          : split == Split::kValid ? options.train_examples
                                                   : options.train_examples + options.eval_examples;
    const int64_t count = split == Split::kTrain ? options.train_examples : options.eval_examples;
    draws_.assign(all.draws.begin() + first, all.draws.begin() + first + count);
    values_.assign(all.values.begin() + first, all.values.begin() + first + count);
  }

  int64_t size() const override { return static_cast<int64_t>(draws_.size()); }
  int64_t label(int64_t index) const override { return values_[static_cast<size_t>(index)]; }
  std::string origin(int64_t index) const override {
    return name() + ", " + to_string(split_) + " expression " + std::to_string(index);
  }
  std::map<std::string, std::string> fingerprint() const override {
    return {{to_string(split_), "version 1, seed " + std::to_string(options_.seed) + ", " +
                                    std::to_string(size()) + " expressions, draws " +
                                    sha256_hex(bytes_of(draws_))}};
  }

 protected:
  SequenceExample read(int64_t index) const override {
    auto tokens = draw_listops(listops_key(options_.seed), draws_[static_cast<size_t>(index)],
                               kMaxListOpsLength);
    if (!tokens) throw DataError(origin(index) + ": must be in the set, is not (remove the cache)");
    return listops_example(std::move(*tokens), label(index), form().max_length, origin(index));
  }

 private:
  Split split_;
  ListOpsOptions options_;
  std::vector<uint64_t> draws_;
  std::vector<uint8_t> values_;
};

}  // namespace

std::optional<std::vector<int32_t>> draw_listops(RandomKey key, uint64_t draw, int64_t max_length) {
  RandomStream random(key.derive(draw));
  std::vector<int32_t> tokens;
  std::vector<uint64_t> missing;  // arguments of the open operators that are still to come
  int64_t length = 0;
  do {
    if (!missing.empty()) --missing.back();
    const bool may_be_operator = static_cast<int64_t>(missing.size()) + 1 < kDeepest;
    if (may_be_operator && random.uniform() <= 1 - kDigitShare) {
      missing.push_back(2 + random.below(kMaxArguments - 1));
      tokens.push_back(kListOpsMin + static_cast<int32_t>(random.below(4)));
      length += 2;
    } else {
      tokens.push_back(kListOpsDigit + static_cast<int32_t>(random.below(10)));
      length += 1;
    }
    if (length > max_length) return std::nullopt;
    while (!missing.empty() && missing.back() == 0) {
      missing.pop_back();
      tokens.push_back(kListOpsEnd);
    }
  } while (!missing.empty());
  return tokens;
}

ListOpsDraws find_listops_draws(const ListOpsOptions& options) {
  constexpr uint64_t kChunk = 2048;
  const int64_t num_threads = options.threads > 0
                                  ? options.threads
                                  : std::max<int64_t>(1, std::thread::hardware_concurrency());
  const RandomKey key = listops_key(options.seed);
  const auto wanted = static_cast<size_t>(total(options));
  ListOpsDraws found;
  std::unordered_set<uint64_t> seen;
  for (uint64_t next = 0; found.draws.size() < wanted;) {
    std::vector<std::vector<Kept>> chunks(static_cast<size_t>(num_threads));
    {
      std::vector<std::jthread> threads;
      for (std::vector<Kept>& chunk : chunks) {
        threads.emplace_back([&chunk, key, next] { chunk = keep_of(key, next, next + kChunk); });
        next += kChunk;
      }
    }
    for (const std::vector<Kept>& chunk : chunks) {
      for (const Kept& kept : chunk) {
        if (found.draws.size() == wanted) return found;
        if (!seen.insert(kept.hash).second) continue;
        found.draws.push_back(kept.draw);
        found.values.push_back(kept.value);
      }
    }
  }
  return found;
}

ListOpsDraws cached_listops_draws(const ListOpsOptions& options, const fs::path& folder) {
  const fs::path file = folder / ("listops-seed-" + std::to_string(options.seed) + "-" +
                                  std::to_string(total(options)) + ".draws");
  if (auto found = read_cache(options, file)) return std::move(*found);
  ListOpsDraws found = find_listops_draws(options);
  std::error_code error;
  fs::create_directories(folder, error);
  try {
    if (!error) write_file_atomically(file, cache_text(options, found));
  } catch (const FileError&) {
    // A folder that can not be written costs these seconds once more.
  }
  return found;
}

std::unique_ptr<SequenceSet> open_generated_listops(Split split,
                                                    const ListOpsOptions& options,
                                                    int64_t max_length) {
  const ListOpsDraws all = cached_listops_draws(options, fs::path("data") / "generated");
  return std::make_unique<GeneratedListOps>(split, options, all, max_length);
}

}  // namespace elliptical::data
