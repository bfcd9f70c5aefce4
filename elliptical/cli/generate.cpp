// SPDX-License-Identifier: MIT
//
// `elliptical generate RUN --prompt TEXT`: goes on with a text, word by word, as a run's newest
// checkpoint would.
#include <torch/torch.h>

#include <iostream>

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/tasks/generate.h"
#include "elliptical/tasks/language_model.h"

namespace elliptical::cli {

int generate(const Arguments& arguments) {
  CLI::App app("Goes on with a text, word by word.", "generate");
  std::filesystem::path folder;
  std::string prompt_text;
  tasks::GenerateOptions options;
  int64_t step = -1;
  int threads = 0;
  bool raw = false;
  app.add_option("RUN", folder, "folder of a run")->required();
  app.add_option("--prompt", prompt_text, "the text to go on with; a new line when absent");
  app.add_option("--tokens", options.num_tokens, "how many words")->capture_default_str();
  app.add_option("--temperature", options.temperature, "0: always the likeliest word")
      ->capture_default_str();
  app.add_option("--top-k", options.top_k, "only the k likeliest words; 0: all")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "which text")->capture_default_str();
  add_step(app, step);
  app.add_flag("--raw", raw, "print words as they are, control characters too");
  add_threads(app, threads);
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  ProgressPrinter printer;
  const run::LoopHooks hooks = printer.hooks();
  LoadedRun loaded = load_run(folder, step, hooks);
  auto* const task = dynamic_cast<tasks::LanguageModelTask*>(loaded.task.get());
  if (task == nullptr) {
    throw UsageError("generate: " + folder.string() + " must hold a language model, holds a " +
                     loaded.options.task.name());
  }
  task->lm().eval();
  const data::Vocabulary& vocabulary = task->corpus().vocabulary();
  const tasks::Prompt prompt = tasks::read_prompt(prompt_text, vocabulary);
  for (const std::string& word : prompt.unknown) {
    hooks.say("prompt: \"" + word + "\" is not in the vocabulary, read as <unk>");
  }
  const int64_t window = task->lm().options.window;
  if (static_cast<int64_t>(prompt.tokens.size()) + options.num_tokens > window) {
    hooks.say("generate: the text gets longer than the " + std::to_string(window) +
              " tokens that the model was trained on");
  }

  // Words of a text may hold sequences that terminals obey.
  const auto shown = [raw](const std::string& text) {
    return raw ? text : printable(text, LineEnds::kKeep);
  };
  std::cout << shown(prompt_text);
  bool at_line_start = prompt_text.empty() || prompt_text.back() == '\n';
  tasks::generate(task->lm(), prompt.tokens, options, [&](int32_t token) {
    if (token == data::Vocabulary::kEos) {
      std::cout << '\n';
      at_line_start = true;
    } else {
      std::cout << (at_line_start ? "" : " ") << shown(vocabulary.word(token));
      at_line_start = false;
    }
    return static_cast<bool>(std::cout.flush());
  });
  if (!at_line_start) std::cout << '\n';
  return 0;
}

}  // namespace elliptical::cli
