// SPDX-License-Identifier: MIT
#include "bench/cases.h"

#include <fmt/format.h>

#include <algorithm>

namespace elliptical::bench {
namespace {

AttentionCase causal(AttentionCase shape) {
  shape.is_causal = true;
  return shape;
}

AttentionCase padded(AttentionCase shape) {
  shape.key_lengths = padded_lengths(shape.sizes.B, shape.sizes.N);
  return shape;
}

AttentionCase with_additive_mask(AttentionCase shape) {
  shape.mask_add = "B1NM";
  return shape;
}

TimedCase quick(TimedCase timed) {
  timed.is_quick = true;
  return timed;
}

/// What `metric` costs, against no metric.
TimedCase against_plain(AttentionCase shape, const Axes& metric) {
  // A metric may cost 3 %: time without it over time with it must be at least 1 / 1.03.
  constexpr double kMetricPrice = 1 / 1.03;
  shape.metric = metric;
  return {shape, kMetricPrice, kMetricPrice, "plain"};
}

}  // namespace

const std::vector<PeerName>& peers() {
  static const std::vector<PeerName> table = {{"sdpa", "torch"},
                                              {"unfused", "libtorch matmul and softmax"},
                                              {"ort", "ONNX Runtime, if installed"}};
  return table;
}

std::vector<std::string> peer_names() {
  std::vector<std::string> names;
  for (const PeerName& peer : peers()) names.emplace_back(peer.name);
  names.emplace_back("plain");
  return names;
}

std::string name(Pass pass) { return pass == Pass::kForward ? "forward" : "forward+backward"; }

std::string TimedCase::name() const {
  const auto& [B, H, Hk, N, M, D, Dv] = shape.sizes;
  std::string text = fmt::format("{},{},{},{}", B, H, N, D);
  if (shape.is_causal) text += " causal";
  if (!shape.key_lengths.empty()) text += " padding";
  if (!shape.mask_add.empty()) text += " additive-mask";
  if (rival == "plain") text += shape.has_metric_row() ? " metric-row" : " metric-per-query";
  return text;
}

double TimedCase::must(Pass pass) const {
  return pass == Pass::kForward ? must_forward : must_backward;
}

double TimedCase::flops(Pass pass) const {
  const auto& [B, H, Hk, N, M, D, Dv] = shape.sizes;
  // Two products forward, five more backward (the scores are computed again).
  const double products = pass == Pass::kForward ? 2 : 7;
  const double visible = shape.is_causal ? 0.5 * (1.0 + 1.0 / static_cast<double>(N)) : 1.0;
  return products * 2.0 * static_cast<double>(B * H * N * N * D) * visible;
}

std::vector<int64_t> padded_lengths(int64_t B, int64_t N) {
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < B; ++b)
    lengths.push_back(N / 2 + (N - N / 2) * b / std::max<int64_t>(B - 1, 1));
  return lengths;
}

std::vector<TimedCase> all_cases() {
  const AttentionCase lm = causal(self_attention(4, 8, 256, 16));
  const AttentionCase vit = self_attention(16, 3, 197, 64);
  const AttentionCase dense = self_attention(4, 8, 1024, 64);

  std::vector<TimedCase> cases = {
      {causal(self_attention(8, 8, 128, 16)), 2.6, 2.2},
      quick({lm, 2.8, 2.5}),
      {causal(self_attention(4, 8, 256, 64)), 1.9, 2.0},
      quick({vit, 1.3, 1.3}),
      {self_attention(16, 6, 197, 64), 1.3, 1.3},
      {self_attention(8, 12, 197, 64), 1.3, 1.3},
      quick({dense, 1.15, 1.15}),
      {causal(dense), 1.6, 1.65},
      {self_attention(1, 8, 4096, 64), 1.15, 1.15},
      {causal(self_attention(1, 8, 4096, 64)), 1.25, 1.25},
      {self_attention(2, 2, 4096, 32), 1.25, 1.15},
      {self_attention(2, 4, 2048, 32), 1.25, 1.15},
      quick({padded(dense), 2.0, 2.0}),
      {with_additive_mask(dense), 1.15, 1.15},
  };
  for (const AttentionCase& shape : {lm, vit, dense}) {
    cases.push_back(against_plain(shape, "1H1D"));
    cases.push_back(against_plain(shape, "BHND"));
  }
  return cases;
}

}  // namespace elliptical::bench
