// SPDX-License-Identifier: MIT
#include "elliptical/run/generate_text.h"

#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/run/load_run.h"
#include "elliptical/run/train.h"
#include "elliptical/tasks/language_model.h"

namespace elliptical::run {

void generate_text(const GenerateRequest& request) {
  const RunPaths paths = find_run(request.folder);
  RunOptions options;
  read_config(paths, options);
  const auto* const lm_options =
      dynamic_cast<const tasks::LanguageModelOptions*>(&options.task.options());
  if (lm_options == nullptr) {
    throw UsageError("generate: " + request.folder.string() +
                     " must hold a language model, holds a " + options.task.name());
  }
  const ChosenWeights weights = choose_weights(
      paths, options, {.folder = request.folder, .step = request.step, .hooks = request.hooks});
  const data::Vocabulary vocabulary =
      tasks::open_vocabulary(lm_options->data, weights.checkpoint.vocabulary);
  const auto model =
      tasks::make_lm(*lm_options, vocabulary.size(), static_cast<uint64_t>(options.seed),
                     tasks::TaskUse::kMeasuring);
  weights.copy_into(*model);

  const tasks::Prompt prompt = tasks::read_prompt(request.prompt, vocabulary);
  for (const std::string& word : prompt.unknown) {
    request.hooks.say("prompt: \"" + word + "\" is not in the vocabulary, read as <unk>");
  }
  const int64_t window = lm_options->model.window;
  if (static_cast<int64_t>(prompt.tokens.size()) + request.options.num_tokens > window) {
    request.hooks.say("generate: the text gets longer than the " + std::to_string(window) +
                      " tokens that the model was trained on");
  }

  request.on_text(request.prompt);
  bool at_line_start = request.prompt.empty() || request.prompt.back() == '\n';
  tasks::generate(*model, prompt.tokens, request.options, [&](int32_t token) {
    const bool ends_line = token == data::Vocabulary::kEos;
    const std::string piece =
        ends_line ? "\n" : (at_line_start ? "" : " ") + vocabulary.word(token);
    at_line_start = ends_line;
    return request.on_text(piece);
  });
  if (!at_line_start) request.on_text("\n");
}

}  // namespace elliptical::run
