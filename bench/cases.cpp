// SPDX-License-Identifier: MIT
#include "bench/cases.h"

#include <fmt/format.h>

namespace elliptical::bench {

std::vector<std::string> peer_names() { return {"sdpa", "unfused", "ort", "plain"}; }

std::string name(Pass pass) { return pass == Pass::kForward ? "forward" : "forward+backward"; }

std::string Case::name() const {
  std::string text = fmt::format("{},{},{},{}", B, H, N, D);
  if (is_causal) text += " causal";
  if (mask == Mask::kPadding) text += " padding";
  if (mask == Mask::kAdditive) text += " additive-mask";
  if (rival == "plain") text += metric == Metric::kRow ? " metric-row" : " metric-per-query";
  return text;
}

double Case::must(Pass pass) const { return pass == Pass::kForward ? must_forward : must_backward; }

double Case::flops(Pass pass) const {
  // Two products forward, five more backward (the scores are computed again).
  const double products = pass == Pass::kForward ? 2 : 7;
  const double visible = is_causal ? 0.5 * (1.0 + 1.0 / static_cast<double>(N)) : 1.0;
  return products * 2.0 * static_cast<double>(B * H * N * N * D) * visible;
}

std::vector<Case> all_cases() {
  // A metric may cost 3 %: time without it over time with it must be at least 1 / 1.03.
  constexpr double kMetricPrice = 1 / 1.03;
  const auto against_plain = [](Case c, Metric metric) {
    c.metric = metric;
    c.rival = "plain";
    c.must_forward = c.must_backward = kMetricPrice;
    return c;
  };
  const Case lm{.B = 4, .H = 8, .N = 256, .D = 16, .is_causal = true};
  const Case vit{.B = 16, .H = 3, .N = 197, .D = 64};
  const Case dense{.B = 4, .H = 8, .N = 1024, .D = 64};

  std::vector<Case> cases = {
      {.B = 8,
       .H = 8,
       .N = 128,
       .D = 16,
       .is_causal = true,
       .must_forward = 2.6,
       .must_backward = 2.2},
      {.B = 4,
       .H = 8,
       .N = 256,
       .D = 16,
       .is_causal = true,
       .must_forward = 2.8,
       .must_backward = 2.5,
       .is_quick = true},
      {.B = 4,
       .H = 8,
       .N = 256,
       .D = 64,
       .is_causal = true,
       .must_forward = 1.9,
       .must_backward = 2.0},
      {.B = 16,
       .H = 3,
       .N = 197,
       .D = 64,
       .must_forward = 1.3,
       .must_backward = 1.3,
       .is_quick = true},
      {.B = 16, .H = 6, .N = 197, .D = 64, .must_forward = 1.3, .must_backward = 1.3},
      {.B = 8, .H = 12, .N = 197, .D = 64, .must_forward = 1.3, .must_backward = 1.3},
      {.B = 4,
       .H = 8,
       .N = 1024,
       .D = 64,
       .must_forward = 1.15,
       .must_backward = 1.15,
       .is_quick = true},
      {.B = 4,
       .H = 8,
       .N = 1024,
       .D = 64,
       .is_causal = true,
       .must_forward = 1.6,
       .must_backward = 1.65},
      {.B = 1, .H = 8, .N = 4096, .D = 64, .must_forward = 1.15, .must_backward = 1.15},
      {.B = 1,
       .H = 8,
       .N = 4096,
       .D = 64,
       .is_causal = true,
       .must_forward = 1.25,
       .must_backward = 1.25},
      {.B = 2, .H = 2, .N = 4096, .D = 32, .must_forward = 1.25, .must_backward = 1.15},
      {.B = 2, .H = 4, .N = 2048, .D = 32, .must_forward = 1.25, .must_backward = 1.15},
      {.B = 4,
       .H = 8,
       .N = 1024,
       .D = 64,
       .mask = Mask::kPadding,
       .must_forward = 2.0,
       .must_backward = 2.0,
       .is_quick = true},
      {.B = 4,
       .H = 8,
       .N = 1024,
       .D = 64,
       .mask = Mask::kAdditive,
       .must_forward = 1.15,
       .must_backward = 1.15},
  };
  for (const Case& shape : {lm, vit, dense}) {
    cases.push_back(against_plain(shape, Metric::kRow));
    cases.push_back(against_plain(shape, Metric::kPerQuery));
  }
  return cases;
}

}  // namespace elliptical::bench
