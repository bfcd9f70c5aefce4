// SPDX-License-Identifier: MIT
#include "bench/decode.h"

#include <torch/torch.h>

#include <chrono>
#include <memory>

#include "elliptical/models/lm.h"

namespace elliptical::bench {
namespace {

constexpr int64_t kPrefillTokens = 128;  ///< fed at once on the way to a position

/// A model and the stream that it reads.
struct Decoder {
  Decoder(const TrainingCase& shape, const std::string& attention)
      : model(lm_options(shape, attention), shape.vocabulary_size) {
    model.initialize(1);
    model.eval();
  }

  void advance_to(int64_t position) {
    while (stream.num_tokens() < position) {
      const int64_t count = std::min(kPrefillTokens, position - stream.num_tokens());
      stream.step(torch::arange(1, count + 1).unsqueeze(0));
    }
  }

  double next_token() {
    const auto start = std::chrono::steady_clock::now();
    const at::NoGradGuard no_grad;
    const at::Tensor hidden = stream.step(torch::ones({1, 1}, torch::kLong));
    model.log_probabilities(hidden.flatten(0, 1));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  models::Lm model;
  models::LmStream stream{model};
};

}  // namespace

std::vector<DecodeResult> measure_decode(const TrainingCase& shape,
                                         const std::vector<std::string>& attentions,
                                         const std::vector<int64_t>& positions,
                                         int repeats,
                                         const ProgressFn& progress) {
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (const std::string& attention : attentions) {
    decoders.push_back(std::make_unique<Decoder>(shape, attention));
  }
  std::vector<DecodeResult> results;
  size_t done = 0;
  for (const int64_t position : positions) {
    if (progress)
      progress(done++, positions.size(), "after " + std::to_string(position) + " tokens");
    for (const auto& decoder : decoders) decoder->advance_to(position);
    const auto timings = take_turns(decoders.size(), {.warm_up = 0, .repeats = repeats},
                                    [&](size_t d) { return decoders[d]->next_token(); });
    for (size_t d = 0; d < decoders.size(); ++d) {
      results.push_back({attentions[d], position, timings[d]});
    }
  }
  if (progress) progress(done, positions.size(), "done");
  return results;
}

}  // namespace elliptical::bench
