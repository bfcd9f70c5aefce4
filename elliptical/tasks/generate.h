// SPDX-License-Identifier: MIT
//
// Text from a language model, word by word: each token is computed once, from the cache of those
// before it. What is drawn is a function of the seed and the number of the token.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "elliptical/data/text/vocabulary.h"
#include "elliptical/models/lm.h"

namespace elliptical::tasks {

struct GenerateOptions {
  int64_t num_tokens = 50;
  double temperature = 1.0;  ///< divides log-probabilities; 0: always the likeliest word
  int64_t top_k = 0;         ///< only the k likeliest words; 0: all
  uint64_t seed = 1;
};

/// A text as the model reads it: unlike a line of a corpus it has no `<eos>` unless a line ends.
struct Prompt {
  std::vector<int32_t> tokens;       ///< never empty: a lone `<eos>` starts a new line
  std::vector<std::string> unknown;  ///< words that are read as `<unk>`, in order
};
/// Throws DataError unless the text is UTF-8.
Prompt read_prompt(const std::string& text, const data::Vocabulary& vocabulary);

/// The next word; false ends the text.
using OnToken = std::function<bool(int32_t token)>;

/// Throws ConfigError with the reason when the model can not stream, UsageError for options that
/// make no sense, RunError as `draw_token`.
void generate(models::Lm& model,
              const std::vector<int32_t>& prompt,
              const GenerateOptions& options,
              const OnToken& on_token);

/// Draws from log-probabilities (V); `uniform` in [0, 1) decides. RunError where they are none: any
/// word that was drawn from them would look like a text of the model.
int32_t draw_token(const at::Tensor& log_probabilities,
                   const GenerateOptions& options,
                   double uniform);

}  // namespace elliptical::tasks
