// SPDX-License-Identifier: MIT
#include "elliptical/base/names.h"

#include <algorithm>
#include <numeric>

#include "elliptical/base/errors.h"

namespace elliptical {

int edit_distance(std::string_view a, std::string_view b) {
  // row[j]: distance of the first i characters of a from the first j of b.
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];  // row[j - 1] of the previous i
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::vector<std::string> name_list(const std::string& text, const std::string& subject) {
  std::vector<std::string> names;
  for (const std::string& name : split(text)) {
    if (name.empty()) {
      throw UsageError(subject + ": must be a list like a,b, got \"" + text + "\"");
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw UsageError(subject + ": must name each once, got \"" + name + "\" twice");
    }
    names.push_back(name);
  }
  return names;
}

void add_once(const std::string& line, std::vector<std::string>& lines) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

const std::string* nearest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  int least = 0;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(name, candidate);
    if (nearest == nullptr || distance < least) {
      nearest = &candidate;
      least = distance;
    }
  }
  const bool near = nearest != nullptr && least * 2 <= static_cast<int>(nearest->size());
  return near ? nearest : nullptr;
}

std::string unknown_name(std::string_view name, const std::vector<std::string>& known) {
  const std::string text = "unknown \"" + std::string(name) + "\"";
  if (const std::string* nearest = nearest_name(name, known)) {
    return text + ", did you mean \"" + *nearest + "\"?";
  }
  return text + ", known: " + join(known);
}

}  // namespace elliptical
