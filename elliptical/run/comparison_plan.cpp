// SPDX-License-Identifier: MIT
#include "elliptical/run/comparison_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "elliptical/base/config.h"
#include "elliptical/base/controls.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/measure/labels.h"

namespace elliptical::run {
namespace {

const std::string kAttention = "task.model.attention.";
const std::string kSoftmax = "softmax", kElliptical = "elliptical";

/// A null twin has this much more of the metric: nobody could want it, and rounding is far below
/// it.
constexpr double kTwinFactor = 1.002;

struct Control {
  std::string_view name;
  const char* key;  ///< below the attention
  const char* value;
  bool needs_value = false;
  double factor = 1;
};
constexpr std::array<Control, 6> kDefinitions = {{
    {kMatchedConstant, "metric.estimator", "matched", true},
    {kLearnedTemperature, "metric.estimator", "temperature", true},
    {kIsotropic, "metric.estimator", "isotropic"},
    {kRandomFixed, "metric.estimator", "random_fixed"},
    {kMeanScaling, "metric.scaling", "mean"},
    {kNullTwin, "metric.estimator", "matched", true, kTwinFactor},
}};

std::string value_of(const RunOptions& options, const std::string& key) {
  RunOptions copy = options;
  for (const FieldText& field : describe(fields_of(copy))) {
    if (field.key == key) {
      const bool quoted = field.value.size() >= 2 && field.value.front() == '"';
      return quoted ? field.value.substr(1, field.value.size() - 2) : field.value;
    }
  }
  return "";
}

RunOptions changed(RunOptions options,
                   const std::string& name,
                   const std::vector<std::string>& assignments) {
  apply_overrides(assignments, fields_of(options));
  options.name = name;
  return options;
}

std::string folder_name(const std::string& name, int64_t seed) {
  std::string result = name;
  std::replace(result.begin(), result.end(), ' ', '-');
  return result + "-seed-" + std::to_string(seed);
}

/// A name becomes that of a folder: throws unless it stays below the one of the comparison.
void check_name(const std::string& name) {
  constexpr size_t kMaxBytes = 100;
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7F; };
  const bool has_controls = std::any_of(name.begin(), name.end(), is_control);
  if (!has_controls && name.size() <= kMaxBytes && name.find('/') == std::string::npos &&
      !name.starts_with('.') && !name.starts_with('-')) {
    return;
  }
  std::string shown = name.substr(0, kMaxBytes);
  std::replace_if(shown.begin(), shown.end(), is_control, '?');
  throw ConfigError(
      "compare: name must be that of a folder: no \"/\", no control characters, no \".\" or \"-\" "
      "in front, at most " +
      std::to_string(kMaxBytes) + " bytes, got \"" + shown + "\" (set name = \"...\")");
}

void check_same(const std::vector<RunOptions>& recipes, const std::string& key, const char* what) {
  const std::string first = value_of(recipes.front(), key);
  for (const RunOptions& recipe : recipes) {
    const std::string other = value_of(recipe, key);
    if (other == first) continue;
    throw ConfigError(std::string("compare: recipes must be of one ") + what + ", got " + first +
                      " and " + other + " (compare them one by one)");
  }
}

/// What is trained with each seed; `control` is null for recipes.
struct Kind {
  RunOptions options;
  const Control* control = nullptr;
};

/// Recipes with their names, softmax among them, in the order of the table.
std::vector<Kind> named_recipes(const std::vector<RunOptions>& recipes) {
  std::vector<Kind> kinds;
  std::vector<std::string> names;
  bool has_softmax = false;
  for (RunOptions options : recipes) {
    const std::string attention = value_of(options, kAttention + "name");
    if (options.name.empty()) options.name = attention;
    check_name(options.name);
    if (std::find(names.begin(), names.end(), options.name) != names.end()) {
      throw ConfigError("compare: recipes must have different names, two are called \"" +
                        options.name + "\" (set name = \"...\" in one of them)");
    }
    names.push_back(options.name);
    has_softmax |= attention == kSoftmax;
    kinds.push_back({std::move(options)});
  }
  if (!has_softmax) {
    kinds.insert(kinds.begin(),
                 {changed(recipes.front(), kSoftmax, {kAttention + "name=" + kSoftmax})});
  }
  std::stable_partition(kinds.begin(), kinds.end(),
                        [](const Kind& kind) { return kind.options.name == kSoftmax; });
  return kinds;
}

}  // namespace

