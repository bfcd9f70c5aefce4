// SPDX-License-Identifier: MIT
//
// -log p of the adaptive softmax as one autograd node. Each softmax (the head, and every cluster
// for the tokens in it) takes its tokens in chunks and its words in blocks: a block of logits is a
// matrix product, turned into exponentials while it is in the cache; once the sums of all blocks
// are known, a second pass turns each block into gradients of logits and uses it up in two
// products.
//
// Gradients are computed together with the loss, for the upstream gradient 1 / T of a mean: that
// saves a product and an exponential for each logit. Any other upstream gradient is as right:
// a uniform one scales what is there, one that differs between tokens computes the gradients anew.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "elliptical/kernels/softmax_block.h"
#include "elliptical/ops/adaptive_softmax_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Logits that exist at a time (128 MiB), and in the cache at a time (4 MiB).
constexpr int64_t kChunkLogits = int64_t{1} << 25;
constexpr int64_t kBlockLogits = int64_t{1} << 20;

/// Rows of a weight matrix that take part in one softmax as its words [first_word, ...).
struct Block {
  at::Tensor weight, bias, d_weight, d_bias;
  int64_t first_word = 0;
  int64_t words() const { return weight.size(0); }
};

/// One softmax: its words, in blocks, and its tokens.
struct Softmax {
  std::vector<Block> blocks;
  int64_t num_words = 0;
  at::Tensor hidden;   ///< (tokens, C)
  at::Tensor targets;  ///< (tokens): words of this softmax
  at::Tensor step;     ///< (tokens): upstream gradient; undefined: no gradients
  at::Tensor d_hidden;
  at::Tensor nll;  ///< (tokens), written

  void add_words(const at::Tensor& weight,
                 const at::Tensor& bias,
                 const at::Tensor& d_weight,
                 const at::Tensor& d_bias,
                 int64_t block_words) {
    for (int64_t begin = 0; begin < weight.size(0); begin += block_words) {
      const int64_t count = std::min(block_words, weight.size(0) - begin);
      const auto part = [&](const at::Tensor& t) {
        return t.defined() ? t.narrow(0, begin, count) : t;
      };
      blocks.push_back({part(weight), part(bias), part(d_weight), part(d_bias), num_words + begin});
    }
    num_words += weight.size(0);
  }
};

/// Tokens of a chunk and words of a block: blocks fit the cache, chunks the memory we allow, and
/// chunks are of about one size.
int64_t chunk_tokens(int64_t tokens, int64_t words) {
  const int64_t most = std::max<int64_t>(1, kChunkLogits / std::max<int64_t>(1, words));
  const int64_t chunks = (tokens + most - 1) / most;
  return chunks == 0 ? 1 : (tokens + chunks - 1) / chunks;
}
int64_t block_words(int64_t tokens) {
  return std::max<int64_t>(1024, kBlockLogits / std::max<int64_t>(1, tokens));
}

void run_chunk(Softmax& softmax, int64_t begin, int64_t rows, const at::Tensor& buffer) {
  const at::Tensor hidden = softmax.hidden.narrow(0, begin, rows);
  const int64_t* targets = softmax.targets.const_data_ptr<int64_t>() + begin;
  const auto num_blocks = static_cast<int64_t>(softmax.blocks.size());
  const at::Tensor max = at::empty({num_blocks, rows}, hidden.options());
  const at::Tensor sum = at::empty_like(max), target_logit = at::empty({rows}, hidden.options());

  // A block's logits lie together; without gradients each overwrites the last one's.
  const bool with_gradient = softmax.step.defined();
  const auto logits = [&](const Block& block) {
    const int64_t first = with_gradient ? block.first_word * rows : 0;
    return buffer.narrow(0, first, rows * block.words()).view({rows, block.words()});
  };
  const auto kernel_block = [&](const Block& block, const at::Tensor& values) {
    return kernels::SoftmaxBlock{.rows = rows,
                                 .words = block.words(),
                                 .values = write(values),
                                 .targets = targets,
                                 .first_word = block.first_word};
  };
  for (int64_t b = 0; b < num_blocks; ++b) {
    const Block& block = softmax.blocks[static_cast<size_t>(b)];
    at::Tensor values = logits(block);
    at::mm_out(values, hidden, block.weight.t());
    kernels::softmax_block_exp(kernel_block(block, values), read(block.bias), write(max) + b * rows,
                               write(sum) + b * rows, write(target_logit), torch_parallel_for);
  }

  // Logsumexp over the blocks. max becomes the factor of each block's exponentials.
  const float* step = with_gradient ? read(softmax.step) + begin : nullptr;
  float* nll = write(softmax.nll) + begin;
  for (int64_t r = 0; r < rows; ++r) {
    float* block_max = write(max) + r;
    const float* block_sum = read(sum) + r;
    double largest = block_max[0];
    for (int64_t b = 1; b < num_blocks; ++b)
      largest = std::max<double>(largest, block_max[b * rows]);
    double total = 0;
    for (int64_t b = 0; b < num_blocks; ++b) {
      total += block_sum[b * rows] * std::exp(block_max[b * rows] - largest);
    }
    nll[r] = static_cast<float>(largest + std::log(total) - read(target_logit)[r]);
    if (!with_gradient) continue;
    for (int64_t b = 0; b < num_blocks; ++b) {
      block_max[b * rows] =
          static_cast<float>(step[r] * std::exp(block_max[b * rows] - largest) / total);
    }
  }
  if (!with_gradient) return;

  at::Tensor d_hidden = softmax.d_hidden.narrow(0, begin, rows);
  const auto add_product = [](at::Tensor& to, const at::Tensor& a, const at::Tensor& b, bool add) {
    add ? at::addmm_out(to, to, a, b) : at::mm_out(to, a, b);
  };
  for (int64_t b = 0; b < num_blocks; ++b) {
    Block& block = softmax.blocks[static_cast<size_t>(b)];
    const at::Tensor values = logits(block);
    kernels::softmax_block_gradient(kernel_block(block, values), read(max) + b * rows, step,
                                    write(block.d_bias), begin > 0, torch_parallel_for);
    add_product(block.d_weight, values.t(), hidden, begin > 0);
    add_product(d_hidden, values, block.weight, b > 0);
  }
}

