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
#include "elliptical/base/name_table.h"

namespace elliptical::attack {
namespace {

/// The released code goes on with pictures that are broken, which changes no top-1 accuracy.
template <class SearchOptions>
void go_on_when_broken(Options& options) {
  dynamic_cast<SearchOptions&>(options).stop_when_broken = false;
}

void go_on_in_all_parts(Options& options) {
  auto& parts = dynamic_cast<AutoAttackOptions&>(options);
  parts.apgd.stop_when_broken = parts.apgd_t.stop_when_broken = parts.fab.stop_when_broken = false;
}

void estimate_at_twice_the_picture(Options& options) {
  dynamic_cast<SpsaOptions&>(options).point = SpsaPoint::kTwicePicture;
}

}  // namespace

const std::vector<AttackEntry>& attack_table() {
  static const std::vector<AttackEntry> table{
      {.name = "apgd-ce",
       .description = "gradient ascent on the cross entropy that sets its own step",
       .make_options = make_options<ApgdOptions>,
       .make = make_apgd_ce,
       .use_published_options = go_on_when_broken<ApgdOptions>},
      {.name = "apgd-dlr",
       .description = "the same on a ratio of logits, which does not saturate",
       .make_options = make_options<ApgdOptions>,
       .make = make_apgd_dlr,
       .use_published_options = go_on_when_broken<ApgdOptions>},
      {.name = "apgd-t",
       .description = "the same towards each of the 9 most likely other classes",
       .make_options = make_options<ApgdTargetedOptions>,
       .make = make_apgd_t,
       .use_published_options = go_on_when_broken<ApgdOptions>},
      {.name = "auto-attack",
       .description = "apgd-ce, apgd-t, fab-t and square in turn, on what is left",
       .make_options = make_options<AutoAttackOptions>,
       .make = make_auto_attack,
       .use_published_options = go_on_in_all_parts},
      {.name = "fab-t",
       .description = "the nearest misclassified picture, over linearised boundaries",
       .make_options = make_options<FabOptions>,
       .make = make_fab_t,
       .use_published_options = go_on_when_broken<FabOptions>},
      {.name = "fgsm",
       .description = "one step along the sign of the gradient",
       .make_options = make_options<FgsmOptions>,
       .make = make_fgsm,
       .changes_every_picture = true},
      {.name = "pgd",
       .description = "20 such steps from a random start",
       .make_options = make_options<PgdOptions>,
       .make = make_pgd,
       .changes_every_picture = true},
      {.name = "spsa",
       .description = "descent on gradients estimated from evaluations alone",
       .make_options = make_options<SpsaOptions>,
       .make = make_spsa,
       .changes_every_picture = true,
       .use_published_options = estimate_at_twice_the_picture},
      {.name = "square",
       .description = "random search with squares, no gradients",
       .make_options = make_options<SquareOptions>,
       .make = make_square},
  };
  return table;
}

const std::vector<OptionsEntry>& attack_choices() {
  static const std::vector<OptionsEntry> choices = choices_of(attack_table());
  return choices;
}

std::unique_ptr<Attack> make_attack(const ChosenOptions& chosen) {
  const AttackEntry* entry = find_entry(attack_table(), chosen.name());
  TORCH_CHECK(entry != nullptr, "attack: none is called \"", chosen.name(), "\"");
  return entry->make(chosen.get<Options>());
}

}  // namespace elliptical::attack
