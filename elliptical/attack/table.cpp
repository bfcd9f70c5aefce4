// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include "elliptical/attack/apgd.h"
#include "elliptical/attack/attack.h"
#include "elliptical/attack/auto_attack.h"
#include "elliptical/attack/fab.h"
#include "elliptical/attack/fgsm.h"
#include "elliptical/attack/pgd.h"
#include "elliptical/attack/spsa.h"
#include "elliptical/attack/square.h"

namespace elliptical::attack {
namespace {

template <class T>
std::unique_ptr<Options> make_options() {
  return std::make_unique<T>();
}

}  // namespace

const std::vector<AttackEntry>& attack_table() {
  static const std::vector<AttackEntry> table{
      {.name = "apgd-ce",
       .description = "gradient ascent on the cross entropy that sets its own step",
       .make_options = make_options<ApgdOptions>,
       .make = make_apgd_ce},
      {.name = "apgd-dlr",
       .description = "the same on a ratio of logits, which does not saturate",
       .make_options = make_options<ApgdOptions>,
       .make = make_apgd_dlr},
      {.name = "apgd-t",
       .description = "the same towards each of the 9 most likely other classes",
       .make_options = make_options<ApgdTargetedOptions>,
       .make = make_apgd_t},
      {.name = "auto-attack",
       .description = "apgd-ce, apgd-t, fab-t and square in turn, on what is left",
       .make_options = make_options<AutoAttackOptions>,
       .make = make_auto_attack},
      {.name = "fab-t",
       .description = "the nearest misclassified picture, over linearised boundaries",
       .make_options = make_options<FabOptions>,
       .make = make_fab_t},
      {.name = "fgsm",
       .description = "one step along the sign of the gradient",
       .make_options = make_options<FgsmOptions>,
       .make = make_fgsm},
      {.name = "pgd",
       .description = "20 such steps from a random start",
       .make_options = make_options<PgdOptions>,
       .make = make_pgd},
      {.name = "spsa",
       .description = "descent on gradients estimated from evaluations alone",
       .make_options = make_options<SpsaOptions>,
       .make = make_spsa},
      {.name = "square",
       .description = "random search with squares, no gradients",
       .make_options = make_options<SquareOptions>,
       .make = make_square},
  };
  return table;
}

const std::vector<OptionsEntry>& attack_choices() {
  static const std::vector<OptionsEntry> choices = [] {
    std::vector<OptionsEntry> list;
    for (const AttackEntry& entry : attack_table()) {
      list.push_back({entry.name, entry.description, entry.make_options});
    }
    return list;
  }();
  return choices;
}

std::unique_ptr<Attack> make_attack(const ChosenOptions& chosen) {
  for (const AttackEntry& entry : attack_table()) {
    if (entry.name == chosen.name()) return entry.make(chosen.get<Options>());
  }
  TORCH_CHECK(false, "attack: none is called \"", chosen.name(), "\"");
}

}  // namespace elliptical::attack
