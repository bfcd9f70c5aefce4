// SPDX-License-Identifier: MIT
#include "elliptical/run/generate_text.h"

#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/run/load_run.h"
#include "elliptical/run/train.h"

namespace elliptical::run {

void generate_text(const GenerateRequest& request) {
  const RunPaths paths = find_run(request.folder);
  RunOptions options;
  read_config(paths, options);
  const auto make_writer = tasks::find_task(options.task.name()).make_writer;
  if (make_writer == nullptr) {
    throw UsageError("generate: " + request.folder.string() +
                     " must hold a language model, holds a " + options.task.name());
  }
  const ChosenWeights weights = choose_weights(
      paths, options, {.folder = request.folder, .step = request.step, .hooks = request.hooks});
  const auto writer =
      make_writer(options.task.options(), {.seed = static_cast<uint64_t>(options.seed),
                                           .use = tasks::TaskUse::kMeasuring,
                                           .vocabulary = weights.checkpoint.vocabulary});
  weights.copy_into(writer->model());
  const data::Vocabulary& vocabulary = writer->vocabulary();

  const tasks::Prompt prompt = tasks::read_prompt(request.prompt, vocabulary);
  for (const std::string& word : prompt.unknown) {
    request.hooks.say("prompt: \"" + word + "\" is not in the vocabulary, read as <unk>");
  }
  const int64_t window = writer->window();
  if (static_cast<int64_t>(prompt.tokens.size()) + request.options.num_tokens > window) {
    request.hooks.say("generate: the text gets longer than the " + std::to_string(window) +
                      " tokens that the model was trained on");
  }

  request.on_text(request.prompt);
  bool at_line_start = request.prompt.empty() || request.prompt.back() == '\n';
  writer->write(prompt.tokens, request.options, [&](int32_t token) {
    const bool ends_line = token == data::Vocabulary::kEos;
    const std::string piece =
        ends_line ? "\n" : (at_line_start ? "" : " ") + vocabulary.word(token);
    at_line_start = ends_line;
    return request.on_text(piece);
  });
  if (!at_line_start) request.on_text("\n");
}

}  // namespace elliptical::run
