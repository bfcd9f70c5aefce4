// SPDX-License-Identifier: MIT
//
// Options of attacks: each has an effect, each survives printing, draws are what they claim.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "elliptical/base/config.h"
#include "tests/attack/small_models.h"

namespace elliptical::attack::testing {
namespace {

/// Every field of every attack, with another value than the cheap one's.
const std::vector<std::pair<std::string, std::string>>& changes() {
  static const std::vector<std::pair<std::string, std::string>> list = {
      {"apgd-ce", "steps=3"},
      {"apgd-ce", "eot_passes=2"},
      {"apgd-ce", "rho=0"},
      {"apgd-ce", "stop_when_broken=false"},
      {"apgd-dlr", "steps=3"},
      {"apgd-dlr", "eot_passes=2"},
      {"apgd-dlr", "rho=0"},
      {"apgd-dlr", "stop_when_broken=false"},
      {"apgd-t", "steps=3"},
      {"apgd-t", "eot_passes=2"},
      {"apgd-t", "rho=0"},
      {"apgd-t", "stop_when_broken=false"},
      {"apgd-t", "num_targets=1"},
      {"fab-t", "steps=3"},
      {"fab-t", "num_targets=1"},
      {"fab-t", "alpha_max=0.9"},
      {"fab-t", "eta=1.3"},
      {"fab-t", "beta=0.2"},
      {"fab-t", "stop_when_broken=false"},
      {"pgd", "steps=3"},
      {"pgd", "step_ratio=0.5"},
      {"pgd", "random_start=false"},
      {"spsa", "steps=3"},
      {"spsa", "pairs=4"},
      {"spsa", "delta=0.1"},
      {"spsa", "learning_rate=0.001"},
      {"spsa", "point=twice-picture"},
      {"spsa", "pass_size=8"},
      {"square", "queries=50"},
      {"square", "first_ratio=0.2"},
      {"square", "rescale=true"},
      {"auto-attack", "version=rand"},
      {"auto-attack", "apgd.steps=3"},
      {"auto-attack", "apgd_t.num_targets=1"},
      {"auto-attack", "fab.steps=3"},
      {"auto-attack", "square.queries=10"}};
  return list;
}

/// What can be seen of an attack: its result, and the sizes of its passes.
std::pair<at::Tensor, std::vector<int64_t>> seen(const ChosenOptions& options) {
  const LogitsFn net = trained_net();
  std::vector<int64_t> sizes;
  uint64_t pass = 0;
  const LogitsFn spy = [&](const at::Tensor& x) {
    sizes.push_back(x.size(0));
    return net(x) + 1e-3 * wave({x.size(0), 5}, static_cast<double>(++pass));
  };
  const at::Tensor x =
      make_attack(options)->perturb(spy, with_keys(generated_pictures(30)),
                                    pixel_threat(options.name() == "square" ? 0.1 : 0.02));
  return {x, sizes};
}

TEST(AttackOptions, EachHasAnEffect) {
  for (const auto& [attack, change] : changes()) {
    // Where a run ends with the first success, how it would go on can not be seen.
    std::vector<std::string> assignments;
    if (change.starts_with("rho")) assignments.emplace_back("stop_when_broken=false");
    const auto [x, sizes] = seen(cheap_options(attack, assignments));
    assignments.push_back(change);
    const auto [other_x, other_sizes] = seen(cheap_options(attack, assignments));
    EXPECT_TRUE(!at::equal(x, other_x) || sizes != other_sizes) << attack << " " << change;
  }
}

TEST(AttackOptions, EachIsTried) {
  std::set<std::pair<std::string, std::string>> tried;
  for (const auto& [attack, change] : changes())
    tried.emplace(attack, change.substr(0, change.find('=')));
  for (const AttackEntry& entry : attack_table()) {
    if (std::string(entry.name) == "auto-attack") continue;  // its groups are those of others
    const std::unique_ptr<Options> options = entry.make_options();
    for (const FieldText& field : describe(fields_of(*options))) {
      EXPECT_TRUE(tried.contains({entry.name, field.key})) << entry.name << " " << field.key;
      EXPECT_FALSE(field.help.empty());
    }
  }
}

TEST(AttackOptions, SurvivePrinting) {
  for (const auto& [attack, change] : changes()) {
    ChosenOptions options = cheap_options(attack, {change});
    ChosenOptions again(attack_choices(), attack);
    read_recipe_text(to_toml(fields_of(options)), "printed", fields_of(again));
    EXPECT_TRUE(differences(fields_of(again), fields_of(options)).empty()) << attack << change;
  }
}

TEST(AttackTable, IsSortedAndDescribed) {
  std::vector<std::string> names;
  for (const AttackEntry& entry : attack_table()) {
    names.emplace_back(entry.name);
    EXPECT_GT(std::string(entry.description).size(), 10);
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(names.size(), 9);
}

TEST(PictureRandom, DrawsAreUniformAndBelongToPictures) {
  const PictureKeys keys = picture_keys(RandomKey(1), 0, 50);
  const at::Tensor u = draw_uniform(keys, {3, 20, 20}, at::kFloat);
  EXPECT_GE(u.min().item<double>(), -1);
  EXPECT_LT(u.max().item<double>(), 1);
  // 60,000 numbers: standard deviations 0.0024 of the mean, 0.0012 of the mean square.
  EXPECT_NEAR(u.mean().item<double>(), 0, 0.012);
  EXPECT_NEAR(u.square().mean().item<double>(), 1.0 / 3, 0.006);
  const at::Tensor s = draw_signs(keys, {3, 20, 20}, at::kFloat);
  EXPECT_TRUE((s.abs() == 1).all().item<bool>());
  EXPECT_NEAR(s.mean().item<double>(), 0, 0.02);
  // Neighbouring signs, and signs of neighbouring pictures, have nothing in common.
  const at::Tensor flat = s.flatten(1);
  EXPECT_NEAR((flat.narrow(1, 0, 1199) * flat.narrow(1, 1, 1199)).mean().item<double>(), 0, 0.02);
  EXPECT_NEAR((flat.narrow(0, 0, 49) * flat.narrow(0, 1, 49)).mean().item<double>(), 0, 0.02);
  EXPECT_TRUE(at::equal(draw_uniform(picture_keys(RandomKey(1), 7, 2), {3, 20, 20}, at::kFloat),
                        u.narrow(0, 7, 2)));
  EXPECT_TRUE(
      at::equal(draw_signs(select(keys, at::arange(9, 1, -6)), {3, 20, 20}, at::kFloat)[1], s[3]));
}

}  // namespace
}  // namespace elliptical::attack::testing