void run(Softmax& softmax) {
  const int64_t tokens = softmax.hidden.size(0);
  if (tokens == 0) {
    for (Block& block : softmax.blocks) {
      if (block.d_weight.defined()) block.d_weight.zero_(), block.d_bias.zero_();
    }
    return;
  }
  const int64_t chunk = chunk_tokens(tokens, softmax.num_words);
  int64_t room = softmax.num_words;
  if (!softmax.step.defined()) {
    room = 0;
    for (const Block& block : softmax.blocks) room = std::max(room, block.words());
  }
  const at::Tensor buffer = at::empty({std::min(chunk, tokens) * room}, softmax.hidden.options());
  for (int64_t begin = 0; begin < tokens; begin += chunk) {
    run_chunk(softmax, begin, std::min(chunk, tokens - begin), buffer);
  }
}

/// Loss and gradients; the gradients are undefined without `step`.
struct Result {
  at::Tensor nll, d_hidden, d_weight, d_bias, d_cluster_weight, d_cluster_bias;
};

/// Every softmax for all tokens. `step` (T) is the upstream gradient.
Result compute(const at::Tensor& hidden,
               const AdaptiveSoftmaxWeights& weights,
               const at::Tensor& targets,
               const at::Tensor& step) {
  const std::vector<WordRange> ranges = word_ranges(weights);
  const auto K = static_cast<int64_t>(weights.cutoffs.size());
  const int64_t T = hidden.size(0);
  Result result{.nll = at::empty({T}, hidden.options())};
  if (step.defined()) {
    result.d_hidden = at::empty_like(hidden);
    result.d_weight = at::empty_like(weights.weight);
    result.d_bias = at::empty_like(weights.bias);
    if (K > 0) {
      result.d_cluster_weight = at::empty_like(weights.cluster_weight);
      result.d_cluster_bias = at::empty_like(weights.cluster_bias);
    }
  }
  const auto part = [](const at::Tensor& t, WordRange words) {
    return t.defined() ? t.narrow(0, words.begin, words.size()) : t;
  };
  const auto make = [&](WordRange words, int64_t tokens) {
    Softmax softmax;
    softmax.add_words(part(weights.weight, words), part(weights.bias, words),
                      part(result.d_weight, words), part(result.d_bias, words),
                      block_words(chunk_tokens(tokens, words.size())));
    return softmax;
  };

  // Which cluster each token belongs to, and what the head must say about it.
  const int64_t* target = targets.const_data_ptr<int64_t>();
  std::vector<std::vector<int64_t>> tokens_of(ranges.size());
  const at::Tensor head_targets = at::empty({T}, at::kLong);
  for (int64_t t = 0; t < T; ++t) {
    const auto cluster =
        std::upper_bound(weights.cutoffs.begin(), weights.cutoffs.end(), target[t]) -
        weights.cutoffs.begin();
    head_targets.mutable_data_ptr<int64_t>()[t] =
        cluster == 0 ? target[t] : cluster_column(weights, cluster);
    tokens_of[static_cast<size_t>(cluster)].push_back(t);
  }

  Softmax head = make(ranges[0], T);
  if (K > 0) {
    head.add_words(weights.cluster_weight, weights.cluster_bias, result.d_cluster_weight,
                   result.d_cluster_bias, K);
  }
  head.hidden = hidden;
  head.targets = head_targets;
  head.step = step;
  head.d_hidden = result.d_hidden;
  head.nll = result.nll;
  run(head);

  for (size_t c = 1; c < ranges.size(); ++c) {
    const at::Tensor tokens = at::tensor(tokens_of[c], at::kLong);
    Softmax tail = make(ranges[c], tokens.size(0));
    tail.hidden = hidden.index_select(0, tokens);
    tail.targets = targets.index_select(0, tokens) - ranges[c].begin;
    tail.nll = at::empty({tokens.size(0)}, hidden.options());
    if (step.defined()) {
      tail.step = step.index_select(0, tokens);
      tail.d_hidden = at::empty_like(tail.hidden);
    }
    run(tail);
    result.nll.index_add_(0, tokens, tail.nll);
    if (step.defined()) result.d_hidden.index_add_(0, tokens, tail.d_hidden);
  }
  return result;
}

