// SPDX-License-Identifier: MIT
#include "tests/run/toy_task.h"

#include <torch/torch.h>

namespace elliptical::run::testing {

std::function<void(const std::string& phase, int64_t index)> toy_hook;

namespace {

constexpr int64_t kInputs = 5;

/// Normal numbers that depend on `key` alone.
at::Tensor numbers(RandomKey key, at::IntArrayRef shape) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(key.bits());
  return at::randn(shape, generator);
}

struct ToyModel : torch::nn::Module {
  ToyModel(int64_t width, RandomKey key)
      : first(register_module("first", torch::nn::Linear(kInputs, width))),
        second(register_module("second", torch::nn::Linear(width, 1))) {
    const at::NoGradGuard no_grad;
    uint64_t index = 0;
    for (at::Tensor& parameter : parameters()) {
      parameter.copy_(numbers(key.derive(index++), parameter.sizes()) * 0.3);
    }
    running_mean = register_buffer("running_mean", at::zeros({width}));
    num_batches = register_buffer("num_batches", at::zeros({}, at::kLong));
  }
  /// As batch normalization keeps them: a part of the state that training changes without gradient.
  void note_statistics(const at::Tensor& input) {
    const at::NoGradGuard no_grad;
    running_mean.lerp_(first(input).mean(0), 0.1);
    num_batches.add_(1);
  }
  at::Tensor forward(const at::Tensor& input, const at::Tensor& kept) {
    return second(at::relu(first(input)) * kept);
  }
  torch::nn::Linear first, second;
  at::Tensor running_mean, num_batches;
};

class ToyEvalSet : public tasks::EvalSet {
 public:
  ToyEvalSet(int64_t num_batches, double noise, std::string cost)
      : num_batches_(num_batches), noise_(noise), cost_(std::move(cost)) {}
  std::string cost() const override { return cost_; }
  int64_t size() const override { return num_batches_; }
  tasks::Batch get(int64_t index) const override {
    if (toy_hook) toy_hook("eval", index);
    const RandomKey key = RandomKey(7).derive(static_cast<uint64_t>(index));
    const at::Tensor input = numbers(key, {4, kInputs});
    return {.input = input + noise_, .target = input.sum(1, true), .num_units = 4};
  }
  std::map<std::string, LabelValue> labels() const override {
    return {{"split", std::string("valid")}, {"noise", noise_}};
  }

 private:
  int64_t num_batches_;
  double noise_;
  std::string cost_;
};

class ToyTask : public tasks::Task {
 public:
  ToyTask(const ToyOptions& options, uint64_t seed)
      : options_(options), key_(seed), model_(options.width, key_.derive("weights")) {}

  torch::nn::Module& model() override { return model_; }
  const char* unit() const override { return "rows"; }
  int64_t num_train_units() const override { return 1000; }
  std::map<std::string, std::string> data_fingerprint() const override {
    return {{"generator", std::to_string(options_.data_version)}};
  }
  std::map<std::string, LabelValue> labels() const override {
    return {{"task", std::string("toy")}};
  }

  tasks::Batch train_batch(int64_t step) const override {
    if (toy_hook) toy_hook("train", step);
    const at::Tensor input =
        numbers(key_.derive("data").derive(static_cast<uint64_t>(step)), {options_.batch, kInputs});
    return {.input = input, .target = input.sum(1, true), .num_units = options_.batch};
  }

  at::Tensor forward(const tasks::Batch& batch, nn::Pass& pass) override {
    if (!pass.training) return model_.forward(batch.input, at::ones({1}));
    at::Tensor kept =
        (numbers(pass.random.derive("dropout"), {options_.batch, options_.width}) > -0.67)
            .to(at::kFloat);
    const int64_t step = num_losses_++;
    if (options_.bad_loss_step >= 0 && step >= options_.bad_loss_step) kept = kept * 1e39;
    model_.note_statistics(batch.input);
    if (options_.carries_state) {
      memory_ = memory_.lerp(batch.input.mean(0), 0.5);
      pass.add_loss("memory", 0.1 * model_.forward(memory_, at::ones({1})).square().mean());
    }
    if (options_.bad_memory_step >= 0 && step >= options_.bad_memory_step) {
      memory_ = at::full({kInputs}, NAN);  // after this step's loss, which is finite
    }
    if (toy_hook) toy_hook("loss", step);
    return model_.forward(batch.input, kept);
  }

