// SPDX-License-Identifier: MIT
#include "tests/run/run_fixture.h"

#include "elliptical/base/files.h"

namespace elliptical::run::testing {

RunTest::~RunTest() { toy_hook = nullptr; }

void RunTest::start(const std::string& name, const RunOptions& options) {
  {
    const RunLock lock = create_run_folder(paths(name));
    write_config(paths(name), config_text(options));
  }
  resume(name, options);
}

void RunTest::resume(const std::string& name, const RunOptions& options) {
  const std::unique_ptr<tasks::Task> task = make_toy_task(options);
  const RunLock lock(paths(name));
  train({.paths = paths(name),
         .options = &options,
         .task = task.get(),
         .program = "test",
         .hooks = {.notice = [this](const std::string& line) { notices_.push_back(line); }}});
}

std::string RunTest::state_bytes(const std::string& name) const {
  const fs::path checkpoints = paths(name).checkpoints();
  const fs::path newest =
      checkpoints / ("step-" + std::to_string(checkpoint_steps(checkpoints).back()));
  std::string bytes =
      read_file(newest / "model.safetensors") + read_file(newest / "optimizer.safetensors");
  for (const char* file : {"ema.safetensors", "task.safetensors"}) {
    if (fs::exists(newest / file)) bytes += read_file(newest / file);
  }
  return bytes;
}

}  // namespace elliptical::run::testing
