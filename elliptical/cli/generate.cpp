// SPDX-License-Identifier: MIT
//
// `elliptical generate RUN --prompt TEXT`: goes on with a text, word by word, as a run's newest
// checkpoint would.
#include "elliptical/run/generate_text.h"

#include <iostream>

#include "elliptical/base/printable.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"

namespace elliptical::cli {

int generate(const Arguments& arguments) {
  CLI::App app("Goes on with a text, word by word.", "generate");
  run::GenerateRequest request;
  int threads = 0;
  bool raw = false;
  app.add_option("RUN", request.folder, "folder of a run")->required();
  app.add_option("--prompt", request.prompt, "the text to go on with; a new line when absent");
  app.add_option("--tokens", request.options.num_tokens, "how many words")->capture_default_str();
  app.add_option("--temperature", request.options.temperature, "0: always the likeliest word")
      ->capture_default_str();
  app.add_option("--top-k", request.options.top_k, "only the k likeliest words; 0: all")
      ->capture_default_str();
  app.add_option("--seed", request.options.seed, "which text")->capture_default_str();
  add_step(app, request.step);
  app.add_flag("--raw", raw, "print words as they are, control characters too");
  add_threads(app, threads);
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  ProgressPrinter printer;
  request.hooks = printer.hooks();
  // Words of a text may hold sequences that terminals obey.
  request.on_text = [raw](const std::string& piece) {
    std::cout << (raw ? piece : printable(piece, LineEnds::kKeep));
    return static_cast<bool>(std::cout.flush());
  };
  run::generate_text(request);
  return 0;
}

}  // namespace elliptical::cli
