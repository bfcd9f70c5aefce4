// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/mom.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "elliptical/base/errors.h"
#include "elliptical/base/infinity.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/ops/attention.h"

namespace elliptical::nn {
namespace {

/// The number of the median along dim 0 of (S, ...), upper of two; infinite ones do not count. S
/// where none is finite.
at::Tensor median_index(const at::Tensor& values) {
  const int64_t S = values.size(0);
  const auto [sorted, order] = values.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor num_finite = values.isfinite().sum(0, /*keepdim=*/true);
  const at::Tensor middle = order.gather(0, num_finite.div(2, "floor"));
  return at::where(num_finite > 0, middle, S).squeeze(0);
}

class MomMixer : public DensityMixer {
 public:
  MomMixer(const MomOptions& options, const AttentionShape& shape)
      : DensityMixer(options, shape, shape.is_causal && options.is_global), options_(options) {
    if (shape.is_causal && options.is_global && !options.lookahead) {
      throw ConfigError(
          "mom attention: selection must be \"query\" in a causal model, got \"global\": every "
          "token would see the ones after it through the choice of the block (say lookahead = true "
          "to have it so)");
    }
  }

  at::Tensor mix(const Heads& heads, const Pass& pass, std::unique_ptr<MixerState>* state) override;

  std::optional<std::string> why_no_streaming() const override {
    return "name = \"mom\" splits all tokens of a sequence into blocks, so that each new token "
           "changes the blocks of those before it (kde streams)";
  }

  bool mixes_sequences() const override { return options_.is_global; }

  std::map<std::string, LabelValue> labels() const override {
    std::map<std::string, LabelValue> labels = DensityMixer::labels();
    labels["num_blocks"] = options_.num_blocks;
    labels.insert_or_assign("selection",
                            LabelValue(std::string(options_.is_global ? "global" : "query")));
    return labels;
  }

 private:
  /// What every query makes of one block.
  struct BlockResult {
    at::Tensor out;          ///< (B, H, N, D)
    at::Tensor log_density;  ///< (B, H, N), up to a term of the query; infinite where it sees none
  };
  BlockResult attend_to(const at::Tensor& block,
                        const std::string& dropout_purpose,
                        const LogKernel& kernel,
                        const at::Tensor& v,
                        const Pass& pass) const;
  size_t global_choice(const std::vector<at::Tensor>& blocks,
                       const Heads& heads,
                       const std::optional<at::Tensor>& metric,
                       const Pass& pass) const;

