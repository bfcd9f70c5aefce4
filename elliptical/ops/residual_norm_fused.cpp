// SPDX-License-Identifier: MIT
//
// The fused layers as autograd functions over the kernels of elliptical/kernels/feedforward.h, one
// node each. Arguments were checked by the public functions.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/feedforward.h"
#include "elliptical/ops/feed_forward_impl.h"
#include "elliptical/ops/fused_function_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void save(AutogradContext* ctx, ElementDropout dropout) {
  ctx->saved_data["p"] = dropout.p;
  ctx->saved_data["seed"] = dropout.seed;
}

kernels::ElementDropout restore(AutogradContext* ctx) {
  return dropout_rule({ctx->saved_data["p"].toDouble(), ctx->saved_data["seed"].toInt()});
}

class BiasReluDropout : public torch::autograd::Function<BiasReluDropout> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx, const at::Tensor& x, const at::Tensor& bias, double p, int64_t seed) {
    const at::Tensor x_rows = x.contiguous(), b = bias.contiguous();
    at::Tensor y = at::empty_like(x_rows);
    kernels::bias_relu_dropout_forward(rows_of(x), read(x_rows), read(b), dropout_rule({p, seed}),
                                       write(y), torch_parallel_for);
    ctx->save_for_backward({y});
    save(ctx, {p, seed});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("bias_relu_dropout");
    const at::Tensor y = ctx->get_saved_variables()[0], dy = above[0].contiguous();
    const at::Tensor dx = at::empty_like(y), d_bias = at::empty({y.size(-1)}, y.options());
    kernels::bias_relu_dropout_backward(rows_of(y), read(dy), read(y), restore(ctx), write(dx),
                                        write(d_bias), torch_parallel_for);
    return {dx, d_bias, {}, {}};
  }
};

class ResidualDropoutNorm : public torch::autograd::Function<ResidualDropoutNorm> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& x,
                            const std::optional<at::Tensor>& bias,
                            const at::Tensor& residual,
                            const at::Tensor& weight,
                            const at::Tensor& norm_bias,
                            double eps,
                            double p,
                            int64_t seed,
                            bool need_gradient) {
    const at::Tensor x_rows = x.contiguous(), r = residual.contiguous(), w = weight.contiguous(),
                     nb = norm_bias.contiguous();
    const at::Tensor b = bias ? bias->contiguous() : at::Tensor();
    at::Tensor y = at::empty_like(x_rows), normalised, rstd;
    if (need_gradient) {
      normalised = at::empty_like(x_rows);
      rstd = at::empty({rows_of(x).rows}, x_rows.options());
    }
    kernels::residual_dropout_norm_forward(rows_of(x),
                                           {.x = read(x_rows),
                                            .bias = bias ? read(b) : nullptr,
                                            .residual = read(r),
                                            .norm = {read(w), read(nb), eps},
                                            .dropout = dropout_rule({p, seed})},
                                           write(y), need_gradient ? write(normalised) : nullptr,
                                           need_gradient ? write(rstd) : nullptr,
                                           torch_parallel_for);
    ctx->save_for_backward({normalised, rstd, w});
    ctx->saved_data["has_bias"] = bias.has_value();
    save(ctx, {p, seed});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("residual_dropout_norm");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &normalised = saved[0], &rstd = saved[1], &weight = saved[2];
    const at::Tensor dy = above[0].contiguous();
    const auto row = [&] { return at::empty_like(weight); };
    const at::Tensor dx = at::empty_like(normalised), d_residual = at::empty_like(normalised);
    const at::Tensor d_weight = row(), d_norm_bias = row();
    const at::Tensor d_bias = ctx->saved_data["has_bias"].toBool() ? row() : at::Tensor();
    kernels::residual_dropout_norm_backward(rows_of(normalised),
                                            {.dy = read(dy),
                                             .normalised = read(normalised),
                                             .rstd = read(rstd),
                                             .weight = read(weight),
                                             .dropout = restore(ctx),
                                             .dx = write(dx),
                                             .d_residual = write(d_residual),
                                             .d_bias = d_bias.defined() ? write(d_bias) : nullptr,
                                             .d_weight = write(d_weight),
                                             .d_norm_bias = write(d_norm_bias)},
                                            torch_parallel_for);
    return {dx, d_bias, d_residual, d_weight, d_norm_bias, {}, {}, {}, {}};
  }
};

class Embed : public torch::autograd::Function<Embed> {
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
    save(ctx, {p, seed});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("embed");
    const at::Tensor tokens = ctx->get_saved_variables()[0], dy = above[0].contiguous();
    const int64_t V = ctx->saved_data["V"].toInt(), C = dy.size(-1);
    const at::Tensor rows = at::empty({tokens.size(0), C}, dy.options());
    kernels::scaled_dropout(dy.numel(), read(dy), ctx->saved_data["scale"].toDouble(), restore(ctx),
                            write(rows), torch_parallel_for);
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

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double p, int64_t seed) {
    save(ctx, {p, seed});
    return apply_rule(x, restore(ctx));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("element_dropout");
    return {apply_rule(above[0], restore(ctx)), {}, {}};
  }

 private:
  static at::Tensor apply_rule(const at::Tensor& x, const kernels::ElementDropout& rule) {
    const at::Tensor values = x.contiguous();
    at::Tensor y = at::empty_like(values);
    kernels::scaled_dropout(values.numel(), read(values), 1.0, rule, write(y), torch_parallel_for);
    return y;
  }
};

}  // namespace

at::Tensor bias_relu_dropout_fused(const at::Tensor& x,
                                   const at::Tensor& bias,
                                   ElementDropout dropout) {
  return BiasReluDropout::apply(x, bias, dropout.p, dropout.seed);
}

at::Tensor residual_dropout_norm_fused(const at::Tensor& x,
                                       const std::optional<at::Tensor>& bias,
                                       const at::Tensor& residual,
                                       const at::Tensor& weight,
                                       const at::Tensor& norm_bias,
                                       double eps,
                                       ElementDropout dropout) {
  const bool need_gradient =
      at::GradMode::is_enabled() &&
      (x.requires_grad() || residual.requires_grad() || weight.requires_grad() ||
       norm_bias.requires_grad() || (bias && bias->requires_grad()));
  return ResidualDropoutNorm::apply(x, bias, residual, weight, norm_bias, eps, dropout.p,
                                    dropout.seed, need_gradient);
}

at::Tensor embed_fused(const at::Tensor& table,
                       const at::Tensor& tokens,
                       const at::Tensor& positions,
                       double scale,
                       ElementDropout dropout,
                       bool sparse_gradient) {
  return Embed::apply(table, tokens, positions, scale, dropout.p, dropout.seed, sparse_gradient);
}

at::Tensor element_dropout_fused(const at::Tensor& x, ElementDropout dropout) {
  return Dropout::apply(x, dropout.p, dropout.seed);
}

}  // namespace elliptical::ops
