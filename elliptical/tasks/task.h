// SPDX-License-Identifier: MIT
//
// A task: a model with its data, its loss and what is measured about it. One train loop and one
// evaluate loop (room run) serve all tasks.
//
// Training batches are a pure function of the options and the step number: there is no data
// position to save, and resuming in the middle of an epoch is the same as never having stopped.
// The same holds for randomness in the model, which comes from a key of the run's seed and the
// step. What a task does carry from step to step, a memory of past tokens for instance, is its
// state, which checkpoints hold.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/base/records.h"
#include "elliptical/measure/task_measures.h"
#include "elliptical/nn/pass.h"

namespace elliptical::tasks {

class Classifier;
class Writer;

struct Batch {
  at::Tensor input;  ///< what the model gets: tokens (B, N), pixels (B, 3, H, W) in [0, 1]
  /// Whether the input is what comes out of the task's own preparation of it (pictures that are
  /// normalized), so that nothing is to be done to it.
  bool is_prepared = false;
  at::Tensor lengths;     ///< (B) int64, how much of each row is no padding; undefined: all of it
  at::Tensor target;      ///< what it should say
  at::Tensor place;       ///< where each target stands in the data; undefined where nobody asks
  int64_t num_units = 0;  ///< tokens or pictures in it, for rates
};

/// What training minimises.
struct Loss {
  at::Tensor total;  ///< scalar, with gradient
  /// The terms that it is the sum of, which reach the log; empty where there is one only.
  std::map<std::string, at::Tensor> parts = {};
};

/// The sum of the terms and of what the layers of the pass add to them; each of several is a part.
Loss sum_of(const std::vector<std::pair<std::string, at::Tensor>>& terms, const nn::Pass& pass);
/// The same of one term, which is called "main" beside others.
Loss with_auxiliary(const at::Tensor& main, const nn::Pass& pass);

/// Sums that an evaluation collects; a task turns them into metrics at the end. They are added in
/// the order of the batches, in double.
struct Scores {
  using Labels = std::map<std::string, LabelValue>;
  struct Sum {
    double total = 0;
    int64_t count = 0;
    double mean() const { return total / static_cast<double>(count); }
  };
  /// By the name the task gives them, and what they are sums of: a block, a head.
  std::map<std::pair<std::string, Labels>, Sum> sums;
  void add(const std::string& name, double total, int64_t count, const Labels& labels = {}) {
    Sum& sum = sums[{name, labels}];
    sum.total += total;
    sum.count += count;
  }
};

/// Per-target results in order, for `--dump`: name -> pieces to be concatenated along dimension 0.
using Dump = std::map<std::string, std::vector<at::Tensor>>;

/// What a model does on one small input, layer by layer, for people to look at.
struct Snapshot {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  ///< none: nothing is to be written
  std::map<std::string, std::string> metadata;
  std::string missing;  ///< what there is not, and why, for people; empty: it is whole
};

/// One evaluation: its batches, a split with or without damage, how the model is to be asked about
/// them and what its answers are worth. It lives no longer than the task that made it.
class EvalSet {
 public:
  virtual ~EvalSet() = default;
  virtual int64_t size() const = 0;  ///< number of batches
  virtual Batch get(int64_t index) const = 0;
  /// What it wants of each pass beside what the loop does: another scope of the metric, a stream.
  virtual void prepare(nn::Pass& /*pass*/) const {}
  /// Adds what the model said about a batch, Task::forward of that pass, to the scores, and to the
  /// dump if there is one.
  virtual void score(const Batch& batch,
                     const at::Tensor& said,
                     const nn::Pass& pass,
                     Scores& scores,
                     Dump* dump) const = 0;
  /// Labels for the records: split, perturbation, rate, realised rate, seed, method, profile, ...
  virtual std::map<std::string, LabelValue> labels() const = 0;
  /// What it takes, in one line for people, where that is far more than the data suggest.
  virtual std::string cost() const { return ""; }
  /// Checksums of the data that are read, by name.
  virtual std::map<std::string, std::string> fingerprint() const { return {}; }
  /// What is read, in a line for people; empty: there is nothing to say.
  virtual std::string description() const { return ""; }
};

/// What a task is made for, which says what it must read beside its data.
enum class TaskUse {
  kNewRun,    ///< everything, also weights to start from
  kTraining,  ///< of a run with a checkpoint, which has all weights
  kMeasuring  ///< nothing that only training needs
};

/// Which part of each training batch this process computes, of several that train together.
struct Shard {
  int64_t rank = 0, count = 1;
};

/// What a task is made with beside its options.
struct TaskSetup {
  uint64_t seed = 0;
  TaskUse use = TaskUse::kNewRun;
  /// The words that the weights belong to which the task is made for, as `Task::vocabulary` told
  /// them. Empty: there are no such weights, or they do not say.
  std::string vocabulary = {};
  Shard shard = {};
};

/// The rows of a batch of `size` that a shard has: the first and how many. Throws ConfigError unless
/// all shards have as many.
std::pair<int64_t, int64_t> rows_of(const Shard& shard, int64_t size);

class Task {
 public:
  virtual ~Task() = default;

  virtual torch::nn::Module& model() = 0;
  virtual const char* unit() const = 0;         ///< "tokens", "images"
  virtual int64_t num_train_units() const = 0;  ///< in one epoch
  /// Name and checksum of each data file or generator: refused on resume when they changed.
  virtual std::map<std::string, std::string> data_fingerprint() const = 0;
  /// Facts of the configuration that every record carries: task, attention, leaks_future, ...
  virtual std::map<std::string, LabelValue> labels() const = 0;
  /// Where weights belong to words: these, one a line, in the order of their numbers. They are kept
  /// with the weights, which mean nothing without them.
  virtual std::string vocabulary() const { return ""; }
  /// The data, in a line for people; empty: there is nothing to say.
  virtual std::string data_description() const { return ""; }
  /// What people are to be told about how it was made, one line each.
  virtual std::vector<std::string> notices() const { return {}; }