  MomOptions options_;
};

MomMixer::BlockResult MomMixer::attend_to(const at::Tensor& block,
                                          const std::string& dropout_purpose,
                                          const LogKernel& kernel,
                                          const at::Tensor& v,
                                          const Pass& pass) const {
  // Positions ascend, so what a query sees of the block is its beginning.
  ops::AttentionOptions call{.scale = kernel.scale};
  at::Tensor num_seen = at::full({1, 1}, block.size(0), at::kLong);  // (B|1, N|1)
  if (pass.is_causal) {
    const at::Tensor n = at::arange(kernel.q.size(2));
    call.attn_mask = block <= n.unsqueeze(-1);  // (N, size)
    num_seen = at::searchsorted(block, n, /*out_int32=*/false, /*right=*/true).unsqueeze(0);
  }
  if (pass.key_lengths) {
    call.key_lengths = at::searchsorted(block, *pass.key_lengths);  // (B)
    num_seen = at::minimum(num_seen, call.key_lengths->unsqueeze(-1));
  }
  if (pass.training && regression().dropout > 0.0) {
    call.dropout_p = regression().dropout;
    call.dropout_seed = pass.seed(dropout_purpose);
  }
  const auto [out, lse] = ops::attention_with_lse(kernel.q, kernel.k.index_select(2, block),
                                                  v.index_select(2, block), {}, call);
  num_seen = num_seen.unsqueeze(1);  // for all heads
  return {out,
          at::where(num_seen > 0, lse.detach() - num_seen.to(lse.scalar_type()).log(), kInfinity)};
}

size_t MomMixer::global_choice(const std::vector<at::Tensor>& blocks,
                               const Heads& heads,
                               const std::optional<at::Tensor>& metric,
                               const Pass& pass) const {
  const at::NoGradGuard no_grad;
  const int64_t B = heads.k.size(0), H = heads.k.size(1), M = heads.k.size(2);
  at::Tensor real = at::ones({B, M}, at::kDouble);
  if (pass.key_lengths) {
    real = (at::arange(M) < pass.key_lengths->unsqueeze(-1)).to(at::kDouble);
  }
  // sum_n d^2(q_n, k_j) for every key, from the moments of the queries: (B, H, M).
  const at::Tensor q = heads.q.to(at::kDouble), k = normalized_keys(heads.k.to(at::kDouble));
  at::Tensor m = real.unsqueeze(1).unsqueeze(-1);
  if (metric) m = m * metric->to(at::kDouble);
  m = m.expand_as(q);
  const auto over_queries = [](const at::Tensor& t) { return t.sum(2, /*keepdim=*/true); };
  const at::Tensor distances =
      (over_queries(m * q * q) - 2.0 * k * over_queries(m * q) + k * k * over_queries(m)).sum(-1);
  const at::Tensor sums = (distances * real.unsqueeze(1)).sum({0, 1});  // (M)
  const at::Tensor pairs = (real * real.sum(-1, /*keepdim=*/true)).sum(0) * H;

  at::Tensor mean = at::full({static_cast<int64_t>(blocks.size())}, kInfinity, at::kDouble);
  for (size_t b = 0; b < blocks.size(); ++b) {
    const double num_pairs = pairs.index_select(0, blocks[b]).sum().item<double>();
    if (num_pairs == 0.0) continue;
    mean[static_cast<int64_t>(b)] = -sums.index_select(0, blocks[b]).sum() / num_pairs;
  }
  const auto choice = median_index(mean).item<int64_t>();
  return std::min(static_cast<size_t>(choice), blocks.size() - 1);  // a batch of padding alone
}

at::Tensor MomMixer::mix(const Heads& heads, const Pass& pass, std::unique_ptr<MixerState>* state) {
  const int64_t N = heads.q.size(2);
  const std::optional<at::Tensor> m = metric(heads, pass, state);
  const LogKernel kernel =
      log_kernel(heads.q, normalized_keys(heads.k), m, {}, regression().kernel_scale);
  std::vector<at::Tensor> blocks =
      draw_key_blocks(options_, N, RandomKey(static_cast<uint64_t>(pass.seed("mom blocks"))));
  if (options_.is_global) blocks = {blocks[global_choice(blocks, heads, m, pass)]};

  std::vector<at::Tensor> outs, log_densities;
  for (size_t b = 0; b < blocks.size(); ++b) {
    BlockResult result =
        attend_to(blocks[b], "attention dropout " + std::to_string(b), kernel, heads.v, pass);
    outs.push_back(std::move(result.out));
    log_densities.push_back(std::move(result.log_density));
  }
  const at::Tensor choice = median_index(at::stack(log_densities)).unsqueeze(-1);  // (B, H, N, 1)
  const auto S = static_cast<int64_t>(blocks.size());
  at::Tensor out = heads.v * (choice == S);  // sees no block: itself
  for (int64_t b = 0; b < S; ++b) out = out + outs[static_cast<size_t>(b)] * (choice == b);

  if (pass.key_lengths) {
    const at::Tensor real = at::arange(N) < pass.key_lengths->unsqueeze(-1);  // (B, N)
    out = at::where(real.unsqueeze(1).unsqueeze(-1), out, 0.0);
  }
  const auto map = [&] {
    at::Tensor members = at::zeros({S + 1, N}, at::kBool);
    for (int64_t b = 0; b < S; ++b) members[b].index_fill_(0, blocks[static_cast<size_t>(b)], true);
    const at::Tensor seen =
        members.index({choice.squeeze(-1)}).logical_and(visible_keys(N, N, pass));
    const at::Tensor logits = kernel.q.matmul(kernel.k.transpose(-2, -1)) * kernel.scale;
    const at::Tensor shares = at::where(seen, logits, -kInfinity).softmax(-1);
    return at::where(seen, shares, 0.0) + at::eye(N, shares.options()) * (choice == S);
  };
  leave_trace(heads, m, map, pass);
  return out;
}

}  // namespace

std::vector<at::Tensor> draw_key_blocks(const MomOptions& options,
                                        int64_t num_keys,
                                        RandomKey key) {
  int64_t num_blocks = options.num_blocks, size = 0;
  if (options.is_overlapping) {
    const double kept = static_cast<double>(num_keys) * (1.0 - options.left_out);
    size = std::max<int64_t>(1, static_cast<int64_t>(kept + 1e-9));  // 0.9 * 10 is 9
  } else {
    num_blocks = std::min(num_blocks, num_keys);
    size = num_keys / num_blocks;
  }
  RandomStream random(key);
  std::vector<int64_t> order(static_cast<size_t>(num_keys));
  std::iota(order.begin(), order.end(), 0);
  const auto shuffle = [&] {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  };
  shuffle();
  std::vector<at::Tensor> blocks;
  for (int64_t b = 0; b < num_blocks; ++b) {
    if (options.is_overlapping && b > 0) shuffle();
    const auto begin = order.begin() + (options.is_overlapping ? 0 : b * size);
    std::vector<int64_t> block(begin, begin + size);
    std::sort(block.begin(), block.end());
    blocks.push_back(at::tensor(block, at::kLong));
  }
  return blocks;
}

void MomOptions::visit(FieldList& fields) {
  DensityOptions::visit(fields);
  const auto add_flag = [&](const char* name, bool& flag, const char* off, const char* on,
                            const char* help) {
    fields.add_choice(name,
                      {.names = {off, on},
                       .get = [&flag, off, on] { return std::string(flag ? on : off); },
                       .set = [&flag, on](const std::string& text) { flag = text == on; }},
                      help);
  };
  fields.add("num_blocks", num_blocks, "blocks that the keys are split into",
             between(1, kMostTokens));
  add_flag("blocks", is_overlapping, "disjoint", "overlapping",
           "disjoint: a random partition; overlapping: random subsets");
  fields.add("left_out", left_out, "share of the keys that an overlapping block does not have",
             below(0, 1));
  add_flag("selection", is_global, "query", "global",
           "query: each query has its median block; global: one for the whole call");
  fields.add("lookahead", lookahead,
             "allows selection = global in a causal model, where it sees the future");
}

std::unique_ptr<Options> MomOptions::clone() const { return std::make_unique<MomOptions>(*this); }

std::shared_ptr<HeadMixer> make_mom_mixer(const MomOptions& options, const AttentionShape& shape) {
  return std::make_shared<MomMixer>(options, shape);
}

std::shared_ptr<Attention> make_mom(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_mom_mixer(dynamic_cast<const MomOptions&>(options), shape));
}

}  // namespace elliptical::nn
