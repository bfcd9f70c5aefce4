// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/text_rows.h"

#include <algorithm>
#include <functional>
#include <set>

#include "elliptical/base/errors.h"
#include "elliptical/base/json.h"
#include "elliptical/base/names.h"
#include "elliptical/base/printable.h"
#include "elliptical/data/sequence/encodings_impl.h"
#include "elliptical/data/sequence/line_file.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kArenaBytes = 4000;
constexpr size_t kMaxClasses = 1000;
constexpr size_t kMaxLabelBytes = 200;

std::vector<std::string_view> split_at_tabs(std::string_view line) {
  std::vector<std::string_view> cells;
  for (size_t start = 0; start <= line.size();) {
    const size_t end = std::min(line.find('\t', start), line.size());
    cells.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return cells;
}

void check_row(const TextRow& row, bool is_pair, const std::string& where) {
  if (row.label.empty() || row.label.size() > kMaxLabelBytes) {
    throw DataError(where + ": must have a label of 1 to " + std::to_string(kMaxLabelBytes) +
                    " bytes, has one of " + std::to_string(row.label.size()));
  }
  constexpr int64_t kAnyLength = int64_t{1} << 40;
  check_document(row.texts[0], kAnyLength, false, where);
  if (is_pair) check_document(row.texts[1], kAnyLength, false, where);
}

/// Turns lines into rows; learns the columns from the first line where it has to.
class RowReader {
 public:
  explicit RowReader(TextRowForm form) : form_(form) {
    if (form == TextRowForm::kAan) columns_ = kAanColumns;
  }

  bool is_pair() const { return columns_ && columns_->second; }

  /// To be called for each line in order; nothing for the header.
  std::optional<TextRow> take(std::string_view line, const std::string& where) {
    if (form_ == TextRowForm::kTsv && !columns_) {
      bool is_header = false;
      columns_ = find_text_columns(line, where, is_header);
      if (is_header) return std::nullopt;
    }
    return parse(line, where);
  }

  TextRow parse(std::string_view line, const std::string& where) const {
    TextRow row = form_ == TextRowForm::kJson ? parse_json_row(line, where)
                                              : parse_tsv_row(line, *columns_, where);
    // 0.0 and 1.0 are what a table of floats was written as.
    if (form_ == TextRowForm::kAan && row.label.ends_with(".0")) {
      row.label.resize(row.label.size() - 2);
    }
    return row;
  }

 private:
  TextRowForm form_;
  std::optional<TextColumns> columns_;
};

bool is_number(const std::string& text) {
  return text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// What a training file says about all splits.
struct RowClasses {
  std::vector<std::string> names;
  bool is_pair = false;
};

RowClasses classes_of(const fs::path& train_file, TextRowForm form) {
  if (form == TextRowForm::kAan) return {.names = {"0", "1"}, .is_pair = true};
  RowReader reader(form);
  std::set<std::string> labels;
  const LineFile lines(train_file, [&](std::string_view line, const std::string& where) {
    const auto row = reader.take(line, where);
    if (!row) return false;
    labels.insert(row->label);
    if (labels.size() > kMaxClasses) {
      throw DataError(where + ": must have at most " + std::to_string(kMaxClasses) +
                      " classes, has more (is the label the right column?)");
    }
    return true;
  });
  RowClasses classes{.names = {labels.begin(), labels.end()}, .is_pair = reader.is_pair()};
  if (classes.names.size() < 2) {
    throw DataError(train_file.string() + ": must have at least 2 classes, has only \"" +
                    printable(classes.names[0]) + "\"");
  }
  if (std::all_of(classes.names.begin(), classes.names.end(), is_number)) {
    std::stable_sort(
        classes.names.begin(), classes.names.end(),
        [](const std::string& a, const std::string& b) { return std::stol(a) < std::stol(b); });
  }
  return classes;
}

class TextRows : public SequenceSet {
 public:
  TextRows(const fs::path& file,
           const RowClasses& classes,
           TextRowForm form,
           const std::string& name,
           Split split,
           const OpenSequencesOptions& options)
      : SequenceSet(SequenceForm{.name = name,
                                 .class_names = classes.names,
                                 .vocabulary = byte_vocabulary(),
                                 .max_length = text_length(options),
                                 .is_pair = classes.is_pair}),
        split_(split),
        refuse_longer_(options.refuse_longer),
        reader_(form),
        lines_(file, [this](std::string_view line, const std::string& where) {
          return check(line, where);
        }) {
    if (reader_.is_pair() != classes.is_pair) {
      throw DataError(file.string() + ": must have the columns of the training file, has others");
    }
  }

  int64_t size() const override { return lines_.size(); }
  int64_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }
  std::string origin(int64_t index) const override { return lines_.where(index); }
  std::map<std::string, std::string> fingerprint() const override {
    return {{to_string(split_), lines_.sha256()}};
  }

 protected:
  SequenceExample read(int64_t index) const override {
    const std::string where = lines_.where(index);
    const TextRow row = reader_.parse(lines_.line(index), where);
    check_length(row, where);
    SequenceExample example{.ids = byte_ids(row.texts[0], this->form().max_length),
                            .second_ids = byte_ids(row.texts[1], this->form().max_length),
                            .label = label(index),
                            .facts = {{"bytes", static_cast<int64_t>(row.texts[0].size())}}};
    if (this->form().is_pair) {
      example.facts["second_bytes"] = static_cast<int64_t>(row.texts[1].size());
    }
    return example;
  }

 private:
  void check_length(const TextRow& row, const std::string& where) const {
    check_document(row.texts[0], form().max_length, refuse_longer_, where);
    if (form().is_pair) check_document(row.texts[1], form().max_length, refuse_longer_, where);
  }

  bool check(std::string_view line, const std::string& where) {
    const auto row = reader_.take(line, where);
    if (!row) return false;
    const auto& names = form().class_names;
    const auto place = std::find(names.begin(), names.end(), row->label);
    if (place == names.end()) {
      throw DataError(where + ": the label must be one of " +
                      (names.size() <= 10 ? printable(join(names)) : "the training file") +
                      ", is \"" + printable(row->label) + "\"");
    }
    check_length(*row, where);
    labels_.push_back(static_cast<uint16_t>(place - names.begin()));
    return true;
  }

  Split split_;
  bool refuse_longer_;
  RowReader reader_;
  std::vector<uint16_t> labels_;
  LineFile lines_;  ///< last: reading it fills the others
};

}  // namespace

