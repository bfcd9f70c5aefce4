// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/base/name_table.h"
#include "elliptical/tasks/classify_image.h"
#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/generate.h"
#include "elliptical/tasks/language_model.h"
#include "elliptical/tasks/language_model_measures.h"
#include "elliptical/tasks/task.h"

namespace elliptical::tasks {
namespace {

template <class SomeTask, class SomeOptions>
std::unique_ptr<Task> make_task(const Options& options, const TaskSetup& setup) {
  return std::make_unique<SomeTask>(dynamic_cast<const SomeOptions&>(options), setup);
}

template <class TaskOptions>
void shrink(Options& options) {
  dynamic_cast<TaskOptions&>(options).shrink();
}

}  // namespace

const std::vector<TaskEntry>& task_table() {
  // The first one is the default of a recipe that names none.
  static const std::vector<TaskEntry> table{
      {.name = kLanguageModelMeasures.task,
       .description = "predict each next word of a text with a causal transformer",
       .measures = &kLanguageModelMeasures,
       .make_options = make_options<LanguageModelOptions>,
       .make = make_task<LanguageModelTask, LanguageModelOptions>,
       .shrink = shrink<LanguageModelOptions>,
       .cost = lm_cost,
       .rehearse = rehearse_lm,
       .eval_units = lm_eval_units,
       .eval_cost = lm_eval_cost,
       .make_writer = make_lm_writer},
      {.name = kClassifyImageMeasures.task,
       .description = "tell pictures apart, one class for each",
       .measures = &kClassifyImageMeasures,
       .make_options = make_options<ClassifyImageOptions>,
       .make = make_task<ClassifyImageTask, ClassifyImageOptions>,
       .shrink = shrink<ClassifyImageOptions>,
       .cost = classify_image_cost,
       .rehearse = rehearse_classify_image},
  };
  return table;
}

const std::vector<OptionsEntry>& task_choices() {
  static const std::vector<OptionsEntry> choices = choices_of(task_table());
  return choices;
}

const measure::MeasureTable& measure_table() {
  static const measure::MeasureTable table = [] {
    measure::MeasureTable list;
    for (const TaskEntry& entry : task_table()) list.push_back(entry.measures);
    return list;
  }();
  return table;
}

const TaskEntry& find_task(const std::string& name) {
  return require_entry<ConfigError>(task_table(), name, "task");
}

at::Tensor Task::forward(const Batch& batch, nn::Pass& pass) {
  pass.key_lengths = batch.lengths.defined() ? std::optional(batch.lengths) : std::nullopt;
  return run(batch, pass);
}

void score_batch(Task& task,
                 const EvalSet& set,
                 const Batch& batch,
                 nn::Pass& pass,
                 Scores& scores,
                 Dump* dump) {
  const at::NoGradGuard no_grad;
  set.prepare(pass);
  set.score(batch, task.forward(batch, pass), pass, scores, dump);
}

Loss sum_of(const std::vector<std::pair<std::string, at::Tensor>>& terms, const nn::Pass& pass) {
  Loss loss;
  const auto add = [&](const std::string& name, const at::Tensor& term) {
    loss.total = loss.total.defined() ? loss.total + term : term;
    loss.parts[name] = term;
  };
  for (const auto& [name, term] : terms) add(name, term);
  for (const auto& [name, term] : pass.auxiliary_losses) add(name, term);
  if (loss.parts.size() == 1) loss.parts.clear();
  return loss;
}

Loss with_auxiliary(const at::Tensor& main, const nn::Pass& pass) {
  return sum_of({{"main", main}}, pass);
}

std::pair<int64_t, int64_t> rows_of(const Shard& shard, int64_t size) {
  if (size % shard.count != 0) {
    throw ConfigError("batch_size: must be a multiple of the number of processes, " +
                      std::to_string(shard.count) + ", got " + std::to_string(size));
  }
  const int64_t share = size / shard.count;
  return {shard.rank * share, share};
}

}  // namespace elliptical::tasks
