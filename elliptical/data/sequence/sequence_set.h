// SPDX-License-Identifier: MIT
//
// Labelled sequences of ids by number, single or in pairs: the data of Long Range Arena (Tay et al.
// 2021), and whatever has its form. docs/long-range-arena.md says what each set is. By name:
//     listops                 generated with the grammar of Long Range Arena (listops_generator.h)
//     listops-2018            the test set of the original ListOps (listops_file.h)
//     imdb                    reviews as bytes (text_rows.h)
//     small-documents, small-document-pairs      made up of the small language (small_documents.h)
//     pathfinder-32, pathfinder-32/6, .../9, pathfinder-128   generated (pathfinder.h)
//     cifar-10, small-pictures                   in grey, a pixel an id (grey_pictures.h)
//     some/folder             any folder (a name with a slash, or a folder that exists):
//                             basic_train.tsv ...          ListOps as Long Range Arena released it
//                             new_aan_pairs.train.tsv ...  its Retrieval
//                             imgs/ and metadata/          its Pathfinder
//                             train.tsv or train.jsonl ..., train/CLASS/*.txt ...   texts
//                             train/CLASS/*.png ...        pictures
// Id 0 is padding, which no example has: an example is as long as it is. (Only raw pixel ids, which
// the published pipeline has, use 0 for black.)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "elliptical/data/split.h"

namespace elliptical::data {

struct SequenceExample {
  std::vector<int32_t> ids;         ///< at least 1, at most max_length()
  std::vector<int32_t> second_ids;  ///< the second document of a pair, else empty
  int64_t label = 0;
  /// What reports sort by or show: `length` of ListOps and `depth`, `bytes` of a text before it was
  /// cut, `marker_1_y` of Pathfinder. The same names in every example of a set.
  std::map<std::string, int64_t> facts;
};

/// What all examples of a set have in common.
struct SequenceForm {
  std::string name;
  std::vector<std::string> class_names;
  std::vector<std::string> vocabulary;  ///< what each id stands for, for people
  int64_t max_length = 0;
  bool is_pair = false;
  int64_t side = 0;  ///< of pictures: ids are side x side pixels, row by row; else 0
};

class SequenceSet {
 public:
  virtual ~SequenceSet() = default;
  SequenceSet(const SequenceSet&) = delete;
  SequenceSet& operator=(const SequenceSet&) = delete;

  const SequenceForm& form() const { return form_; }
  const std::string& name() const { return form_.name; }
  int64_t num_classes() const { return static_cast<int64_t>(form_.class_names.size()); }
  int64_t num_ids() const { return static_cast<int64_t>(form_.vocabulary.size()); }

  virtual int64_t size() const = 0;
  /// 0 to num_classes() - 1.
  virtual int64_t label(int64_t index) const = 0;
  /// What messages call an example: a file and a line, or a set and a number.
  virtual std::string origin(int64_t index) const = 0;
  /// Example number `index`, read or made when it is asked for. May be called from any number of
  /// threads. Files were checked as a whole when the set was opened; DataError if one changed since.
  SequenceExample get(int64_t index) const;
  /// Checksums by name: equal means the same data.
  virtual std::map<std::string, std::string> fingerprint() const = 0;

 protected:
  explicit SequenceSet(SequenceForm form) : form_(std::move(form)) {}
  /// `index` is in range. May be called from any number of threads.
  virtual SequenceExample read(int64_t index) const = 0;

 private:
  SequenceForm form_;
};

/// Which id a pixel of value v has.
enum class PixelIds {
  kShifted,  ///< v + 1: nothing but padding is padding
  kRaw       ///< v, as the published pipeline has it: black pixels look like padding to a model
};

struct OpenSequencesOptions {
  /// Ids of an example at most; 0: what Long Range Arena has (ListOps 2,000, texts 4,000, pictures
  /// all of their pixels).
  int64_t max_length = 0;
  /// Longer texts are cut, as published; true: they are an error. A longer expression always is
  /// one, since its beginning has another value.
  bool refuse_longer = false;
  PixelIds pixel_ids = PixelIds::kShifted;
  int64_t side = 32;  ///< of pictures in files and of small-pictures: width and height
  uint64_t seed = 1;  ///< of generated sets
  /// Of generated sets: examples of train, and of valid and of test; 0: as many as Long Range Arena
  /// has.
  int64_t train_examples = 0, eval_examples = 0;
};

/// Opens one split of a set by name or folder as above. Files are read and checked as a whole: what
/// is wrong with one is a DataError with file and line now.
std::unique_ptr<SequenceSet> open_sequences(const std::string& name,
                                            Split split,
                                            const OpenSequencesOptions& options = {});

/// The same for a folder alone.
std::unique_ptr<SequenceSet> open_sequence_folder(const std::string& folder,
                                                  const std::string& name,
                                                  Split split,
                                                  const OpenSequencesOptions& options);

/// Names that open_sequences knows without a folder.
std::vector<std::string> sequence_set_names();

}  // namespace elliptical::data