int64_t text_length(const OpenSequencesOptions& options) {
  return options.max_length > 0 ? options.max_length : kArenaBytes;
}

TextColumns find_text_columns(std::string_view first_line,
                              const std::string& where,
                              bool& is_header) {
  const std::vector<std::string_view> cells = split_at_tabs(first_line);
  const auto find = [&](std::string_view name) -> std::optional<size_t> {
    const auto place = std::find(cells.begin(), cells.end(), name);
    if (place == cells.end()) return std::nullopt;
    return static_cast<size_t>(place - cells.begin());
  };
  const auto label = find("label");
  is_header = label.has_value();
  if (!is_header) {
    if (cells.size() < 2 || cells.size() > 3) {
      throw DataError(where +
                      ": must be LABEL TAB TEXT, LABEL TAB TEXT1 TAB TEXT2, or a header that names "
                      "its columns label and text, has " +
                      std::to_string(cells.size()) + " columns");
    }
    return {.count = cells.size(),
            .label = 0,
            .first = 1,
            .second = cells.size() == 3 ? std::optional<size_t>(2) : std::nullopt};
  }
  const auto second = find("text2");
  auto first = second ? find("text1") : find("text");
  if (!first && !second) first = find("sentence");
  if (!first) {
    throw DataError(where + ": must name the columns label and text, or label, text1 and text2, " +
                    "names " + printable(first_line.substr(0, 100)));
  }
  return {.count = cells.size(), .label = *label, .first = *first, .second = second};
}

TextRow parse_tsv_row(std::string_view line, const TextColumns& columns, const std::string& where) {
  const std::vector<std::string_view> cells = split_at_tabs(line);
  if (cells.size() != columns.count) {
    throw DataError(where + ": must have " + std::to_string(columns.count) +
                    " columns with tabs between, has " + std::to_string(cells.size()));
  }
  TextRow row{.label = std::string(cells[columns.label]),
              .texts = {std::string(cells[columns.first]),
                        columns.second ? std::string(cells[*columns.second]) : std::string()}};
  check_row(row, columns.second.has_value(), where);
  return row;
}

TextRow parse_json_row(std::string_view line, const std::string& where) {
  const auto value = parse_json<nlohmann::ordered_json>(line, where);
  const JsonFields fields(value, where);
  const bool is_text = fields.has("label") && value.at("label").is_string();
  TextRow row{
      .label = is_text ? fields.text("label") : std::to_string(fields.whole_number("label")),
      .texts = {fields.text("text"), ""}};
  check_row(row, false, where);
  return row;
}

std::unique_ptr<SequenceSet> open_text_rows(const fs::path& file,
                                            const fs::path& train_file,
                                            TextRowForm form,
                                            const std::string& name,
                                            Split split,
                                            const OpenSequencesOptions& options) {
  return std::make_unique<TextRows>(file, classes_of(train_file, form), form, name, split, options);
}

}  // namespace elliptical::data