class AdaptiveNll : public torch::autograd::Function<AdaptiveNll> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& hidden,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            const at::Tensor& cluster_weight,
                            const at::Tensor& cluster_bias,
                            const std::vector<int64_t>& cutoffs,
                            const at::Tensor& targets,
                            bool need_gradient) {
    const AdaptiveSoftmaxWeights weights{weight.contiguous(), bias.contiguous(),
                                         cluster_weight.contiguous(), cluster_bias.contiguous(),
                                         cutoffs};
    const at::Tensor rows = hidden.contiguous(), own_targets = targets.contiguous();
    const int64_t T = rows.size(0);
    const at::Tensor step =
        need_gradient ? at::full({T}, mean_step(T), rows.options()) : at::Tensor();
    Result result = compute(rows, weights, own_targets, step);
    if (need_gradient) {
      ctx->save_for_backward({rows, weights.weight, weights.bias, weights.cluster_weight,
                              weights.cluster_bias, own_targets});
      ctx->saved_data["cutoffs"] = cutoffs;
      ctx->saved_data["gradients"] = gradients(result);
    }
    return result.nll;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("adaptive_nll");
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<int64_t> cutoffs = ctx->saved_data["cutoffs"].toIntVector();
    const at::Tensor step = above[0].contiguous();
    const int64_t T = step.size(0);
    std::vector<at::Tensor> grads;
    // A graph that is kept may come here again: what is handed out then can not be used twice.
    const auto ready = ctx->saved_data.find("gradients");
    const bool is_uniform = T > 0 && std::all_of(read(step), read(step) + T,
                                                 [&](float s) { return s == read(step)[0]; });
    if (is_uniform && ready != ctx->saved_data.end()) {
      grads = ready->second.toTensorVector();
      ctx->saved_data.erase(ready);
      const double ratio = double{read(step)[0]} / double{mean_step(T)};
      if (ratio != 1.0) {
        for (at::Tensor& g : grads) g.mul_(ratio);
      }
    } else {
      grads = gradients(
          compute(saved[0], {saved[1], saved[2], saved[3], saved[4], cutoffs}, saved[5], step));
    }
    const bool clusters = grads.size() > 3;
    const at::Tensor none;
    return {grads[0], grads[1], grads[2], clusters ? grads[3] : none, clusters ? grads[4] : none,
            none,     none,     none};
  }

 private:
  static float mean_step(int64_t T) { return 1.0f / static_cast<float>(T); }

  static std::vector<at::Tensor> gradients(const Result& result) {
    std::vector<at::Tensor> list{result.d_hidden, result.d_weight, result.d_bias};
    if (result.d_cluster_weight.defined()) {
      list.push_back(result.d_cluster_weight);
      list.push_back(result.d_cluster_bias);
    }
    return list;
  }
};

}  // namespace

at::Tensor adaptive_nll_fused(const at::Tensor& hidden,
                              const AdaptiveSoftmaxWeights& weights,
                              const at::Tensor& targets) {
  // Without clusters their weights may be absent: something must stand in for them.
  const bool clusters = !weights.cutoffs.empty();
  const at::Tensor cluster_weight =
      clusters ? weights.cluster_weight : at::empty({0, hidden.size(1)}, hidden.options());
  const at::Tensor cluster_bias =
      clusters ? weights.cluster_bias : at::empty({0}, hidden.options());
  const bool need_gradient =
      at::GradMode::is_enabled() &&
      (hidden.requires_grad() || weights.weight.requires_grad() || weights.bias.requires_grad() ||
       cluster_weight.requires_grad() || cluster_bias.requires_grad());
  return AdaptiveNll::apply(hidden, weights.weight, weights.bias, cluster_weight, cluster_bias,
                            weights.cutoffs, targets, need_gradient);
}

}  // namespace elliptical::ops
