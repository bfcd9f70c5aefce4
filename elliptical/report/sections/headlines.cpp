// SPDX-License-Identifier: MIT
//
// What the comparison says, first of all.
#include <algorithm>

#include "elliptical/report/escape.h"
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"

namespace elliptical::report {
namespace {

constexpr size_t kMaxHeadlines = 6;

}  // namespace

SectionParts headline_section(const ReportInput& input) {
  if (input.runs.empty()) return {};
  const std::vector<std::string> sentences = in_words(input.comparison);
  if (sentences.empty()) return {};
  const auto list = [&](size_t begin, size_t end) {
    std::string html = "<ul class=\"headlines\">\n";
    for (size_t i = begin; i < end; ++i) html += "<li>" + escape_html(sentences[i]) + "</li>\n";
    return html + "</ul>\n";
  };
  const size_t num_shown = std::min(sentences.size(), kMaxHeadlines);
  std::string html = "<section aria-label=\"In words\">\n" + list(0, num_shown);
  if (num_shown < sentences.size()) {
    html += "<details><summary>" + counted(sentences.size() - num_shown, "more sentence") +
            "</summary>\n" + list(num_shown, sentences.size()) + "</details>\n";
  }
  return {.html = html + "</section>\n"};
}

}  // namespace elliptical::report
