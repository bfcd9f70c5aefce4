// SPDX-License-Identifier: MIT
//
// Made-up stand-ins for the texts of Long Range Arena, in the form of the originals, so that its
// tasks train without any download. They are made of lines of the small language, each of which has
// one of its 12 topics; half of a document's lines have the document's own topic, the others any.
//     small-documents        one document as of IMDB; class 1: its topic is one of the last six
//     small-document-pairs   two documents as of AAN; class 1: both have the same topic
// Neither language nor labels are those of the originals, and accuracies are not comparable.
#pragma once

#include <memory>
#include <string_view>

#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

inline constexpr std::string_view kSmallDocuments = "small-documents",
                                  kSmallDocumentPairs = "small-document-pairs";

inline constexpr int64_t kSmallDocumentsTrain = 10'000, kSmallDocumentsEval = 1'000;

/// A document depends on seed, split and its number only. Lengths are log-normal: a median of 1,000
/// bytes for reviews, of 6,000 for papers, so that few reviews and most papers are cut at 4,000.
std::unique_ptr<SequenceSet> open_small_documents(bool is_pair,
                                                  Split split,
                                                  const OpenSequencesOptions& options);

}  // namespace elliptical::data
