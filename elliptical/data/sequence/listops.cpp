// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/listops.h"

#include <algorithm>
#include <array>

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"

namespace elliptical::data {
namespace {

bool is_operator(int32_t token) { return token >= kListOpsMin && token <= kListOpsSum; }
bool is_digit(int32_t token) { return token >= kListOpsDigit && token < kListOpsDigit + 10; }

/// The id of a word; 0 when it is none.
int32_t token_of(std::string_view word) {
  const auto& names = listops_vocabulary();
  for (int32_t id = kListOpsMin; id < kListOpsUnknown; ++id) {
    if (names[static_cast<size_t>(id)] == word) return id;
  }
  return 0;
}

int64_t median(std::vector<int64_t>& values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

int64_t value_of(int32_t op, std::vector<int64_t> values) {
  switch (op) {
    case kListOpsMin:
      return *std::min_element(values.begin(), values.end());
    case kListOpsMax:
      return *std::max_element(values.begin(), values.end());
    case kListOpsMed:
      return median(values);
    default: {
      int64_t sum = 0;
      for (const int64_t value : values) sum += value;
      return sum % 10;
    }
  }
}

/// Takes the words of a text one after the other and says what is wrong with one.
class Parser {
 public:
  explicit Parser(const std::string& where) : where_(where) {}

  void take(std::string_view word) {
    ++number_;
    if (word == "(") {
      ++round_;
      return;
    }
    if (word == ")") {
      if (--round_ < 0) fail("must have a ( before each ), has none");
      return;
    }
    const int32_t token = token_of(word);
    if (token == 0) {
      fail("must be [MIN, [MAX, [MED, [SM, ], a digit or a round bracket, is \"" +
           printable(word.substr(0, 20)) + "\"");
    }
    if (is_complete()) fail("must be one expression, goes on after its end");
    if (token == kListOpsEnd) {
      if (num_arguments_.empty()) fail("must have an operator before each ], has none");
      if (num_arguments_.back() == 0) fail("must have an argument for each operator, has none");
      num_arguments_.pop_back();
      count_argument();
    } else if (is_operator(token)) {
      num_arguments_.push_back(0);
      if (static_cast<int64_t>(num_arguments_.size()) >= kMaxListOpsDepth) {
        fail("must be nested at most " + std::to_string(kMaxListOpsDepth) + " deep, is deeper");
      }
    } else {
      count_argument();
    }
    tokens_.push_back(token);
  }

  std::vector<int32_t> finish() {
    if (tokens_.empty()) fail("must be an expression, is empty");
    if (!num_arguments_.empty()) {
      fail("must have a ] for each operator, lacks " + std::to_string(num_arguments_.size()));
    }
    if (round_ > 0) fail("must have a ) for each (, lacks " + std::to_string(round_));
    return std::move(tokens_);
  }

 private:
  bool is_complete() const { return num_arguments_.empty() && !tokens_.empty(); }
  void count_argument() {
    if (!num_arguments_.empty()) ++num_arguments_.back();
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(where_ + ": " + what + " (token " + std::to_string(number_) + ")");
  }

  const std::string& where_;
  int64_t number_ = 0, round_ = 0;
  std::vector<int64_t> num_arguments_;  ///< of the operators that are open
  std::vector<int32_t> tokens_;
};

}  // namespace

const std::vector<std::string>& listops_vocabulary() {
  static const std::vector<std::string> names = {"<pad>", "[MIN", "[MAX", "[MED", "[SM",  "]",
                                                 "0",     "1",    "2",    "3",    "4",    "5",
                                                 "6",     "7",    "8",    "9",    "<unk>"};
  return names;
}

std::vector<int32_t> parse_listops(std::string_view text, const std::string& where) {
  Parser parser(where);
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    if (end > start) parser.take(text.substr(start, end - start));
    start = end + 1;
  }
  return parser.finish();
}

int64_t listops_value(const std::vector<int32_t>& tokens) {
  struct Open {
    int32_t op;
    std::vector<int64_t> values;
  };
  std::vector<Open> open = {{kListOpsMax, {}}};  // holds the value of the whole
  for (const int32_t token : tokens) {
    if (is_operator(token)) {
      open.push_back({token, {}});
      continue;
    }
    int64_t value = token - kListOpsDigit;
    if (token == kListOpsEnd) {
      value = value_of(open.back().op, std::move(open.back().values));
      open.pop_back();
    }
    open.back().values.push_back(value);
  }
  return open.front().values.front();
}

int64_t listops_depth(const std::vector<int32_t>& tokens) {
  int64_t open = 0, deepest = 0;
  for (const int32_t token : tokens) {
    if (is_operator(token)) ++open;
    if (is_digit(token)) deepest = std::max(deepest, open + 1);
    if (token == kListOpsEnd) --open;
  }
  return deepest;
}

std::string print_listops(const std::vector<int32_t>& tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    if (!text.empty()) text += ' ';
    text += listops_vocabulary()[static_cast<size_t>(token)];
  }
  return text;
}

std::string print_binarised_listops(const std::vector<int32_t>& tokens) {
  // An operator with k arguments stands behind k + 1 round brackets, and each argument and the end
  // closes one of them; so the number of arguments is needed before they come.
  std::vector<int64_t> num_arguments(tokens.size());
  std::vector<size_t> open;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == kListOpsEnd) open.pop_back();
    if (!is_operator(tokens[i]) && !open.empty()) ++num_arguments[open.back()];
    if (is_operator(tokens[i])) open.push_back(i);
  }
  std::string text;
  int64_t depth = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ' ';
    if (is_operator(tokens[i])) {
      for (int64_t k = 0; k <= num_arguments[i]; ++k) text += "( ";
      ++depth;
    }
    text += listops_vocabulary()[static_cast<size_t>(tokens[i])];
    if (is_operator(tokens[i])) continue;
    if (tokens[i] == kListOpsEnd) {
      text += " )";  // that of the operator itself
      --depth;
    }
    if (depth > 0) text += " )";  // that of an argument
  }
  return text;
}

}  // namespace elliptical::data
