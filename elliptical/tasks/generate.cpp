// SPDX-License-Identifier: MIT
#include "elliptical/tasks/generate.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/base/random.h"
#include "elliptical/data/text/tokens.h"

namespace elliptical::tasks {
namespace {

void check(const GenerateOptions& options) {
  if (!(options.temperature >= 0.0 && std::isfinite(options.temperature))) {
    throw UsageError("generate: temperature must be finite and not negative, got " +
                     std::to_string(options.temperature));
  }
  if (options.top_k < 0 || options.num_tokens < 0) {
    throw UsageError("generate: top_k and the number of tokens must not be negative, got " +
                     std::to_string(std::min(options.top_k, options.num_tokens)));
  }
}

}  // namespace

Prompt read_prompt(const std::string& text, const data::Vocabulary& vocabulary) {
  data::check_text(text, "prompt");
  Prompt prompt;
  data::for_each_token(
      text,
      [&](std::string_view word) {
        if (!vocabulary.contains(word)) prompt.unknown.emplace_back(word);
        prompt.tokens.push_back(vocabulary.id(word));
      },
      [&] { prompt.tokens.push_back(data::Vocabulary::kEos); });
  // A text that stops in the middle of a line goes on there.
  if (!text.empty() && text.back() != '\n') prompt.tokens.pop_back();
  if (prompt.tokens.empty()) prompt.tokens.push_back(data::Vocabulary::kEos);
  return prompt;
}

int32_t draw_token(const at::Tensor& log_probabilities,
                   const GenerateOptions& options,
                   double uniform) {
  // An impossible word is -inf; NaN wins in `max`, too.
  if (!std::isfinite(log_probabilities.max().item<double>())) {
    throw RunError(
        "generate: the model must give words probabilities, gives none that are numbers (its "
        "training has diverged: choose an older checkpoint with --step, or train it again with a "
        "lower optimizer.learning_rate)");
  }
  const int64_t num_words = log_probabilities.size(0);
  if (options.temperature == 0.0) {
    return static_cast<int32_t>(log_probabilities.argmax().item<int64_t>());
  }
  const int64_t num_kept = options.top_k > 0 ? std::min(options.top_k, num_words) : num_words;
  const auto [values, words] = log_probabilities.to(at::kDouble).topk(num_kept);
  const at::Tensor cumulative = (values / options.temperature).softmax(0).cumsum(0).contiguous();
  const double* const begin = cumulative.const_data_ptr<double>();
  const double total = begin[num_kept - 1];  // 1 up to rounding
  const auto place = std::upper_bound(begin, begin + num_kept, uniform * total) - begin;
  return static_cast<int32_t>(words[std::min(place, num_kept - 1)].item<int64_t>());
}

void generate(models::Lm& model,
              const std::vector<int32_t>& prompt,
              const GenerateOptions& options,
              const OnToken& on_token) {
  check(options);
  models::LmStream stream(model);
  std::vector<int64_t> next(prompt.begin(), prompt.end());
  const RandomKey key = RandomKey(options.seed).derive("generate");
  for (int64_t n = 0; n < options.num_tokens; ++n) {
    const at::Tensor tokens = torch::tensor(next, torch::kLong).unsqueeze(0);
    const at::Tensor hidden = stream.step(tokens).select(1, tokens.size(1) - 1);  // (1, C)
    const at::NoGradGuard no_grad;
    const int32_t token = draw_token(model.log_probabilities(hidden).squeeze(0), options,
                                     RandomStream(key.derive(static_cast<uint64_t>(n))).uniform());
    if (!on_token(token)) return;
    next = {token};
  }
}

}  // namespace elliptical::tasks
