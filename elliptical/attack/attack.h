// SPDX-License-Identifier: MIT
//
// The contract of attacks: pictures and their labels in, pictures of the same shape out that a
// model gets wrong, no number changed by more than eps and none outside the box. An attack sees a
// function, not a model: what normalizes, freezes or counts belongs to that function.
//
//     const auto pgd = make_attack(ChosenOptions(attack_choices(), "pgd"));
//     const at::Tensor adversarial = pgd->perturb(
//         logits, {.x = x, .y = y, .keys = picture_keys(RandomKey(seed), first, x.size(0))},
//         {.eps = 1.0 / 255, .low = at::scalar_tensor(0.0), .high = at::scalar_tensor(1.0)});
//
// fgsm, pgd and spsa change every picture. The others try only those that are classified rightly
// and return the clean picture wherever they fail.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "elliptical/attack/loss.h"
#include "elliptical/attack/picture_random.h"
#include "elliptical/attack/threat.h"
#include "elliptical/base/options.h"

namespace elliptical::attack {

struct Pictures {
  at::Tensor x;                  ///< (B, C, H, W), float or double
  at::Tensor y;                  ///< (B) int64: what the attack is to lead away from
  PictureKeys keys;              ///< B of them
  at::Tensor clean_logits = {};  ///< (B, K) of x; undefined: the attack computes them
  Pictures select(const at::Tensor& indices) const;
};

/// What an attack noticed: numbers that say whether a robust accuracy is to be believed.
struct Findings {
  /// Predictions or logits differ between passes over the same pictures (use version = "rand").
  bool is_randomised = false;
  /// Logits look like probabilities: gradients of saturated ones vanish.
  bool looks_like_probabilities = false;
  /// Fewer than 4 classes, so that apgd-t was left out, or fewer than it has targets.
  bool has_few_classes = false;
  /// Pictures whose gradient of DLR was 0 everywhere at a start of apgd.
  int64_t num_zero_gradients = 0;
  /// Of auto-attack: which pictures (B) bool were robust before its first attack and after each.
  struct Stage {
    std::string attack;
    at::Tensor robust;
  };
  at::Tensor robust_at_start = {};
  std::vector<Stage> stages;
};

/// How many of `num_pictures` a search without gradients broke that gradients had not: more than
/// 0.2 points say that gradients are of little use and the robust accuracy too high.
bool square_beats_gradients(int64_t num_broken_by_square, int64_t num_pictures);

/// What an attack works on, checked.
struct Problem {
  const LogitsFn& logits;
  Pictures pictures;  ///< with clean logits
  FeasibleSet set;
  Findings& findings;
  Problem select(const at::Tensor& indices) const;
};

class Attack {
 public:
  virtual ~Attack() = default;

  /// eps = 0 gives the input back, bit for bit. What is returned is checked to lie in the ball and
  /// in the box, without tolerance; a fault of an attack throws.
  at::Tensor perturb(const LogitsFn& logits,
                     Pictures pictures,
                     const Threat& threat,
                     Findings* findings = nullptr) const;

  /// Passes of one picture through the model at most, the one for clean logits not counted.
  virtual int64_t max_passes(int64_t num_classes) const = 0;

 protected:
  friend class AutoAttack;
  virtual at::Tensor search(const Problem& problem) const = 0;
};

/// One line of the table of attacks.
struct AttackEntry {
  const char* name;
  const char* description;
  std::unique_ptr<Options> (*make_options)();
  std::unique_ptr<Attack> (*make)(const Options& options);
  /// Whether it changes every picture; else those alone that are classified rightly.
  bool changes_every_picture = false;
  /// Sets what the released code does otherwise, where that is not sound. Null: nothing.
  void (*use_published_options)(Options& options) = nullptr;
};

const std::vector<AttackEntry>& attack_table();
const std::vector<OptionsEntry>& attack_choices();
std::unique_ptr<Attack> make_attack(const ChosenOptions& chosen);

}  // namespace elliptical::attack
