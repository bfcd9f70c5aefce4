// SPDX-License-Identifier: MIT
#include "tests/support/attention_variants.h"

#include "elliptical/base/config.h"
#include "elliptical/nn/attention/attention.h"

namespace elliptical::support {

ChosenOptions AttentionVariant::options(const std::vector<std::string>& more) const {
  ChosenOptions chosen(nn::attention_choices(), attention);
  std::vector<std::string> all = assignments;
  all.insert(all.end(), more.begin(), more.end());
  apply_overrides(all, fields_of(chosen));
  return chosen;
}

std::vector<AttentionVariant> attention_variants() {
  return {
      {.name = "softmax", .attention = "softmax"},
      {.name = "softmax_unscaled", .attention = "softmax", .assignments = {"scale_logits=false"}},
      {.name = "difference", .attention = "elliptical"},
      {.name = "difference_mean",
       .attention = "elliptical",
       .assignments = {"metric.scaling=mean"}},
      {.name = "difference_none",
       .attention = "elliptical",
       .assignments = {"metric.scaling=none", "metric.delta=0.5"}},
      {.name = "difference_unscaled",
       .attention = "elliptical",
       .assignments = {"scale_logits=false"}},
      {.name = "median",
       .attention = "elliptical",
       .assignments = {"metric.estimator=median"},
       .streams = false},
      {.name = "quotient", .attention = "elliptical", .assignments = {"metric.estimator=quotient"}},
      {.name = "consistent",
       .attention = "elliptical",
       .assignments = {"metric.estimator=consistent"},
       .streams = false},
      {.name = "jacobian",
       .attention = "elliptical",
       .assignments = {"metric.estimator=jacobian", "metric.query_stride=2"},
       .streams = false},
      {.name = "random", .attention = "elliptical", .assignments = {"metric.estimator=random"}},
      {.name = "random_fixed",
       .attention = "elliptical",
       .assignments = {"metric.estimator=random_fixed"}},
      {.name = "constant",
       .attention = "elliptical",
       .assignments = {"metric.estimator=constant", "metric.value=0.5"}},
      {.name = "matched",
       .attention = "elliptical",
       .assignments = {"metric.estimator=matched", "metric.value=0.63"}},
      {.name = "isotropic",
       .attention = "elliptical",
       .assignments = {"metric.estimator=isotropic"}},
      {.name = "temperature",
       .attention = "elliptical",
       .assignments = {"metric.estimator=temperature", "metric.value=0.63"}},
      {.name = "released_lm",
       .attention = "elliptical",
       .assignments = {"preset=released-lm", "metric_lookahead=true"},
       .streams = false,
       .leaks = true},
      {.name = "fourier", .attention = "fourier", .damped = true},
      {.name = "fourier_vector",
       .attention = "fourier",
       .assignments = {"radius=1", "radius_per_coordinate=true", "epsilon=0"}},
      {.name = "fourier_elliptical",
       .attention = "fourier",
       .assignments = {"distance=elliptical", "metric.estimator=temperature", "metric.value=0.6"},
       .damped = true},
      {.name = "mgk", .attention = "mgk", .assignments = {"window=64"}, .damped = true},
      {.name = "mgk_shifted",
       .attention = "mgk",
       .assignments = {"window=64", "keys=shifted", "bandwidths=[0.5,0.5]", "epsilon=0"}},
      {.name = "mgk_hard", .attention = "mgk", .assignments = {"mixture=hard", "keys=shifted"}},
      {.name = "mgk_elliptical",
       .attention = "mgk",
       .assignments = {"window=64", "distance=elliptical"},
       .damped = true},
      {.name = "mgk_elliptical_one_row",
       .attention = "mgk",
       .assignments = {"window=64", "distance=elliptical", "metric.estimator=temperature",
                       "metric.value=0.6"},
       .damped = true},
      {.name = "performer",
       .attention = "performer",
       .drops = false,
       .exact_gradient = {"epsilon=0"}},
      {.name = "performer_gaussian",
       .attention = "performer",
       .assignments = {"projection=gaussian", "hyperbolic=false", "num_features=5", "epsilon=0"},
       .drops = false},
      {.name = "performer_released_lm",
       .attention = "performer",
       .assignments = {"preset=released-lm"},
       .damped = true,
       .drops = false},
      {.name = "performer_released_lra",
       .attention = "performer",
       .assignments = {"preset=released-lra"},
       .drops = false,
       .exact_gradient = {"epsilon=0"}},
      {.name = "performer_elliptical",
       .attention = "performer",
       .assignments = {"distance=elliptical", "metric.estimator=temperature", "metric.value=0.6"},
       .drops = false,
       .exact_gradient = {"epsilon=0"}},
  };
}

}  // namespace elliptical::support
