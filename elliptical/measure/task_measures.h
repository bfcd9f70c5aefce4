// SPDX-License-Identifier: MIT
//
// What a task measures, as plain data: the numbers its runs are compared by and the records that
// tell them, what can be done to its data, how that is asked for, and the words of reports. Every
// entry of the table of tasks declares one TaskMeasures. `compare`, `eval` and `report` read it and
// know no task by name: who adds a task, a number or a perturbation writes it there and nowhere
// else.
//
// Whoever reads runs is handed the declarations of all tasks (MeasureTable); a run of a task that
// is none of them has kNoMeasures, and nothing of it can be compared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/measure/measure.h"

namespace elliptical::measure {

/// What was done to the data: nothing, damage without malice, an attack on the model.
enum class Condition { kClean, kDamaged, kAttacked };

/// A number that runs are compared by: a column of their comparison, and the records that tell it.
struct ComparedNumber {
  const char* name;   ///< of the column; of attacks none, theirs is that of the attack
  const char* place;  ///< the same in a sentence: "on clean text"; of attacks none
  const Measure* measure;
  Condition condition = Condition::kClean;
  const char* perturbation = "";  ///< of damaged data: the one by which
  const char* metric;             ///< of its records
  const char* block_metric;       ///< of the records of parts of the data (labels.h)
  const char* targets = "";       ///< their label `targets`; empty: they have none
  bool has_own_section = false;   ///< reports draw it elsewhere than clean against damaged data
};

/// One of the choices of a perturbation: a flag of `compare` and `eval`, an option of evaluations,
/// a label of records.
struct Parameter {
  enum class Kind { kNumber, kWhole, kText };
  const char* flag;    ///< "swap": --swap
  const char* option;  ///< "swap_rate": --set swap_rate=...
  const char* label;   ///< of the records that tell it
  Kind kind;
  const char* usual;          ///< what `compare` takes unless said
  double low = 0, high = 0;   ///< of numbers
  const char* help;           ///< of `compare`
  const char* eval_help;      ///< of `eval`
  const char* off = nullptr;  ///< the value that means: no such damage; null: none does
};

/// A label of records that is an option of evaluations.
struct EvalOption {
  const char* label;
  const char* option;
  /// The value that it has unless it is said; of `trained_options` the option of the recipe that
  /// has it.
  const char* usual;
};

/// A kind of damage that evaluations can do to the data.
struct Perturbation {
  const char* name;                    ///< label `perturbation` of its records
  const char* damaged;                 ///< what its data are called: "swapped"
  std::optional<Parameter> kind = {};  ///< which, where it has several: "fog"
  Parameter strength;                  ///< how much
  /// Labels that tell damage apart, beside kind and strength: only equal damage is compared. What
  /// is usual stands in TaskMeasures::options.
  std::span<const char* const> details;
  /// What a table says of it: "Swapped: 2.5 % of the words", "Corrupted: fog, severity 3".
  std::string (*words)(const std::string& kind, double strength);
};

/// Kind, if it has several, and strength.
std::vector<Parameter> parameters_of(const Perturbation& perturbation);

/// An error over kinds and severities of damage: its records, and the title of its chart.
struct DamageError {
  const char* metric;
  const char* title;
};

/// Records of how the main measure falls when data are attacked or damaged, for charts; empty:
/// there are none.
struct RobustnessRecords {
  const char* undamaged = "";    ///< beside those of attacks: "clean_accuracy"
  const char* attacked = "";     ///< "robust_accuracy"
  const char* attack_lead = "";  ///< what eps is the limit of, a sentence for readers of charts
  const char* by_damage = "";    ///< of one corruption and severity: "corrupted_accuracy"
  std::span<const DamageError> errors = {};
  const char* error_axis = "";
};

struct TaskMeasures {
  const char* task;  ///< its name in recipes and records
  const char* data;  ///< what it is measured on, as people call it: "text", "pictures"
  /// In the order of columns. The first is of clean data: all others are told beside it.
  std::span<const ComparedNumber> numbers = {};
  /// What `compare` does to the data unless told otherwise stands first.
  std::span<const Perturbation> perturbations = {};
  bool has_pictures = false;  ///< fewer of which can be measured: option `max_pictures`
  bool is_attacked = false;   ///< whether `attack` can look for what it gets wrong
  /// Ways to read the data, which give different numbers (`--method`), the usual one first.
  std::span<const char* const> methods = {};
  const char* method_help = "";
  /// What else `eval` must be told to measure a record again, in the order of the command, and the
  /// same of what is as in training unless it is said.
  std::span<const EvalOption> options = {}, trained_options = {};
  /// Parts of its data stand for all of them only where they were cut so that all classes are
  /// alike.
  bool has_balanced_blocks = false;
  /// Which record of a validation while training tells the loss, and what that is in nats.
  const char* loss_metric = "";
  double (*nats)(double value) = nullptr;
  const char* loss_lead = "Loss in nats.";  ///< what a report says above the curves of losses
  RobustnessRecords robustness = {};
  /// What a report says above charts of clean and damaged data.
  const char* lead = "";

  /// That by which runs are compared first of all; nameless where nothing is compared.
  const Measure& main() const;
  /// Null: it knows none of that name.
  const Perturbation* find_perturbation(std::string_view name) const;
  /// What was done to damaged data in tables that say nothing else; null: nothing can be.
  const Perturbation* usual_perturbation() const {
    return perturbations.empty() ? nullptr : &perturbations.front();
  }
};

inline constexpr TaskMeasures kNoMeasures{.task = "", .data = "data"};

/// The declarations of all tasks (tasks::measure_table()).
using MeasureTable = std::vector<const TaskMeasures*>;

/// kNoMeasures where no task has this name.
const TaskMeasures& find_measures(const MeasureTable& table, std::string_view task);

}  // namespace elliptical::measure
