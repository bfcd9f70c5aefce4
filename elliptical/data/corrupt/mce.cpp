// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/mce.h"

#include <functional>
#include <numeric>

#include "elliptical/base/errors.h"

namespace elliptical::data {
namespace {

const CorruptionErrors& alexnet_row(const std::string& name) {
  const size_t index = &find_corruption(name) - corruption_table().data();
  return alexnet_errors()[index];
}

/// 100 times the mean of `error` over the corruptions of a group.
double mean_over(const std::vector<CorruptionErrors>& model,
                 CorruptionGroup group,
                 const std::function<double(const CorruptionErrors&)>& error) {
  double sum = 0;
  int count = 0;
  for (const CorruptionEntry& entry : corruption_table()) {
    if (entry.group != group) continue;
    int num_given = 0;
    for (const CorruptionErrors& row : model) {
      if (row.name != entry.name) continue;
      sum += error(row);
      ++num_given;
    }
    if (num_given != 1) {
      throw UsageError(std::string("mCE: each ") + to_string(group) +
                       " corruption must be there once, got " + entry.name + " " +
                       std::to_string(num_given) + " times");
    }
    ++count;
  }
  return 100.0 * sum / count;
}

}  // namespace

double CorruptionErrors::mean() const {
  return std::accumulate(errors.begin(), errors.end(), 0.0) / kNumSeverities;
}

const std::vector<CorruptionErrors>& alexnet_errors() {
  static const std::vector<CorruptionErrors> table = {
      {"gaussian_noise", {.69528, .82542, .93554, .98138, .99452}},
      {"shot_noise", {.71224, .85108, .93574, .98182, .99146}},
      {"impulse_noise", {.78374, .89808, .94870, .98720, .99548}},
      {"defocus_blur", {.65624, .73202, .85036, .91364, .94714}},
      {"glass_blur", {.64308, .75054, .88806, .91622, .93344}},
      {"motion_blur", {.58430, .70048, .82108, .89750, .92638}},
      {"zoom_blur", {.70008, .76992, .80784, .84198, .87198}},
      {"snow", {.71726, .88392, .86468, .91870, .94952}},
      {"frost", {.61390, .79734, .88790, .89942, .93430}},
      {"fog", {.67474, .76050, .84378, .87260, .94500}},
      {"brightness", {.45140, .48502, .54048, .62166, .72440}},
      {"contrast", {.64548, .76150, .88874, .97760, .99270}},
      {"elastic_transform", {.52596, .70116, .55686, .64076, .80554}},
      {"pixelate", {.52218, .54620, .73728, .87092, .91262}},
      {"jpeg_compression", {.51002, .54718, .57294, .65458, .74778}},
      {"speckle_noise", {.66192, .74440, .90246, .94548, .97268}},
      {"gaussian_blur", {.54732, .70444, .82574, .89864, .95940}},
      {"spatter", {.47196, .62194, .75052, .84132, .90182}},
      {"saturate", {.59342, .65514, .51174, .70834, .82260}},
  };
  return table;
}

double corruption_error(const CorruptionErrors& model) {
  return model.mean() / alexnet_row(model.name).mean();
}

double relative_corruption_error(const CorruptionErrors& model, double clean_error) {
  return (model.mean() - clean_error) / (alexnet_row(model.name).mean() - kAlexnetCleanError);
}

double mean_corruption_error(const std::vector<CorruptionErrors>& model, CorruptionGroup group) {
  return mean_over(model, group, corruption_error);
}

double relative_mean_corruption_error(const std::vector<CorruptionErrors>& model,
                                      double clean_error,
                                      CorruptionGroup group) {
  return mean_over(model, group, [clean_error](const CorruptionErrors& row) {
    return relative_corruption_error(row, clean_error);
  });
}

}  // namespace elliptical::data
