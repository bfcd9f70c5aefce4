// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_evaluation.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/sha256.h"
#include "elliptical/nn/attention/metric_source.h"
#include "elliptical/run/attack_pictures.h"
#include "elliptical/run/attack_records.h"
#include "elliptical/run/attack_state.h"
#include "elliptical/run/model_guards.h"
#include "elliptical/run/signals.h"
#include "elliptical/store/tensor_files.h"
#include "elliptical/tasks/classifier.h"

namespace elliptical::run {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string model_digest(const torch::nn::Module& model) {
  Sha256 sha;
  for (const auto& [name, tensor] : store::named_tensors(model)) {
    const at::Tensor values = tensor.detach().contiguous();
    sha.update(name);
    sha.update({static_cast<const std::byte*>(values.const_data_ptr()),
                static_cast<size_t>(values.nbytes())});
  }
  return sha.hex();
}

int64_t count_true(const at::Tensor& mask) { return mask.sum().item<int64_t>(); }

int64_t count_top5(const at::Tensor& logits, const at::Tensor& y) {
  const int64_t k = std::min<int64_t>(5, logits.size(1));
  return count_true((std::get<1>(logits.topk(k, 1)) == y.unsqueeze(1)).any(1));
}

std::string outcome_text(const at::Tensor& is_robust) {
  const at::Tensor values = is_robust.contiguous();
  std::string text;
  for (int64_t i = 0; i < values.size(0); ++i) {
    text += values.const_data_ptr<bool>()[i] ? '1' : '0';
  }
  return text;
}

class AttackLoop {
 public:
  explicit AttackLoop(const AttackRequest& request)
      : request_(request),
        plan_(request.plan),
        is_strict_(plan_.profile == AttackProfile::kStrict),
        classifier_(*request.task.classifier()) {
    for (const AttackCase& each : plan_.cases) {
      attacks_.push_back(attack::make_attack(each.attack));
      max_passes_.push_back(
          static_cast<double>(attacks_.back()->max_passes(classifier_.num_classes())));
      max_passes_all_ += max_passes_.back();
    }
  }

  std::vector<Record> run() {
    const EvaluationMode mode(request_.task.model());
    const FrozenParameters frozen(request_.task.model());
    const std::unique_ptr<tasks::PictureSet> set = classifier_.picture_set(request_.eval_options);
    AttackState state(request_.state, request_.hooks.notice);
    const std::vector<std::string> digests = case_digests(*set);
    const std::vector<std::string> class_names = set->class_names();
    if (request_.class_names != nullptr) *request_.class_names = class_names;
    AttackPictureFile pictures(request_.pictures, plan_, digests, class_names, set->num_pictures());
    std::vector<AttackScore> totals(plan_.cases.size());
    num_batches_ = set->size();
    const std::vector<int64_t> columns = set->class_columns();
    if (!columns.empty()) columns_ = at::tensor(columns);
    request_.hooks.describe(set->description());
    start_ = Clock::now();
    for (int64_t b = 0; b < set->size(); ++b) {
      begin_batch(b, set->get(b), *set);
      for (size_t i = 0; i < plan_.cases.size(); ++i) {
        stop_if_asked();
        const AttackScore* known =
            request_.dump == nullptr ? state.find(digests[i], b, num_pictures_) : nullptr;
        const bool is_shown = pictures.wants(i), is_attacked = known == nullptr || is_shown;
        tasks::Dump shown;
        AttackScore score;
        if (is_attacked) score = attack_batch(i, is_shown ? &shown : request_.dump);
        if (known != nullptr) {
          score = *known;
        } else {
          state.append(digests[i], b, score);
        }
        if (is_shown) pictures.add(shown);
        totals[i].add(score);
        end_case(i, !is_attacked);
      }
      first_ += num_pictures_;
    }
    pictures.finish();
    Labels labels = request_.labels;
    labels.merge(set->labels());
    labels.merge(request_.task.labels());
    const int64_t num_classes = columns_.defined() ? columns_.size(0) : classifier_.num_classes();
    return attack_records(plan_, totals, num_classes, labels, *set);
  }

 private:
  void begin_batch(int64_t index, const tasks::Batch& batch, const tasks::PictureSet& set) {
    const at::NoGradGuard no_grad;
    batch_ = index;
    num_pictures_ = batch.input.size(0);
    numbers_.clear();
    for (int64_t i = 0; i < num_pictures_; ++i) {
      numbers_.push_back(set.picture_number((first_ + i) % set.num_pictures()));
    }
    if (index == 0) expected_pictures_ = num_batches_ * num_pictures_;
    if (index + 1 == num_batches_) expected_pictures_ = first_ + num_pictures_;
    labels_ = batch.target.to(at::kLong);
    x_ = is_strict_ ? batch.input : classifier_.normalize(batch.input);
    for (std::optional<at::Tensor>& logits : clean_) logits.reset();
  }

