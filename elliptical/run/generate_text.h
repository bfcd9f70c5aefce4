// SPDX-License-Identifier: MIT
//
// A text that goes on as a run's language model would write it: what `generate` does. Weights and
// words are those of a checkpoint; the text that the run was trained on is not read, except for
// checkpoints of versions that did not keep the words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "elliptical/run/evaluate.h"
#include "elliptical/tasks/generate.h"

namespace elliptical::run {

struct GenerateRequest {
  std::filesystem::path folder;
  int64_t step = -1;   ///< of the checkpoint; -1: the newest that can be used
  std::string prompt;  ///< empty: a new line
  tasks::GenerateOptions options;
  LoopHooks hooks;  ///< hear which words are unknown, and when the text gets too long
  /// The text, piece by piece as it comes, the prompt first; ends with the end of a line. False
  /// ends it.
  std::function<bool(const std::string& piece)> on_text;
};

/// UsageError where the run is no language model or options make no sense, ConfigError where the
/// model can not go on word by word.
void generate_text(const GenerateRequest& request);

}  // namespace elliptical::run
