// SPDX-License-Identifier: MIT
#include "elliptical/attack/apgd.h"

#include <torch/torch.h>

#include <algorithm>

#include "elliptical/attack/apgd_impl.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"

namespace elliptical::attack {
namespace {

void need_classes(const Problem& problem, int64_t count, const char* attack) {
  const int64_t num_classes = problem.pictures.clean_logits.size(1);
  if (num_classes < count) {
    throw ConfigError("attack " + std::string(attack) + ": needs a model of at least " +
                      std::to_string(count) + " classes, this one has " +
                      std::to_string(num_classes) + " (use apgd-ce)");
  }
}

/// `look` that counts pictures whose first gradient is 0 everywhere.
auto count_zero_gradients(Findings& findings) {
  return [&findings](int64_t number, const ApgdState& state) {
    if (number > 0) return;
    const at::Tensor is_zero = (state.gradient == 0).flatten(1).all(1);
    findings.num_zero_gradients += is_zero.sum().item<int64_t>();
  };
}

/// apgd-ce and apgd-dlr: one run.
class ApgdUntargeted : public Attack {
 public:
  using Loss = at::Tensor (*)(const at::Tensor& logits, const at::Tensor& y);

  ApgdUntargeted(const char* name, Loss loss, const Options& options)
      : name_(name), loss_(loss), options_(dynamic_cast<const ApgdOptions&>(options)) {}
  int64_t max_passes(int64_t) const override { return (options_.steps + 1) * options_.eot_passes; }

 protected:
  at::Tensor search(const Problem& problem) const override {
    if (loss_ == dlr) need_classes(problem, 3, name_);
    return try_in_turn(problem, 1, [this](int64_t, const Problem& survivors) {
      const Pictures& pictures = survivors.pictures;
      const auto loss = [this](const at::Tensor& z, const at::Tensor& y, const at::Tensor&) {
        return loss_(z, y);
      };
      std::function<void(int64_t, const ApgdState&)> look;
      if (loss_ == dlr) look = count_zero_gradients(survivors.findings);
      return run_apgd(survivors, loss, pictures.y, derive(pictures.keys, name_), options_, look);
    });
  }

 private:
  const char* name_;
  Loss loss_;
  ApgdOptions options_;
};

class ApgdT : public Attack {
 public:
  explicit ApgdT(const ApgdTargetedOptions& options) : options_(options) {}
  int64_t max_passes(int64_t num_classes) const override {
    return num_targets(num_classes) * (options_.steps + 1) * options_.eot_passes;
  }

 protected:
  at::Tensor search(const Problem& problem) const override {
    need_classes(problem, 4, "apgd-t");
    const int64_t num_attempts = num_targets(problem.pictures.clean_logits.size(1));
    return try_in_turn(problem, num_attempts, [this](int64_t i, const Problem& survivors) {
      const Pictures& pictures = survivors.pictures;
      const at::Tensor target = ranked_classes(pictures.clean_logits, pictures.y).select(1, i + 1);
      const PictureKeys keys = derive(derive(pictures.keys, "apgd-t"), static_cast<uint64_t>(i));
      return run_apgd(survivors, targeted_dlr, target, keys, options_,
                      count_zero_gradients(survivors.findings));
    });
  }

 private:
  int64_t num_targets(int64_t num_classes) const {
    return std::min(options_.num_targets, num_classes - 1);
  }
  ApgdTargetedOptions options_;
};

}  // namespace

void ApgdOptions::visit(FieldList& fields) {
  fields.add("steps", steps, "gradient steps of a run", between(1, kMostPasses));
  fields.add("eot_passes", eot_passes,
             "passes that each gradient is the mean of, for models that draw random numbers",
             between(1, 10'000));
  fields.add("rho", rho, "the step is halved where not more than this part of steps helped",
             between(0, 1));
  fields.add(
      "stop_when_broken", stop_when_broken,
      "leave a picture alone once it is misclassified; false: go on, for top-5 as published");
}

void ApgdTargetedOptions::visit(FieldList& fields) {
  ApgdOptions::visit(fields);
  fields.add("num_targets", num_targets, "classes that are tried, most likely first",
             between(1, kMostPasses));
}

std::unique_ptr<Attack> make_apgd_ce(const Options& options) {
  return std::make_unique<ApgdUntargeted>("apgd-ce", cross_entropy, options);
}
std::unique_ptr<Attack> make_apgd_dlr(const Options& options) {
  return std::make_unique<ApgdUntargeted>("apgd-dlr", dlr, options);
}
std::unique_ptr<Attack> make_apgd_t(const Options& options) {
  return std::make_unique<ApgdT>(dynamic_cast<const ApgdTargetedOptions&>(options));
}

}  // namespace elliptical::attack
