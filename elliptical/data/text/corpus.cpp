// SPDX-License-Identifier: MIT
#include "elliptical/data/text/corpus.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/text/small_language.h"
#include "elliptical/data/text/tokens.h"

namespace elliptical::data {
namespace {

/// "2.6 %" of the words of a stream are unknown.
std::string unknown_share(const std::vector<int32_t>& stream, int32_t unk) {
  const auto num_words = stream.size() - static_cast<size_t>(std::count(
                                             stream.begin(), stream.end(), Vocabulary::kEos));
  const auto num_unknown = std::count(stream.begin(), stream.end(), unk);
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f %%",
                100 * static_cast<double>(num_unknown) / static_cast<double>(num_words));
  return text.data();
}

}  // namespace

Corpus::Corpus(TextSource source, int64_t max_words)
    : source_(std::move(source)), vocabulary_({std::string(kEosWord), std::string(kUnkWord)}, "") {
  EncodedText encoded = build_vocabulary(read(Split::kTrain), max_words);
  vocabulary_ = encoded.vocabulary;
  set_stream(Split::kTrain, std::move(encoded.stream));
  for (const Split split : {Split::kValid, Split::kTest}) {
    set_stream(split, encode(read(split), vocabulary_));
  }
}

Corpus::Corpus(TextSource source, Vocabulary vocabulary)
    : source_(std::move(source)), vocabulary_(std::move(vocabulary)) {
  for (const Split split : kSplits) set_stream(split, encode(read(split), vocabulary_));
}

std::string Corpus::read(Split split) {
  std::string text = source_.read(split);
  check_text(text, source_.origins[index(split)]);
  checksums_[index(split)] = sha256_hex(text);
  return text;
}

void Corpus::set_stream(Split split, std::vector<int32_t> stream) {
  const auto is_word = [](int32_t id) { return id != Vocabulary::kEos; };
  if (std::none_of(stream.begin(), stream.end(), is_word)) {
    throw DataError(source_.origins[index(split)] + ": must hold words, holds none");
  }
  streams_[index(split)] = std::move(stream);
}

std::string Corpus::text(Split split) const {
  std::string text = source_.read(split);
  if (sha256_hex(text) != checksums_[index(split)]) {
    throw DataError(source_.origins[index(split)] + ": changed while it was in use");
  }
  return text;
}

std::map<std::string, std::string> Corpus::fingerprint() const {
  std::map<std::string, std::string> facts;
  for (const Split split : kSplits)
    facts[name() + "/" + to_string(split)] = checksums_[index(split)];
  facts["vocabulary"] = std::to_string(vocabulary_.size()) + " words";
  return facts;
}

std::string Corpus::description() const {
  std::vector<std::string> tokens, unknown;
  for (const Split split : kSplits) {
    const std::vector<int32_t>& stream = streams_[index(split)];
    tokens.push_back(to_string(split) + (" " + std::to_string(stream.size())));
    unknown.push_back(to_string(split) + (" " + unknown_share(stream, vocabulary_.unk())));
  }
  return "text: " + name() + ": " + source_.files + "; tokens: " + join(tokens) +
         "; vocabulary: " + std::to_string(vocabulary_.size()) +
         "; unknown words: " + join(unknown);
}

void Corpus::require_tokens(Split split, int64_t min_tokens) const {
  const auto size = static_cast<int64_t>(stream(split).size());
  if (size < min_tokens) {
    throw DataError(source_.origins[index(split)] + ": must have at least " +
                    std::to_string(min_tokens) + " tokens, has " + std::to_string(size) +
                    " (choose a smaller window or batch)");
  }
}

TextSource open_source(const std::string& name) {
  if (name == kSmallLanguage) return small_language_source();
  namespace fs = std::filesystem;
  const bool is_folder = name.find('/') != std::string::npos || fs::is_directory(name);
  if (is_folder) return folder_source(name, fs::path(name).filename().string());
  return folder_source(find_data(name).string(), name);
}

Corpus open_corpus(const std::string& name, int64_t max_words) {
  return Corpus(open_source(name), max_words);
}

}  // namespace elliptical::data