  /// The model as case number `i` sees it: counts passes, shows progress, stops after a signal.
  attack::LogitsFn logits_of_case(size_t i) {
    auto pass = nn::Pass::of_attack(plan_.cases[i].gradient_through_metric);
    if (!is_strict_) {
      pass.metric_estimator = ops::MetricEstimator("median");
      pass.metric_low = nn::kReleasedAttackLow;
    }
    const RandomKey key = RandomKey(static_cast<uint64_t>(plan_.seed))
                              .derive("model")
                              .derive(static_cast<uint64_t>(batch_));
    return [this, i, pass, key, call = uint64_t{0}](const at::Tensor& x) mutable {
      stop_if_asked();
      pass.random = key.derive(call++);
      at::Tensor logits = request_.task.forward({.input = x, .is_prepared = !is_strict_}, pass);
      if (columns_.defined()) logits = logits.index_select(1, columns_);
      passes_ += x.size(0);
      show(i);
      return logits;
    };
  }

  attack::Threat threat(const AttackCase& each) const {
    // The published box is that of pixels although normalized pixels are attacked.
    if (!is_strict_ && attack::attack_entry(each.attack.name()).changes_every_picture)
      return {.eps = each.eps};
    return {.eps = each.eps, .low = at::scalar_tensor(0.0), .high = at::scalar_tensor(1.0)};
  }

  AttackScore attack_batch(size_t i, tasks::Dump* dump) {
    const auto start = Clock::now();
    const AttackCase& each = plan_.cases[i];
    const attack::LogitsFn logits = logits_of_case(i);
    // Cases share them unless the path through the metric differs, which may differ in rounding.
    std::optional<at::Tensor>& clean = clean_[each.gradient_through_metric ? 1 : 0];
    if (!clean) {
      clean = attack::plain_logits(logits, x_);
      require_finite(*clean);
    }
    const bool from_predictions =
        !is_strict_ && attack::attack_entry(each.attack.name()).changes_every_picture;
    attack::Findings findings;
    const at::Tensor adversarial = attacks_[i]->perturb(
        logits,
        {.x = x_,
         .y = from_predictions ? clean->argmax(1) : labels_,
         .keys = attack::picture_keys(RandomKey(static_cast<uint64_t>(plan_.seed)).derive("attack"),
                                      numbers_),
         .clean_logits = *clean},
        threat(each), &findings);
    const at::Tensor attacked = attack::plain_logits(logits, adversarial);
    if (dump != nullptr) {
      (*dump)["clean"].push_back(x_);
      (*dump)["adversarial"].push_back(adversarial);
      (*dump)["labels"].push_back(labels_);
      (*dump)["pictures"].push_back(at::tensor(numbers_, at::kLong));
      (*dump)["clean_logits"].push_back(*clean);
      (*dump)["adversarial_logits"].push_back(attacked);
    }
    const at::Tensor is_robust = attack::is_correct(attacked, labels_);
    AttackScore score{.count = num_pictures_,
                      .clean_top1 = count_true(attack::is_correct(*clean, labels_)),
                      .clean_top5 = count_top5(*clean, labels_),
                      .robust_top1 = count_true(is_robust),
                      .robust_top5 = count_top5(attacked, labels_),
                      .seconds = seconds_since(start),
                      .is_randomised = findings.is_randomised,
                      .looks_like_probabilities = findings.looks_like_probabilities,
                      .has_few_classes = findings.has_few_classes,
                      .num_zero_gradients = findings.num_zero_gradients,
                      .outcomes = outcome_text(is_robust)};
    for (const attack::Findings::Stage& stage : findings.stages) {
      score.stages.emplace_back(stage.attack, count_true(stage.robust));
    }
    return score;
  }

