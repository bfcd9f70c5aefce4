// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/tasks/language_model.h"
#include "elliptical/tasks/task.h"

namespace elliptical::tasks {
namespace {

template <class T>
std::unique_ptr<Options> make_options() {
  return std::make_unique<T>();
}

std::unique_ptr<Task> make_language_model(const Options& options, uint64_t seed) {
  return std::make_unique<LanguageModelTask>(dynamic_cast<const LanguageModelOptions&>(options),
                                             seed);
}

void shrink_language_model(Options& options) {
  dynamic_cast<LanguageModelOptions&>(options).shrink();
}

}  // namespace

const std::vector<TaskEntry>& task_table() {
  static const std::vector<TaskEntry> table{
      {.name = "language_model",
       .description = "predict each next word of a text with a causal transformer",
       .make_options = make_options<LanguageModelOptions>,
       .make = make_language_model,
       .shrink = shrink_language_model,
       .cost = lm_cost,
       .rehearse = rehearse_lm},
  };
  return table;
}

const std::vector<OptionsEntry>& task_choices() {
  static const std::vector<OptionsEntry> choices = [] {
    std::vector<OptionsEntry> list;
    for (const TaskEntry& entry : task_table()) {
      list.push_back({entry.name, entry.description, entry.make_options});
    }
    return list;
  }();
  return choices;
}

const TaskEntry& find_task(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskEntry& entry : task_table()) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  throw ConfigError("task: " + unknown_name(name, names));
}

}  // namespace elliptical::tasks