  virtual Batch train_batch(int64_t step) const = 0;
  /// What the model says about a batch, from which its loss and its scores are computed: logits
  /// (B, K) of a classifier; of a language model the hidden states (B, N, C) of the scored tokens.
  /// `pass` says how, and holds afterwards what was left behind; it is told here which tokens of the
  /// batch are padding. The one door to the model: training, evaluations, attacks and snapshots go
  /// through it.
  at::Tensor forward(const Batch& batch, nn::Pass& pass);
  /// Of a training step: `pass` has its key.
  virtual Loss loss(const Batch& batch, nn::Pass& pass) = 0;

  /// What a step hands to the next one beside the weights, by name. `loss` puts new tensors in the
  /// place of these and never writes into them: those of before a step stay what they were. An
  /// evaluation leaves them alone. Nothing, as a rule: then a step is a function of the weights, the
  /// seed and its number.
  virtual std::map<std::string, at::Tensor> state() const { return {}; }
  virtual void set_state(const std::map<std::string, at::Tensor>& /*state*/) {}

  /// How `eval` is to be done is read from `options`, the task's own evaluation options. Commands
  /// and comparisons set some by name, so every task has
  ///
  ///   split            "train", "valid" or "test"
  ///   blocks           in how many parts the data are also recorded apart
  ///   metric_profile   whether each coordinate of the metric is recorded
  ///
  /// and those that its TaskMeasures name: `method` where it has methods, `max_pictures` where it
  /// has pictures, what its perturbations and records are told apart by.
  virtual std::unique_ptr<EvalSet> eval_set(Options& options) = 0;
  virtual std::unique_ptr<Options> make_eval_options() const = 0;
  /// The metrics that the sums amount to: value, count, name; labels are filled in by the caller.
  virtual std::vector<Record> metrics(const Scores& scores) const = 0;
  /// Names of those that an evaluation as training does it always has, once each: what the best
  /// checkpoint can be chosen by. Empty: not known.
  virtual std::vector<std::string> metric_names() const { return {}; }
  /// What attacks need of it; null where a task has no pictures.
  virtual Classifier* classifier() { return nullptr; }
  /// Of undamaged data of the split that the options name; nothing where a task has none.
  virtual std::optional<Snapshot> snapshot(Options&) { return std::nullopt; }

 protected:
  virtual at::Tensor run(const Batch& batch, nn::Pass& pass) = 0;
};

/// One batch of an evaluation: asks as the set wants it, and scores the answer. No gradient.
void score_batch(
    Task& task, const EvalSet& set, const Batch& batch, nn::Pass& pass, Scores& scores, Dump* dump);

/// What training costs, by arithmetic on the options alone: no data are read.
struct Cost {
  int64_t num_parameters = 0;
  int64_t units_per_step = 0;
  int64_t units_per_epoch = 0;  ///< 0: not known without the data
  double flops_per_step = 0;    ///< of matrix products and attention, forward and backward
  double bytes = 0;             ///< weights, gradients, moments, and what the backward keeps
};

/// What one evaluation of a run costs beside its training.
struct EvalCost {
  double steps = 0;         ///< of training that take about as long; 0: next to nothing
  double num_units = 0;     ///< that the model reads
  const char* unit = "";    ///< for people: "tokens"
  std::string method = {};  ///< for people: "sliding windows"
  std::string size = {};    ///< for people: "400 windows of 256 tokens"
};

/// Of a rehearsal, see below: enough to be measured.
inline constexpr int64_t kRehearsalBatch = 8;

/// One line of the table of tasks.
struct TaskEntry {
  const char* name;
  const char* description;
  /// What it measures and what can be done to its data: `compare`, `eval` and reports read it.
  const measure::TaskMeasures* measures;
  std::unique_ptr<Options> (*make_options)();
  /// Reads the data and builds the model with its initial weights, both from the seed. Throws
  /// ConfigError or DataError before any long work.
  std::unique_ptr<Task> (*make)(const Options& options, const TaskSetup& setup);
  /// Shrinks the options to something that ends within seconds (`--smoke`).
  void (*shrink)(Options& options);
  /// Null: not known.
  Cost (*cost)(const Options& options) = nullptr;
  /// The same model on made-up data and a small batch, so that the speed of a step can be measured
  /// where the data are not. Null: there is none.
  std::unique_ptr<Task> (*rehearse)(const Options& options) = nullptr;
  /// How much of a split evaluations by `method` have to read, where their cost depends on it. It
  /// may take as long as reading the data; several runs on the same data share it. Null: nothing.
  int64_t (*eval_units)(const Options& options,
                        const std::string& method,
                        const std::string& split) = nullptr;
  /// Of one evaluation, with what `eval_units` said. Null: next to nothing.
  EvalCost (*eval_cost)(const Options& options,
                        const std::string& method,
                        int64_t num_units) = nullptr;
  /// A model that goes on with a text (tasks/generate.h), without weights. Null: it writes none.
  std::unique_ptr<Writer> (*make_writer)(const Options& options, const TaskSetup& setup) = nullptr;
};

const std::vector<TaskEntry>& task_table();
const std::vector<OptionsEntry>& task_choices();
const TaskEntry& find_task(const std::string& name);
/// What all tasks declare, in the order of the table.
const measure::MeasureTable& measure_table();

}  // namespace elliptical::tasks
