// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/tasks/classify_image.h"
#include "elliptical/tasks/language_model.h"
#include "elliptical/tasks/task.h"

namespace elliptical::tasks {
namespace {

template <class T>
std::unique_ptr<Options> make_options() {
  return std::make_unique<T>();
}

std::unique_ptr<Task> make_language_model(const Options& options, const TaskSetup& setup) {
  const auto& lm = dynamic_cast<const LanguageModelOptions&>(options);
  return std::make_unique<LanguageModelTask>(lm, open_text(lm.data, setup.vocabulary), setup.seed,
                                             setup.use);
}

std::unique_ptr<Task> make_classify_image(const Options& options, const TaskSetup& setup) {
  return std::make_unique<ClassifyImageTask>(dynamic_cast<const ClassifyImageOptions&>(options),
                                             setup.seed, setup.use);
}

template <class TaskOptions>
void shrink(Options& options) {
  dynamic_cast<TaskOptions&>(options).shrink();
}

}  // namespace

const std::vector<TaskEntry>& task_table() {
  // The first one is the default of a recipe that names none.
  static const std::vector<TaskEntry> table{
      {.name = "language_model",
       .description = "predict each next word of a text with a causal transformer",
       .make_options = make_options<LanguageModelOptions>,
       .make = make_language_model,
       .shrink = shrink<LanguageModelOptions>,
       .cost = lm_cost,
       .rehearse = rehearse_lm},
      {.name = "classify_image",
       .description = "tell pictures apart, one class for each",
       .make_options = make_options<ClassifyImageOptions>,
       .make = make_classify_image,
       .shrink = shrink<ClassifyImageOptions>,
       .cost = classify_image_cost,
       .rehearse = rehearse_classify_image},
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
