// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <set>

#include "elliptical/base/names.h"
#include "elliptical/report/comparison_columns_impl.h"

namespace elliptical::report {
namespace {

bool is_usable(const measure::Measure& measure, double value) {
  return std::isfinite(value) && (value > 0 || !measure.is_ratio);
}

/// What an attack is called: what is not usual about it follows its name and budget.
Column attack_words(const measure::Circumstances& circumstances) {
  const measure::AttackKind& attack = circumstances.attack;
  const std::vector<std::string> more = measure::attack_details(attack);
  return {.name = attack.name + ", " + join(more),
          .place = "under " + attack.name + " (" + join(more) + ")"};
}

/// Pictures that have all classes alike, rather than the first ones, as earlier versions took them.
bool is_fair(const measure::Circumstances& circumstances) {
  return circumstances.num_pictures == 0 || !circumstances.subset.empty();
}

/// The circumstances that most runs were measured in, of those that may be chosen; of equally many
/// those of fair pictures.
template <class Allowed>
std::optional<measure::Circumstances> most_common(const std::vector<MeasuredRun>& runs,
                                                  Allowed allowed) {
  std::map<measure::Circumstances, int> counts;
  for (const MeasuredRun& run : runs) {
    for (const auto& [circumstances, by_measure] : run.all) {
      if (allowed(circumstances)) ++counts[circumstances];
    }
  }
  if (counts.empty()) return std::nullopt;
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) {
                            return std::pair(a.second, is_fair(a.first)) <
                                   std::pair(b.second, is_fair(b.first));
                          })
      ->first;
}

class Chooser {
 public:
  Chooser(std::vector<MeasuredRun>& runs, const ComparisonOptions& options)
      : runs_(runs), options_(options) {}
  ColumnChoice choose();

 private:
  std::string choose_split() const;
  std::vector<measure::Circumstances> choose_attacks(
      const std::optional<measure::Circumstances>& clean);
  void drop_unfair(std::vector<measure::Circumstances>& attacks);
  const measure::TaskMeasures& measures() const;
  bool is_wanted_damage(const measure::Circumstances& circumstances) const;
  bool has_wanted_pictures(const measure::Circumstances& circumstances) const;
  bool is_wanted_method(const measure::Circumstances& circumstances) const {
    return options_.method.empty() || circumstances.reading.method == options_.method;
  }
  void add_columns(const measure::Circumstances& circumstances);
  void add_column(const measure::ComparedNumber& number,
                  const measure::Circumstances& circumstances,
                  const std::vector<const measure::Measurement*>& by_run);

  std::vector<MeasuredRun>& runs_;
  const ComparisonOptions& options_;
  ColumnChoice result_;
  int64_t num_all_ = 0;                  ///< pictures that clean accuracy was measured on
  std::optional<int64_t> num_attacked_;  ///< pictures of the first attack
};

ColumnChoice Chooser::choose() {
  result_.split = choose_split();
  const auto clean = most_common(runs_, [&](const measure::Circumstances& c) {
    return c.split == result_.split && c.condition == measure::Condition::kClean &&
           is_wanted_method(c);
  });
  if (clean) {
    result_.reading = clean->reading;
    add_columns(*clean);
    for (const MeasuredRun& run : runs_) {
      if (!run.chosen.empty() && run.chosen[0] != nullptr) num_all_ = run.chosen[0]->count;
    }
  }
  std::optional<measure::Reading> reading;
  if (clean) reading = clean->reading;
  for (const measure::Perturbation& perturbation : measures().perturbations) {
    const auto damaged = most_common(runs_, [&](const measure::Circumstances& c) {
      return c.split == result_.split && c.perturbation == perturbation.name &&
             (reading ? c.reading == *reading : is_wanted_method(c)) && is_wanted_damage(c) &&
             has_wanted_pictures(c);
    });
    if (!damaged) continue;
    result_.reading = damaged->reading;
    reading = damaged->reading;
    result_.damages.push_back({.perturbation = &perturbation,
                               .kind = damaged->corruption,
                               .strength = damaged->strength});
    add_columns(*damaged);
  }
  for (const measure::Circumstances& attacked : choose_attacks(clean)) add_columns(attacked);
  return std::move(result_);
}

