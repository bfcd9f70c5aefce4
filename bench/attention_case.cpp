// SPDX-License-Identifier: MIT
#include "bench/attention_case.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <sstream>

namespace elliptical::bench {
namespace {

const char* yes_no(bool value) { return value ? "yes" : "no"; }

std::string or_none(const Axes& axes) { return axes.empty() ? "none" : axes; }

int64_t size_of(char letter, const kernels::AttentionSizes& sizes) {
  switch (letter) {
    case 'B':
      return sizes.B;
    case 'H':
      return sizes.H;
    case 'N':
      return sizes.N;
    case 'M':
      return sizes.M;
    case 'D':
      return sizes.D;
    default:
      return 1;
  }
}

}  // namespace

std::array<bool, 4> broadcast_axes(const Axes& axes) {
  std::array<bool, 4> broadcast;
  broadcast.fill(true);
  const size_t left_out = broadcast.size() - axes.size();
  for (size_t i = 0; i < axes.size(); ++i) broadcast[left_out + i] = axes[i] == '1';
  return broadcast;
}

double AttentionCase::logit_scale() const {
  const auto width = static_cast<double>(std::max<int64_t>(sizes.D, 1));  // no width: no logits
  return scale.value_or(1.0 / std::sqrt(width));
}

bool AttentionCase::has_metric_row() const { return !metric.empty() && broadcast_axes(metric)[2]; }

std::vector<int64_t> AttentionCase::shape_of(const Axes& axes) const {
  std::vector<int64_t> shape;
  for (const char letter : axes) shape.push_back(size_of(letter, sizes));
  return shape;
}

std::string AttentionCase::describe() const {
  std::ostringstream text;
  text << "case " << name << (name.empty() ? "" : ", ") << "seed " << seed << ": B=" << sizes.B
       << " H=" << sizes.H << " Hk=" << sizes.Hk << " N=" << sizes.N << " M=" << sizes.M
       << " D=" << sizes.D << " Dv=" << sizes.Dv << " causal=" << yes_no(is_causal)
       << " scale=" << logit_scale() << " spread=" << spread << " dropout=" << dropout_p
       << " d_lse=" << yes_no(has_d_lse) << " metric=" << or_none(metric)
       << " mask_add=" << or_none(mask_add) << " mask_keep=" << or_none(mask_keep) << " lengths=";
  if (key_lengths.empty()) text << "none";
  for (size_t b = 0; b < key_lengths.size(); ++b) text << (b ? "," : "") << key_lengths[b];
  text << " memory=" << (plain_memory ? "contiguous" : "random");
  return text.str();
}

std::ostream& operator<<(std::ostream& stream, const AttentionCase& shape) {
  return stream << shape.describe();
}

AttentionCase self_attention(int64_t B, int64_t H, int64_t N, int64_t D) {
  return {.sizes = {B, H, H, N, N, D, D}, .metric = "1H1D"};
}

}  // namespace elliptical::bench
