// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/embedding.h"
#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/embedding_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class EmbedNode : public torch::autograd::Function<EmbedNode> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& table,
                            const at::Tensor& tokens,
                            const at::Tensor& positions,
                            double scale,
                            double p,
                            int64_t seed,
                            bool sparse_gradient) {
    const at::Tensor rows = table.contiguous(), flat_tokens = tokens.contiguous().view({-1}),
                     own_positions = positions.contiguous();
    at::Tensor y = at::empty({tokens.size(0), tokens.size(1), table.size(1)}, table.options());
    kernels::embed_forward(rows_of(y),
                           {.table = read(rows),
                            .tokens = flat_tokens.const_data_ptr<int64_t>(),
                            .positions = read(own_positions),
                            .N = tokens.size(1),
                            .scale = scale,
                            .dropout = dropout_rule({p, seed})},
                           write(y), torch_parallel_for);
    ctx->save_for_backward({flat_tokens});
    ctx->saved_data["V"] = table.size(0);
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["sparse_gradient"] = sparse_gradient;
    keep_dropout(ctx, {p, seed});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("embed");
    const at::Tensor tokens = ctx->get_saved_variables()[0], dy = above[0].contiguous();
    const int64_t V = ctx->saved_data["V"].toInt(), C = dy.size(-1);
    const at::Tensor rows = at::empty({tokens.size(0), C}, dy.options());
    kernels::scaled_dropout(dy.numel(), read(dy), ctx->saved_data["scale"].toDouble(),
                            kept_dropout(ctx), write(rows), torch_parallel_for);
    at::Tensor d_table;
    if (ctx->saved_data["sparse_gradient"].toBool()) {
      d_table = at::_sparse_coo_tensor_unsafe(tokens.unsqueeze(0), rows, {V, C},
                                              rows.options().layout(at::kSparse));
    } else {
      d_table = at::zeros({V, C}, dy.options());
      add_rows(tokens, rows, d_table);
    }
    return {d_table, {}, {}, {}, {}, {}, {}};
  }

 private:
  /// to[tokens[t]] += rows[t], in the order of t: few rows, so one thread.
  static void add_rows(const at::Tensor& tokens, const at::Tensor& rows, const at::Tensor& to) {
    const int64_t* token = tokens.const_data_ptr<int64_t>();
    const int64_t C = rows.size(1);
    for (int64_t t = 0; t < tokens.size(0); ++t) {
      const float* from = read(rows) + t * C;
      float* sum = write(to) + token[t] * C;
      for (int64_t c = 0; c < C; ++c) sum[c] += from[c];
    }
  }
};

}  // namespace

at::Tensor embed_fused(const at::Tensor& table,
                       const at::Tensor& tokens,
                       const at::Tensor& positions,
                       const EmbedOptions& options) {
  return EmbedNode::apply(table, tokens, positions, options.scale, options.dropout.p,
                          options.dropout.seed, options.sparse_gradient);
}

}  // namespace elliptical::ops