  tasks::Loss loss(const tasks::Batch& batch, nn::Pass& pass) override {
    const int64_t step = num_losses_;
    at::Tensor error = (forward(batch, pass) - batch.target).square().mean();
    if (options_.bad_gradient_step >= 0 && step >= options_.bad_gradient_step) {
      error = error + at::sqrt(model_.second->bias.sum() * 0);  // 0, with an infinite slope
    }
    return tasks::with_auxiliary(error, pass);
  }
  std::map<std::string, at::Tensor> state() const override {
    if (!options_.carries_state) return {};
    return {{"memory", memory_}};
  }
  void set_state(const std::map<std::string, at::Tensor>& state) override {
    memory_ = state.empty() ? at::zeros({kInputs}) : state.at("memory");
  }

  std::vector<std::string> metric_names() const override { return {"error"}; }
  std::unique_ptr<tasks::EvalSet> eval_set(Options& options) override {
    return std::make_unique<ToyEvalSet>(
        options_.eval_batches, dynamic_cast<ToyEvalOptions&>(options).noise, options_.eval_cost);
  }
  std::unique_ptr<Options> make_eval_options() const override {
    return std::make_unique<ToyEvalOptions>();
  }
  void score(const tasks::Batch& batch, tasks::Scores& scores, tasks::Dump* dump) override {
    nn::Pass pass;
    const at::Tensor error = (forward(batch, pass) - batch.target).square().flatten();
    scores.add("error", error.sum().item<double>(), error.numel());
    if (dump) (*dump)["error"].push_back(error);
  }
  std::vector<Record> metrics(const tasks::Scores& scores) const override {
    const tasks::Scores::Sum& sum = scores.sums.at({"error", {}});
    const double mean = sum.total / static_cast<double>(sum.count);
    return {{.metric = "error", .value = mean, .count = sum.count},
            {.metric = "root_error", .value = std::sqrt(mean), .count = sum.count}};
  }

 private:
  ToyOptions options_;
  RandomKey key_;
  ToyModel model_;
  int64_t num_losses_ = 0;
  at::Tensor memory_ = at::zeros({kInputs});
};

}  // namespace

void ToyOptions::visit(FieldList& fields) {
  fields.add("width", width, "hidden units", at_least(1));
  fields.add("batch", batch, "rows a step", at_least(1));
  fields.add("dropout", dropout, "of hidden units", below(0, 1));
  fields.add("data_version", data_version, "of the generator");
  fields.add("bad_loss_step", bad_loss_step, "when the loss is not finite any more");
  fields.add("bad_gradient_step", bad_gradient_step, "when the gradient is not finite any more");
  fields.add("carries_state", carries_state, "whether steps hand something on");
  fields.add("bad_memory_step", bad_memory_step, "when what is handed on is not finite any more");
  fields.add("eval_batches", eval_batches, "batches of an evaluation", at_least(0));
}

const std::vector<OptionsEntry>& toy_choices() {
  static const std::vector<OptionsEntry> table = {
      {"toy", "two layers on generated data",
       []() -> std::unique_ptr<Options> { return std::make_unique<ToyOptions>(); }}};
  return table;
}

std::unique_ptr<tasks::Task> make_toy_task(const RunOptions& options) {
  return std::make_unique<ToyTask>(options.task.get<ToyOptions>(),
                                   static_cast<uint64_t>(options.seed));
}

RunOptions toy_run_options(int64_t steps) {
  RunOptions options(toy_choices());
  options.seed = 3;
  options.train = {.steps = steps, .log_interval = 1, .eval_interval = 4, .checkpoint_interval = 3};
  options.optimizer.learning_rate = 0.02;
  options.schedule.warmup_steps = 2;
  return options;
}

}  // namespace elliptical::run::testing