  std::vector<std::string> case_digests(const tasks::EvalSet& set) const {
    std::string common = request_.program + "\n" + model_digest(request_.task.model()) + "\n" +
                         std::string(to_string(plan_.profile)) + "\n" + std::to_string(plan_.seed);
    // Earlier versions drew from all of [0, 1): their batches are of another case.
    if (!is_strict_) common += "\nrandom metric from " + std::to_string(nn::kReleasedAttackLow);
    for (const FieldText& field : describe(fields_of(request_.eval_options))) {
      // Which pictures are counted apart changes nothing about what becomes of them, and how many
      // more there are nothing about a whole batch: fewer are a beginning of more.
      if (field.key == "blocks" || field.key == "max_pictures") continue;
      common += "\n" + field.key + " = " + field.value;
    }
    const Labels labels = set.labels();  // a part is not a beginning of all
    if (const auto subset = labels.find("subset"); subset != labels.end()) {
      common += "\nsubset = " + measure::label_text(subset->second);
    }
    for (const auto& data : {request_.task.data_fingerprint(), set.fingerprint()}) {
      for (const auto& [name, checksum] : data) common += "\n" + name + " " + checksum;
    }
    std::vector<std::string> digests;
    for (const AttackCase& each : plan_.cases) {
      ChosenOptions chosen = each.attack;
      Sha256 sha;
      sha.update(common);
      sha.update(to_toml(fields_of(chosen)));
      sha.update({reinterpret_cast<const std::byte*>(&each.eps), sizeof(each.eps)});
      sha.update(each.gradient_through_metric ? "through" : "detached");
      digests.push_back(sha.hex());
    }
    return digests;
  }

  /// Of logits that are none of the classes can be told: an accuracy of them would be a number
  /// without meaning.
  void require_finite(const at::Tensor& logits) const {
    const at::Tensor is_finite = logits.isfinite().all(1);
    if (is_finite.all().item<bool>()) return;
    const auto first = is_finite.logical_not().nonzero()[0].item<int64_t>();
    throw RunError("attack: logits must be finite, those of picture " +
                   std::to_string(first_ + first) +
                   " are not (the training has diverged: train it again with a lower "
                   "optimizer.learning_rate or optimizer.clip_norm)");
  }

  static void stop_if_asked() {
    const int signal = stop_signal();
    if (signal == 0) return;
    throw Interrupted(std::string("attack: stopped by ") + signal_name(signal) +
                          ", finished batches are kept (to go on: the same command)",
                      signal);
  }

  /// How far the work is, in pictures of all cases. Within a batch that is estimated from the
  /// passes that case `i` has made, of which it needs at most a known number; so is the time left.
  void show(size_t i) {
    const double seconds = seconds_since(start_);
    const auto pictures = static_cast<double>(num_pictures_);
    const double most = std::max(1.0, max_passes_[i] * pictures);
    const double part = std::min(1.0, static_cast<double>(passes_) / most);
    const double work_left = static_cast<double>(expected_pictures_) * max_passes_all_ -
                             work_done_ - work_skipped_ - part * most;
    const double work_now = std::max(1.0, work_done_ + part * most);
    request_.hooks.show(
        {.phase = "attack",
         .done = pictures_done_ + static_cast<int64_t>(part * pictures),
         .total = expected_pictures_ * static_cast<int64_t>(plan_.cases.size()),
         .units_per_second = static_cast<double>(all_passes_ + passes_) / std::max(seconds, 1e-9),
         .unit = "passes",
         .seconds_left = seconds / work_now * std::max(0.0, work_left)});
  }

  void end_case(size_t i, bool was_known) {
    (was_known ? work_skipped_ : work_done_) += max_passes_[i] * static_cast<double>(num_pictures_);
    pictures_done_ += num_pictures_;
    all_passes_ += passes_;
    passes_ = 0;
    show(i);
  }

  const AttackRequest& request_;
  const AttackPlan& plan_;
  bool is_strict_;
  tasks::Classifier& classifier_;
  at::Tensor columns_;  ///< outputs that stand for the classes of the data; undefined: all
  std::vector<std::unique_ptr<attack::Attack>> attacks_;

  // The batch that is worked on.
  int64_t batch_ = 0, num_pictures_ = 0;
  int64_t first_ = 0;             ///< pictures before it
  std::vector<int64_t> numbers_;  ///< of its pictures in the data set
  at::Tensor x_, labels_;
  std::array<std::optional<at::Tensor>, 2> clean_;  ///< logits, metric detached and through

  // Progress. Work is counted in passes of one picture, at most.
  Clock::time_point start_;
  int64_t num_batches_ = 0, expected_pictures_ = 0, pictures_done_ = 0;
  int64_t passes_ = 0, all_passes_ = 0;  ///< of this case and batch, of those before
  std::vector<double> max_passes_;       ///< of each case
  double max_passes_all_ = 0, work_done_ = 0, work_skipped_ = 0;
};

}  // namespace

std::vector<Record> evaluate_attacks(const AttackRequest& request) {
  if (request.task.classifier() == nullptr) {
    const Labels labels = request.task.labels();
    const auto task = labels.find("task");
    const std::string name = task != labels.end() ? measure::label_text(task->second) : "another";
    throw UsageError("attack: needs a run whose task classifies pictures, this one's is " + name +
                     " (a text is damaged by: elliptical eval RUN --swap 0.025)");
  }
  return AttackLoop(request).run();
}

}  // namespace elliptical::run