const measure::TaskMeasures& Chooser::measures() const {
  return runs_.empty() ? measure::kNoMeasures : *runs_.front().run->measures;
}

bool Chooser::is_wanted_damage(const measure::Circumstances& circumstances) const {
  const auto wanted = options_.damages.find(circumstances.perturbation);
  if (wanted == options_.damages.end()) return true;
  const auto& [kind, strength] = wanted->second;
  return circumstances.corruption == kind.value_or(circumstances.corruption) &&
         circumstances.strength == strength.value_or(circumstances.strength);
}

/// All pictures are meant where as many as there are, or more, are asked for.
bool Chooser::has_wanted_pictures(const measure::Circumstances& circumstances) const {
  if (!options_.num_pictures || circumstances.num_pictures == *options_.num_pictures) return true;
  return circumstances.num_pictures == 0 && num_all_ <= *options_.num_pictures;
}

/// Attacks count only where nothing else was measured.
std::string Chooser::choose_split() const {
  if (!options_.split.empty()) return options_.split;
  for (const bool with_attacks : {false, true}) {
    for (const char* split : {"test", "valid"}) {
      const auto found = most_common(runs_, [&](const measure::Circumstances& c) {
        return c.split == split && (with_attacks || c.condition != measure::Condition::kAttacked);
      });
      if (found) return split;
    }
  }
  return "valid";
}

/// Those that runs of two methods have, of the data that are compared, as they were recorded first.
std::vector<measure::Circumstances> Chooser::choose_attacks(
    const std::optional<measure::Circumstances>& clean) {
  std::vector<measure::Circumstances> attacks;
  std::map<measure::Circumstances, std::set<std::string>> names;
  for (const MeasuredRun& run : runs_) {
    std::map<size_t, const measure::Circumstances*> by_place;
    for (const auto& [circumstances, by_measure] : run.all) {
      const bool is_meant = circumstances.condition == measure::Condition::kAttacked &&
                            circumstances.split == result_.split &&
                            (!clean || circumstances.reading == clean->reading);
      if (is_meant && !by_measure.empty()) {
        by_place[by_measure.begin()->second.place] = &circumstances;
      }
    }
    for (const auto& [place, circumstances] : by_place) {
      auto& of_attack = names[*circumstances];
      if (of_attack.empty()) attacks.push_back(*circumstances);
      of_attack.insert(run.run->name);
    }
  }
  const bool has_others = std::any_of(runs_.begin(), runs_.end(), [&](const MeasuredRun& run) {
    return run.run->name != runs_.front().run->name;
  });
  std::erase_if(attacks, [&](const measure::Circumstances& c) {
    const std::set<std::string>& of_attack = names.at(c);
    if (of_attack.size() > 1) return false;
    if (has_others) {
      measure::CommandTarget others = command_target(*runs_.front().run);
      others.folder = "RUN";
      result_.problems.push_back(
          "attacks: only " + *of_attack.begin() + " is attacked by " + attack_words(c).name +
          " (left out; for the others: " +
          measure::measuring_command(c, *runs_.front().run->measures, others) + ")");
    }
    return true;
  });
  drop_unfair(attacks);
  if (attacks.size() > kMaxAttackColumns) {
    result_.problems.push_back("attacks: of " + std::to_string(attacks.size()) + " the first " +
                               std::to_string(kMaxAttackColumns) +
                               " are compared (the report draws more of them)");
    attacks.resize(kMaxAttackColumns);
  }
  return attacks;
}

