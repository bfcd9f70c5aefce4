// SPDX-License-Identifier: MIT
//
// The circumstances of a measurement: on which data, how they were read, what was done to them.
// Only what was measured in the same circumstances is compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/base/records.h"
#include "elliptical/measure/task_measures.h"

namespace elliptical::measure {

/// Which attack; docs/attacks.md says what its parts mean.
struct AttackKind {
  std::string name;
  double eps = 0;
  std::string profile, metric_gradient, options;
  int64_t seed = 0;
  auto operator<=>(const AttackKind&) const = default;
};

/// The mean over AutoAttack's attacks, each by itself, and these.
inline constexpr const char *kIndividualMean = "individual-mean",
                            *kIndividualAttacks = "apgd-ce,apgd-t,fab-t,square";

/// Data and how they were read (docs/data.md); of pictures only the data. Perplexities that were
/// read in different ways are different quantities.
struct Reading {
  std::string data;
  std::string method;  ///< "block", "sliding", "stream"
  int64_t window = 0, columns = 0, stride = 0;
  auto operator<=>(const Reading&) const = default;
};

/// "by a sliding window of 256 tokens, stride 1"; "" of pictures.
std::string reading_text(const Reading& reading);

/// What was measured, and on what: data, split, how they were read, what was done to them.
struct Circumstances {
  std::string split;
  Condition condition = Condition::kClean;
  double strength = 0;  ///< of the damage: rate of swapped words, severity (0: all of them)
  Reading reading;
  int64_t num_pictures = 0;  ///< only so many; 0: all. Of an attack always their number
  std::string subset;      ///< how they were chosen; empty: all, or by an earlier version the first
  std::string corruption;  ///< of damage that has several kinds: which
  std::string damage;      ///< what else is unusual about the damage
  AttackKind attack;
  std::string perturbation;  ///< of damaged data: by what
  auto operator<=>(const Circumstances&) const = default;
};

/// What a record says about how the data were read.
Reading reading_of(const Record& record);
/// About the attack that it is of.
AttackKind attack_of(const Record& record);
/// Nothing where something was done to the data that its task does not declare.
std::optional<Circumstances> circumstances_of(const Record& record, const TaskMeasures& measures);
/// Whether data were damaged as `compare` does it: but for kind and strength with what is usual.
bool is_usual_damage(const Circumstances& circumstances);

/// What is unusual about the damage, by its labels.
std::vector<std::pair<std::string, std::string>> damage_details(const Circumstances& circumstances,
                                                                const Perturbation& perturbation);

/// "1/255" where the fraction is this very number, else all digits: "0.01". What is read back is
/// the same number.
std::string eps_text(double eps);

/// What an attack is called: its name, and in words what is not usual about it follows its budget:
/// "pgd" and {"eps 1/255", "steps=7"}.
std::vector<std::string> attack_details(const AttackKind& attack);

/// "auto-attack, eps 8/255: REMARK": what is worth knowing beside its number.
std::string remark_text(const AttackKind& attack, const std::string& remark);

/// "RUN: accuracy under pgd, eps 1/255 may be too high, WHY"
std::string doubt_text(const std::string& folder,
                       const AttackKind& attack,
                       const std::string& doubt);

}  // namespace elliptical::measure
