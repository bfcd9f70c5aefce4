// SPDX-License-Identifier: MIT
//
// Every number that a recipe, an evaluation or an attack can set, at its worst: it is refused as a
// mistake of the user, or the small thing that it is set in works.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>

#include "elliptical/attack/attack.h"
#include "elliptical/base/available_memory.h"
#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/run/run_options.h"
#include "elliptical/tasks/task.h"
#include "tests/support/passes.h"

namespace elliptical::run {
namespace {

bool is_number(const Field& field) {
  return std::holds_alternative<int64_t*>(field.place) ||
         std::holds_alternative<double*>(field.place) ||
         std::holds_alternative<std::optional<int64_t>*>(field.place) ||
         std::holds_alternative<std::optional<double>*>(field.place) ||
         std::holds_alternative<std::vector<int64_t>*>(field.place) ||
         std::holds_alternative<std::vector<double>*>(field.place);
}

/// Calls `use` with the assignments that lead to each set of fields there is: every name of every
/// choice that decides which fields there are, one choice after the other.
void for_each_choice(const std::function<ListFields(const std::vector<std::string>&)>& make,
                     const std::vector<std::string>& chosen,
                     std::set<std::string>& seen,
                     const std::function<void(const std::vector<std::string>&)>& use) {
  use(chosen);
  const ListFields list = make(chosen);
  const FieldList fields = list();
  for (const Field& field : fields.fields()) {
    const auto* choice = std::get_if<Choice>(&field.place);
    if (choice == nullptr || !choice->selects_fields || field.key == "task.name") continue;
    for (const std::string& name : choice->names) {
      const std::string assignment = field.key + "=" + name;
      if (!seen.insert(assignment).second) continue;
      std::vector<std::string> more = chosen;
      more.push_back(assignment);
      for_each_choice(make, more, seen, use);
    }
  }
}

constexpr const char* kExtremes[] = {"-1",
                                     "0",
                                     "1",
                                     "2147483648",
                                     "4611686018427387904",
                                     "9223372036854775807",
                                     "nan",
                                     "inf",
                                     "-inf",
                                     "1e30",
                                     "1e300",
                                     "1e-300"};

bool is_whole(const Field& field) {
  return std::holds_alternative<int64_t*>(field.place) ||
         std::holds_alternative<std::optional<int64_t>*>(field.place) ||
         std::holds_alternative<std::vector<int64_t>*>(field.place);
}

/// The same, and both ends of what the field may be.
std::vector<std::string> values_for(const Field& field) {
  std::vector<std::string> values(std::begin(kExtremes), std::end(kExtremes));
  for (const double end : {limits_of(field).low, limits_of(field).high}) {
    if (std::abs(end) == 0x1p63) continue;  // all whole numbers: the extremes have its ends
    char text[40];
    std::snprintf(text, sizeof text, is_whole(field) ? "%.0f" : "%.17g", end);
    values.emplace_back(text);
  }
  return values;
}

struct Walk {
  std::set<std::string> fields;
  int64_t num_refused = 0, num_taken = 0;
};

/// Sets every number behind `make` to every extreme; `check` what was taken.
Walk walk(const std::function<ListFields(const std::vector<std::string>&)>& make,
          const std::function<void(const std::vector<std::string>&)>& check) {
  Walk result;
  std::set<std::string> seen;
  for_each_choice(make, {}, seen, [&](const std::vector<std::string>& chosen) {
    const ListFields list = make(chosen);
    const FieldList fields = list();
    for (const Field& field : fields.fields()) {
      if (!is_number(field)) continue;
      if (!result.fields.insert(field.key).second) continue;
      EXPECT_TRUE(std::isfinite(limits_of(field).low) && std::isfinite(limits_of(field).high))
          << field.key;
      for (const std::string& value : values_for(field)) {
        std::vector<std::string> assignments = chosen;
        assignments.push_back(field.key + "=" + value);
        try {
          make(assignments);
        } catch (const ConfigError& error) {
          EXPECT_NE(std::string(error.what()).find(": " + field.key + ": "), std::string::npos)
              << error.what();
          ++result.num_refused;
          continue;
        }
        ++result.num_taken;
        check(assignments);
      }
    }
  });
  return result;
}

/// A mistake of the user or of his data, with a message of ours; anything else is a fault.
void expect_works_or_is_refused(const std::function<void()>& work, const std::string& what) {
  try {
    work();
  } catch (const ConfigError&) {
  } catch (const UsageError&) {
  } catch (const DataError&) {
  } catch (const MemoryError&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
}

/// A tiny model on a little of the built-in data, then `assignments`.
std::shared_ptr<RunOptions> small_options(const std::string& task,
                                          const std::vector<std::string>& assignments) {
  auto options = std::make_shared<RunOptions>();
  options->task.choose(task);
  std::vector<std::string> values;
  for (const std::string& each : assignments) {
    // Choices come before the shrinking, which knows what they chose; numbers behind it.
    const FieldList list = fields_of(*options)();
    const bool is_choice =
        std::any_of(list.fields().begin(), list.fields().end(), [&](const Field& field) {
          return each.starts_with(field.key + "=") && std::holds_alternative<Choice>(field.place);
        });
    if (is_choice) {
      apply_overrides({each}, fields_of(*options));
    } else {
      values.push_back(each);
    }
  }
  shrink(*options);
  tasks::find_task(task).shrink(options->task.options());
  apply_overrides(values, fields_of(*options));
  return options;
}

class OptionLimits : public ::testing::TestWithParam<std::string> {
 protected:
  OptionLimits() { setenv("ELLIPTICAL_MEMORY", "500M", 1); }
  ~OptionLimits() override { unsetenv("ELLIPTICAL_MEMORY"); }
};

TEST_P(OptionLimits, M1ExtremesOfARecipeAreRefusedOrTrain) {
  const std::string task = GetParam();
  const auto make = [&](const std::vector<std::string>& assignments) -> ListFields {
    auto options = std::make_shared<RunOptions>();
    options->task.choose(task);
    apply_overrides(assignments, fields_of(*options));
    return [options] { return fields_of(*options)(); };
  };
  const Walk walked = walk(make, [&](const std::vector<std::string>& assignments) {
    expect_works_or_is_refused(
        [&] {
          const auto options = small_options(task, assignments);
          const auto made = tasks::find_task(task).make(
              options->task.options(), {.seed = static_cast<uint64_t>(options->seed)});
          support::loss_of(*made, made->train_batch(0), 0).backward();
        },
        assignments.back());
  });
  EXPECT_GT(walked.fields.size(), 40U);
  EXPECT_GT(walked.num_refused, 200);
  EXPECT_GT(walked.num_taken, 50);
}

TEST_P(OptionLimits, M1ExtremesOfAnEvaluationAreRefusedOrMeasure) {
  const std::string name = GetParam();
  const auto small = small_options(name, {});
  const auto task = tasks::find_task(name).make(small->task.options(), {.seed = 1});
  const auto make_eval = [&](const std::vector<std::string>& assignments) {
    std::shared_ptr<Options> options = task->make_eval_options();
    apply_overrides(assignments, fields_of(*options));
    return options;
  };
  const auto make = [&](const std::vector<std::string>& assignments) -> ListFields {
    return [options = make_eval(assignments)] { return fields_of(*options)(); };
  };
  const Walk walked = walk(make, [&](const std::vector<std::string>& assignments) {
    expect_works_or_is_refused(
        [&] {
          const auto set = task->eval_set(*make_eval(assignments));
          ASSERT_GT(set->size(), 0) << assignments.back();
          tasks::Scores scores;
          support::score(*task, *set, 0, scores);
          EXPECT_FALSE(task->metrics(scores).empty()) << assignments.back();
        },
        assignments.back());
  });
  EXPECT_GE(walked.fields.size(), 5U);
}

INSTANTIATE_TEST_SUITE_P(Tasks,
                         OptionLimits,
                         ::testing::Values("language_model", "classify_image"));

TEST(AttackLimits, M1ExtremesOfAttacksAreRefusedOrCountTheirPasses) {
  for (const attack::AttackEntry& entry : attack::attack_table()) {
    const auto make_chosen = [&](const std::vector<std::string>& assignments) {
      auto chosen = std::make_shared<ChosenOptions>(attack::attack_choices(), entry.name);
      apply_overrides(assignments, fields_of(chosen->options()));
      return chosen;
    };
    walk(
        [&](const std::vector<std::string>& assignments) -> ListFields {
          return [chosen = make_chosen(assignments)] { return fields_of(chosen->options())(); };
        },
        [&](const std::vector<std::string>& assignments) {
          const auto attack = attack::make_attack(*make_chosen(assignments));
          EXPECT_GT(attack->max_passes(1000), 0) << entry.name << " " << assignments.back();
        });
  }
}

}  // namespace
}  // namespace elliptical::run
