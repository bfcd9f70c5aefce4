// SPDX-License-Identifier: MIT
#include "elliptical/measure/attack_flags.h"

#include <array>
#include <string_view>

#include "elliptical/measure/labels.h"

namespace elliptical::measure {
namespace {

struct Flag {
  const char *label, *words, *advice;
};
constexpr std::array kDoubts = {
    Flag{kFlagRandomised, "its answers differ between passes over the same picture",
         "attack it with --attack auto-attack --set auto-attack.version=rand"},
    Flag{kFlagProbabilities, "it gives probabilities, whose gradients vanish where it is sure",
         "attack what comes before the softmax"},
    Flag{kFlagZeroGradients, "some pictures have no gradient",
         "believe attacks without gradients more: --attack square,spsa"},
    Flag{kFlagSquareBeatsGradients,
         "a search without gradients broke pictures that gradients had not",
         "search longer: --set auto-attack.square.queries=20000"}};

bool is_set(const Record& record, const char* label) {
  return flag_label(record, label).value_or(false);
}

}  // namespace

std::vector<std::string> attack_doubts(const Record& record) {
  std::vector<std::string> doubts;
  // This version averages over passes: it is made for such models.
  const bool is_averaged =
      label_text(record, "attack_options").find("version=\"rand\"") != std::string::npos;
  for (const Flag& flag : kDoubts) {
    if (!is_set(record, flag.label) ||
        (is_averaged && std::string_view(flag.label) == kFlagRandomised))
      continue;
    doubts.push_back(std::string(flag.words) + ": " + flag.label + " (" + flag.advice + ")");
  }
  if (const std::string skipped = label_text(record, kSkippedStages); !skipped.empty()) {
    doubts.push_back(skipped + " was skipped, the model has too few classes for it: " +
                     kSkippedStages + " (the other attacks are all there is)");
  }
  return doubts;
}

std::vector<std::string> attack_remarks(const Record& record) {
  if (!is_set(record, kFlagFewClasses) || !label_text(record, kSkippedStages).empty()) return {};
  return {std::string("there are fewer classes than apgd-t has targets, it led to each of them: ") +
          kFlagFewClasses + " (nothing is lost)"};
}

}  // namespace elliptical::measure
