// SPDX-License-Identifier: MIT
//
// Labelled texts, one example a line:
//     TSV      columns with tabs between, no quoting. A first line with a column named `label` is a
//              header: the texts are `text` (or `sentence`), or `text1` and `text2` of a pair.
//              Without a header a line is LABEL TAB TEXT, or LABEL TAB TEXT1 TAB TEXT2.
//     AAN      new_aan_pairs.{train,eval,test}.tsv, Retrieval of Long Range Arena: label (0.0 or
//              1.0), two ids, two texts; no header
//     JSONL    an object a line with `label` (text or a whole number) and `text`, as IMDB is packed
// A text is its bytes: id = byte + 1, cut to the maximum length. Classes are the labels of the
// training file, in the order of numbers where all are numbers, else of their bytes.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

struct TextRow {
  std::string label;
  std::array<std::string, 2> texts;  ///< the second one of pairs only
};

/// Which columns of a TSV file are which, counted from 0.
struct TextColumns {
  size_t count = 0, label = 0, first = 0;
  std::optional<size_t> second;
};

inline constexpr TextColumns kAanColumns = {.count = 5, .label = 0, .first = 3, .second = 4};

/// What the first line of a TSV file says; `is_header` is set. DataError "WHERE: ..." when it says
/// nothing that makes sense.
TextColumns find_text_columns(std::string_view first_line,
                              const std::string& where,
                              bool& is_header);

/// Throw DataError "WHERE: ..." unless the line is such a row, with a label and with texts that are
/// not empty and have no NUL byte.
TextRow parse_tsv_row(std::string_view line, const TextColumns& columns, const std::string& where);
TextRow parse_json_row(std::string_view line, const std::string& where);

enum class TextRowForm { kTsv, kAan, kJson };

/// `train_file` names the classes; the same as `file` for the training split. For JSON rows of IMDB
/// and for AAN the classes are known.
std::unique_ptr<SequenceSet> open_text_rows(const std::filesystem::path& file,
                                            const std::filesystem::path& train_file,
                                            TextRowForm form,
                                            const std::string& name,
                                            Split split,
                                            const OpenSequencesOptions& options);

/// The form of the published texts: 4,000 bytes unless the options say otherwise.
int64_t text_length(const OpenSequencesOptions& options);

}  // namespace elliptical::data