/// The same attack on the first pictures and on fair ones: the latter.
void Chooser::drop_unfair(std::vector<measure::Circumstances>& attacks) {
  const std::vector<measure::Circumstances> all = attacks;
  const size_t num_dropped = std::erase_if(attacks, [&](const measure::Circumstances& old) {
    return old.subset.empty() &&
           std::any_of(all.begin(), all.end(), [&](const measure::Circumstances& c) {
             return !c.subset.empty() && c.attack == old.attack &&
                    c.num_pictures == old.num_pictures;
           });
  });
  if (num_dropped == 0) return;
  result_.problems.push_back("attacks: " + std::to_string(num_dropped) +
                             " on the first pictures, as earlier versions took them, are left out "
                             "where there is the same on pictures of all classes");
}

void Chooser::add_columns(const measure::Circumstances& circumstances) {
  std::map<size_t, std::vector<const measure::Measurement*>> columns;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const MeasuredRun& run = runs_[i];
    const std::string folder = run.run->folder.string();
    const auto found = run.all.find(circumstances);
    if (found == run.all.end()) {
      const std::string what =
          circumstances.condition == measure::Condition::kAttacked
              ? "attacked by " + attack_words(circumstances).name
              : std::string("measured on ") +
                    (circumstances.condition == measure::Condition::kDamaged ? "damaged"
                                                                             : "clean") +
                    " data";
      result_.problems.push_back(
          folder + ": is not " + what + " as the others are (" +
          measure::measuring_command(circumstances, *run.run->measures, command_target(*run.run)) +
          ")");
      continue;
    }
    for (const auto& [place, measurement] : found->second) {
      const measure::ComparedNumber& number = run.run->measures->numbers[place];
      for (const std::string& doubt : measurement.doubts) {
        result_.problems.push_back(measure::doubt_text(folder, circumstances.attack, doubt));
      }
      for (const std::string& remark : measurement.remarks) {
        add_once(measure::remark_text(circumstances.attack, remark), result_.remarks);
      }
      if (is_usable(*number.measure, measurement.value)) {
        auto& column = columns[place];
        column.resize(runs_.size());
        column[i] = &measurement;
      } else {
        result_.has_non_finite = true;
        result_.problems.push_back(folder + ": " + number.metric +
                                   " must be finite, is not (left out; train it again with a "
                                   "lower optimizer.learning_rate)");
      }
    }
  }
  for (const auto& [place, by_run] : columns) {
    add_column(runs_.front().run->measures->numbers[place], circumstances, by_run);
  }
}

void Chooser::add_column(const measure::ComparedNumber& number,
                         const measure::Circumstances& circumstances,
                         const std::vector<const measure::Measurement*>& by_run) {
  Column column = circumstances.condition == measure::Condition::kAttacked
                      ? attack_words(circumstances)
                      : Column{.name = number.name, .place = number.place};
  column.measure = number.measure;
  column.condition = circumstances.condition;
  column.perturbation = circumstances.perturbation;
  column.has_own_section = number.has_own_section;
  const bool is_part = circumstances.num_pictures < num_all_ || num_all_ == 0;
  column.num_pictures = is_part ? circumstances.num_pictures : 0;
  column.num_all = num_all_;
  if (!circumstances.subset.empty()) {
    for (const measure::Measurement* measurement : by_run) {
      if (measurement != nullptr) column.num_classes = measurement->num_classes;
    }
  }
  // The first attack says how many pictures are usual.
  if (circumstances.condition == measure::Condition::kAttacked) {
    if (!num_attacked_) num_attacked_ = circumstances.num_pictures;
    if (circumstances.num_pictures != *num_attacked_) {
      const std::string more = std::to_string(circumstances.num_pictures) + " pictures";
      column.name += ", " + more;
      column.place += " of " + more;
    }
  }
  result_.columns.push_back(std::move(column));
  for (size_t i = 0; i < runs_.size(); ++i) runs_[i].chosen.push_back(by_run[i]);
}

}  // namespace

ColumnChoice choose_columns(std::vector<MeasuredRun>& runs, const ComparisonOptions& options) {
  return Chooser(runs, options).choose();
}

}  // namespace elliptical::report
