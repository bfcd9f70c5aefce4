// SPDX-License-Identifier: MIT
#include "bench/attack.h"

#include <torch/torch.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/peer_program.h"
#include "elliptical/attack/attack.h"
#include "elliptical/attack/pgd.h"
#include "elliptical/models/vit.h"
#include "elliptical/ops/frozen_weights.h"

namespace elliptical::bench {
namespace {

constexpr double kEps = 1.0 / 255;

class OurAttacker : public Attacker {
 public:
  OurAttacker(const AttackCase& shape, const AttackedModel& model)
      : shape_(shape),
        model_(model),
        name_(model.text()),
        vit_(options(shape, model), shape.num_classes) {
    vit_.initialize(1);
    vit_.eval();
    for (at::Tensor& parameter : vit_.parameters()) parameter.set_requires_grad(false);
    attack::PgdOptions pgd;
    pgd.steps = shape.steps;
    pgd_ = attack::make_pgd(pgd);
    x_ = torch::rand({shape.pictures, 3, shape.image_size, shape.image_size});
    y_ = torch::arange(shape.pictures).remainder(shape.num_classes);
  }

  std::string name() const override { return name_; }
  int64_t num_parameters() const override { return vit_.num_parameters(); }

  double attack() override {
    const auto start = std::chrono::steady_clock::now();
    const ops::FrozenWeights frozen;
    const attack::LogitsFn logits = [this](const at::Tensor& x) {
      auto pass = nn::Pass::of_attack(model_.through_metric);
      return vit_.forward((x - 0.45) / 0.225, pass);
    };
    pgd_->perturb(
        logits, {.x = x_, .y = y_, .keys = attack::picture_keys(RandomKey(1), 0, shape_.pictures)},
        {.eps = kEps, .low = at::scalar_tensor(0.0), .high = at::scalar_tensor(1.0)});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  static models::VitOptions options(const AttackCase& shape, const AttackedModel& model) {
    models::VitOptions result;
    result.image_size = shape.image_size;
    result.patch_size = shape.patch_size;
    result.num_layers = shape.num_layers;
    result.dim = shape.dim;
    result.num_heads = shape.num_heads;
    result.attention = ChosenOptions(nn::attention_choices(), model.attention);
    return result;
  }

  AttackCase shape_;
  AttackedModel model_;
  std::string name_;
  models::Vit vit_;
  std::unique_ptr<attack::Attack> pgd_;
  at::Tensor x_, y_;
};

class TorchAttacker : public Attacker {
 public:
  TorchAttacker(const AttackCase& shape, const AttackedModel& model, int num_threads)
      : name_("torch " + model.text()),
        program_("vit_attack.py",
                 {{"attention", model.attention},
                  {"through_metric", model.through_metric},
                  {"threads", num_threads},
                  {"pictures", shape.pictures},
                  {"image_size", shape.image_size},
                  {"patch_size", shape.patch_size},
                  {"layers", shape.num_layers},
                  {"width", shape.dim},
                  {"heads", shape.num_heads},
                  {"classes", shape.num_classes},
                  {"steps", shape.steps},
                  {"eps", kEps}}) {}

  std::string name() const override { return name_; }
  int64_t num_parameters() const override { return program_.num_parameters(); }
  double attack() override { return program_.ask({{"run", 1}}).at("seconds").get<double>(); }

 private:
  std::string name_;
  PeerProgram program_;
};

}  // namespace

std::string AttackedModel::text() const {
  return std::string(attention) + (through_metric ? " through" : "");
}

std::unique_ptr<Attacker> make_our_attacker(const AttackCase& shape, const AttackedModel& model) {
  return std::make_unique<OurAttacker>(shape, model);
}

std::unique_ptr<Attacker> make_torch_attacker(const AttackCase& shape,
                                              const AttackedModel& model,
                                              int num_threads) {
  return std::make_unique<TorchAttacker>(shape, model, num_threads);
}

std::vector<AttackResult> measure_attacks(const std::vector<Attacker*>& attackers,
                                          int repeats,
                                          const ProgressFn& progress) {
  const auto timings = take_turns(
      attackers.size(),
      {.warm_up = 1, .repeats = repeats, .what = "attacks of everybody", .progress = progress},
      [&](size_t i) { return attackers[i]->attack(); });
  std::vector<AttackResult> results;
  results.reserve(attackers.size());
  for (size_t i = 0; i < attackers.size(); ++i) {
    results.push_back({attackers[i]->name(), attackers[i]->num_parameters(), timings[i]});
  }
  return results;
}

}  // namespace elliptical::bench
