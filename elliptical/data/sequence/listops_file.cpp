// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/listops_file.h"

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"
#include "elliptical/data/sequence/encodings_impl.h"
#include "elliptical/data/sequence/line_file.h"
#include "elliptical/data/sequence/listops.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "Source\tTarget";

class ListOpsFile : public SequenceSet {
 public:
  ListOpsFile(const fs::path& file, const std::string& name, Split split, int64_t max_length)
      : SequenceSet(SequenceForm{.name = name,
                                 .class_names = digit_names(),
                                 .vocabulary = listops_vocabulary(),
                                 .max_length = max_length}),
        split_(split),
        lines_(file, [this](std::string_view line, const std::string& where) {
          return check(line, where);
        }) {}

  int64_t size() const override { return lines_.size(); }
  int64_t label(int64_t index) const override { return values_[static_cast<size_t>(index)]; }
  std::string origin(int64_t index) const override { return lines_.where(index); }
  std::map<std::string, std::string> fingerprint() const override {
    return {{to_string(split_), lines_.sha256()}};
  }

 protected:
  SequenceExample read(int64_t index) const override {
    ListOpsRow row = parse_listops_row(lines_.line(index), format_, lines_.where(index));
    return listops_example(std::move(row.tokens), row.value, form().max_length, origin(index));
  }

 private:
  /// False for the header.
  bool check(std::string_view line, const std::string& where) {
    if (line == kHeader && values_.empty() && format_ == ListOpsForm::kValueFirst) {
      format_ = ListOpsForm::kExpressionFirst;
      return false;
    }
    ListOpsRow row = parse_listops_row(line, format_, where);
    values_.push_back(static_cast<uint8_t>(row.value));
    listops_example(std::move(row.tokens), row.value, form().max_length, where);
    return true;
  }

  Split split_;
  ListOpsForm format_ = ListOpsForm::kValueFirst;  ///< until a header says otherwise
  std::vector<uint8_t> values_;
  LineFile lines_;  ///< last: reading it fills the others
};

}  // namespace

ListOpsRow parse_listops_row(std::string_view line, ListOpsForm form, const std::string& where) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos) {
    throw DataError(where +
                    ": must have 2 columns with a tab between, an expression and its value");
  }
  std::string_view value = line.substr(0, tab), expression = line.substr(tab + 1);
  if (form == ListOpsForm::kExpressionFirst) std::swap(value, expression);
  if (value.size() != 1 || value[0] < '0' || value[0] > '9') {
    throw DataError(where + ": the value must be a digit, is \"" + printable(value.substr(0, 20)) +
                    "\"");
  }
  ListOpsRow row{.tokens = parse_listops(expression, where), .value = value[0] - '0'};
  const int64_t right = listops_value(row.tokens);
  if (right != row.value) {
    throw DataError(where + ": the value must be " + std::to_string(right) + ", is " +
                    std::string(value));
  }
  return row;
}

fs::path listops_file(const fs::path& folder, Split split) {
  const char* in_arena = split == Split::kTrain   ? "basic_train.tsv"
                         : split == Split::kValid ? "basic_val.tsv"
                                                  : "basic_test.tsv";
  for (const fs::path& file : {folder / in_arena, folder / (to_string(split) + "_d20s.tsv")}) {
    if (has_lines(file)) return file;
  }
  return {};
}

std::unique_ptr<SequenceSet> open_listops_file(const fs::path& file,
                                               const std::string& name,
                                               Split split,
                                               int64_t max_length) {
  return std::make_unique<ListOpsFile>(file, name, split, max_length);
}

}  // namespace elliptical::data
