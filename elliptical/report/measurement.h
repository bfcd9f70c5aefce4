// SPDX-License-Identifier: MIT
//
// What the records of a run say about its final weights, ordered by the circumstances of the
// measurement, so that only like is compared with like.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/report/quantity.h"
#include "elliptical/report/run_data.h"

namespace elliptical::report {

/// What was done to the data: nothing, words swapped or pictures corrupted, pictures attacked.
enum class Condition { kClean, kDamaged, kAttacked };

/// What is measured: a column of a comparison in given circumstances.
struct Measure {
  const char* name;  ///< of the column; an attack has a name of its own
  const Quantity* quantity;
  const char* metric;        ///< of its records
  const char* block_metric;  ///< of its blocks
  const char* targets;       ///< label of its blocks; empty: they have none
  Condition condition;
};
inline constexpr std::array kMeasures = {
    Measure{"clean", &kPerplexity, "perplexity", "block_nll", "all", Condition::kClean},
    Measure{"swapped", &kPerplexity, "perplexity", "block_nll", "all", Condition::kDamaged},
    Measure{"clean targets, swapped text", &kPerplexity, "perplexity_clean_targets", "block_nll",
            "clean", Condition::kDamaged},
    Measure{"swapped targets", &kPerplexity, "perplexity_swapped_targets", "block_nll", "swapped",
            Condition::kDamaged},
    Measure{"clean", &kAccuracy, "accuracy", "block_accuracy", "", Condition::kClean},
    Measure{"corrupted", &kAccuracy, "accuracy", "block_accuracy", "", Condition::kDamaged},
    Measure{"mCE", &kCorruptionError, "mce", "block_mce", "", Condition::kDamaged},
    Measure{"attacked", &kAccuracy, "robust_accuracy", "block_robust_accuracy", "",
            Condition::kAttacked},
};

/// One of the equal parts of the data; parts without a target are left out.
struct Block {
  int64_t index = 0;
  double value = 0;  ///< mean of -log p, accuracy or error
  int64_t count = 0;
};

struct Measurement {
  double value = 0;
  int64_t count = 0;          ///< targets
  size_t place = 0;           ///< among the records of the run, where it was first recorded
  std::vector<Block> blocks;  ///< all of the data, or none
  int64_t num_classes = 0;    ///< of the pictures; 0: unknown
  /// Why a robust accuracy may be too high (base/attack_flags.h).
  std::vector<std::string> doubts = {};
};

/// Which attack; docs/attacks.md says what its parts mean.
struct AttackKind {
  std::string name;
  double eps = 0;
  std::string profile, metric_gradient, options;
  int64_t seed = 0;
  auto operator<=>(const AttackKind&) const = default;
};

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
  std::string corruption;  ///< of pictures: which ones
  std::string damage;      ///< what else is known about the damage
  AttackKind attack;
  auto operator<=>(const Circumstances&) const = default;
};

Circumstances circumstances_of(const Record& record);

/// The command that measures a run in these circumstances, with parts of the data recorded apart.
std::string measuring_command(const Circumstances& circumstances, const std::string& folder);

/// "1/255", "0.01"
std::string eps_text(double eps);

/// What an attack is called: its name, and in words what is not usual about it follows its budget:
/// "pgd" and {"eps 1/255", "steps=7"}.
std::vector<std::string> attack_details(const AttackKind& attack);

/// "RUN: accuracy under pgd, eps 1/255 may be too high, WHY"
std::string doubt_text(const std::string& folder,
                       const AttackKind& attack,
                       const std::string& doubt);

/// Whether it is one of the numbers that runs are compared by, on undamaged data.
bool is_clean_measure(const Record& record);

/// Per circumstances, one place for each of kMeasures.
using Measurements = std::map<Circumstances, std::map<size_t, Measurement>>;

/// The measurements of a run after `step`. A later record of the same thing takes the place of an
/// earlier one. Evaluations with another scope of the metric than the trained one, those of an
/// average of weights, attacks on damaged data, and parts of pictures that do not have all classes
/// alike, as earlier versions cut them, are left out.
Measurements measurements_at(const RunData& run, int64_t step);

/// A label as text, whatever its type; "" when it is absent.
std::string label_text(const Record& record, const std::string& name);

/// The last step that records of the run speak of; -1: none.
int64_t last_measured_step(const RunData& run);

}  // namespace elliptical::report