std::string PlannedRun::title() const { return name + ", seed " + std::to_string(seed()); }

std::vector<PlannedRun> plan_comparison(const ComparisonRequest& request) {
  check_same(request.recipes, "task.name", "task");
  check_same(request.recipes, "task.data.name", "data set");
  std::vector<Kind> kinds = named_recipes(request.recipes);
  const auto elliptical = std::find_if(kinds.begin(), kinds.end(), [](const Kind& kind) {
    return value_of(kind.options, kAttention + "name") == kElliptical;
  });
  const auto source = static_cast<size_t>(elliptical - kinds.begin());
  if (elliptical != kinds.end()) {
    const RunOptions base = elliptical->options;
    for (const Control& control : kDefinitions) {
      const std::string name(control.name);
      if (std::find(request.controls.begin(), request.controls.end(), name) ==
          request.controls.end()) {
        continue;
      }
      kinds.push_back(
          {changed(base, name, {kAttention + control.key + "=" + control.value}), &control});
    }
  }

  std::map<std::string, std::string> folders;
  for (const Kind& kind : kinds) {
    const auto [other, is_new] =
        folders.emplace(folder_name(kind.options.name, 1), kind.options.name);
    if (is_new) continue;
    throw ConfigError("compare: names must give different folders, \"" + other->second +
                      "\" and \"" + kind.options.name + "\" both give " + other->first +
                      " (set name = \"...\" in a recipe)");
  }

  std::vector<PlannedRun> plan;
  for (const int64_t seed : request.seeds) {
    const size_t first = plan.size();
    for (const Kind& kind : kinds) {
      PlannedRun run{.name = kind.options.name,
                     .folder = request.folder / folder_name(kind.options.name, seed),
                     .options = kind.options};
      run.options.seed = seed;
      if (kind.control != nullptr && kind.control->needs_value) {
        run.value_of = first + source;
        run.value_factor = kind.control->factor;
      }
      plan.push_back(std::move(run));
    }
  }
  return plan;
}

std::optional<double> measured_metric_mean(const std::vector<Record>& records, int64_t step) {
  std::optional<double> value;
  for (const Record& record : records) {
    if (record.metric == "metric_mean" && std::isfinite(record.value) &&
        measure::step_of(record) == step &&
        measure::source_of(record) == measure::Source::kTraining) {
      value = record.value;
    }
  }
  return value;
}

RunOptions with_value(const PlannedRun& planned, double mean) {
  RunOptions options = planned.options;
  std::array<char, 32> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), planned.value_factor * mean);
  apply_overrides({kAttention + "metric.value=" + std::string(text.data(), end.ptr)},
                  fields_of(options));
  return options;
}

std::vector<int64_t> parse_seeds(const std::string& text) {
  std::vector<int64_t> numbers;
  std::vector<std::string> parts = split(text);
  if (parts.back().empty()) parts.pop_back();  // "2," is a list of one
  for (const std::string& part : parts) {
    int64_t number = -1;
    const auto result = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = result.ec == std::errc() && result.ptr == part.data() + part.size();
    const bool is_new = std::find(numbers.begin(), numbers.end(), number) == numbers.end();
    if (!is_number || number < 0 || !is_new) {
      numbers.clear();
      break;
    }
    numbers.push_back(number);
  }
  constexpr int64_t kMaxSeeds = 1000;
  const bool is_count = text.find(',') == std::string::npos;
  if (numbers.empty() || (is_count && (numbers[0] < 1 || numbers[0] > kMaxSeeds))) {
    throw UsageError("compare: --seeds must be how many (3) or which ones (1,2,5), got \"" + text +
                     "\"");
  }
  if (!is_count) return numbers;
  std::vector<int64_t> seeds;
  for (int64_t seed = 1; seed <= numbers[0]; ++seed) seeds.push_back(seed);
  return seeds;
}

std::vector<std::string> parse_controls(const std::string& text) {
  const std::vector<std::string> all(kControls.begin(), kControls.end());
  if (text == "all") return all;
  if (text == "none") return {};
  const std::vector<std::string> names = name_list(text, "compare: --controls");
  for (const std::string& name : names) {
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      std::vector<std::string> known = {"all", "none"};
      known.insert(known.end(), all.begin(), all.end());
      throw UsageError("compare: --controls: " + unknown_name(name, known));
    }
  }
  return names;
}

}  // namespace elliptical::run
