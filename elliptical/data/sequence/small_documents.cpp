// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/small_documents.h"

#include <algorithm>
#include <cmath>

#include "elliptical/base/distributions.h"
#include "elliptical/data/sequence/encodings_impl.h"
#include "elliptical/data/sequence/generated_set_impl.h"
#include "elliptical/data/sequence/text_rows.h"
#include "elliptical/data/text/small_language.h"

namespace elliptical::data {
namespace {

constexpr double kOwnTopicShare = 0.5;

/// About that many bytes, whole lines, without an end of the last one.
std::string write_document(RandomKey key, uint64_t topic, double median_bytes) {
  RandomStream random(key);
  constexpr double kDeviation = 0.6;  // IMDB: mean 1,300, median 970, 3 % above 4,000
  const auto num_bytes =
      static_cast<size_t>(std::clamp(median_bytes * std::exp(kDeviation * draw_normal(random)),
                                     median_bytes / 10, median_bytes * 10));
  std::string text;
  for (uint64_t line = 0; text.size() < num_bytes; ++line) {
    if (!text.empty()) text += '\n';
    const bool is_own = draw_bool(random, kOwnTopicShare);
    const uint64_t line_topic = is_own ? topic : random.below(kSmallLanguageTopics);
    text += small_language_line(key.derive(line), line_topic);
  }
  return text;
}

class SmallDocuments : public GeneratedSet {
 public:
  SmallDocuments(bool is_pair, Split split, const OpenSequencesOptions& options)
      : GeneratedSet({.name = std::string(is_pair ? kSmallDocumentPairs : kSmallDocuments),
                      .class_names = is_pair ? std::vector<std::string>{"other topic", "same topic"}
                                             : std::vector<std::string>{"first six", "last six"},
                      .vocabulary = byte_vocabulary(),
                      .max_length = text_length(options),
                      .is_pair = is_pair},
                     split,
                     options,
                     kSmallDocumentsTrain,
                     kSmallDocumentsEval,
                     "document") {}

  int64_t label(int64_t index) const override { return topics(index).label; }

 protected:
  SequenceExample read(int64_t index) const override {
    constexpr double kReviewBytes = 1000, kPaperBytes = 6000;
    const Topics drawn = topics(index);
    const bool is_pair = form().is_pair;
    const double median = is_pair ? kPaperBytes : kReviewBytes;
    const std::string first = write_document(key(index).derive("first"), drawn.first, median);
    check_document(first, form().max_length, options().refuse_longer, origin(index));
    SequenceExample example{.ids = byte_ids(first, form().max_length),
                            .second_ids = {},
                            .label = drawn.label,
                            .facts = {{"bytes", static_cast<int64_t>(first.size())}}};
    if (is_pair) {
      const std::string second = write_document(key(index).derive("second"), drawn.second, median);
      check_document(second, form().max_length, options().refuse_longer, origin(index));
      example.second_ids = byte_ids(second, form().max_length);
      example.facts["second_bytes"] = static_cast<int64_t>(second.size());
    }
    return example;
  }

 private:
  struct Topics {
    uint64_t first, second;
    int64_t label;
  };

  RandomKey key(int64_t index) const {
    return RandomKey(options().seed)
        .derive(name())
        .derive(to_string(split()))
        .derive(static_cast<uint64_t>(index));
  }

  /// Both labels are equally likely.
  Topics topics(int64_t index) const {
    RandomStream random(key(index));
    const uint64_t topic = random.below(kSmallLanguageTopics);
    if (!form().is_pair) return {topic, topic, topic < kSmallLanguageTopics / 2 ? 0 : 1};
    const auto label = static_cast<int64_t>(random.below(2));
    const uint64_t step = 1 + random.below(kSmallLanguageTopics - 1);
    return {topic, label == 1 ? topic : (topic + step) % kSmallLanguageTopics, label};
  }
};

}  // namespace

std::unique_ptr<SequenceSet> open_small_documents(bool is_pair,
                                                  Split split,
                                                  const OpenSequencesOptions& options) {
  return std::make_unique<SmallDocuments>(is_pair, split, options);
}

}  // namespace elliptical::data
