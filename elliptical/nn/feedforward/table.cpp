// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/name_table.h"
#include "elliptical/nn/feedforward/feed_forward.h"
#include "elliptical/nn/feedforward/gelu_mlp.h"
#include "elliptical/nn/feedforward/relu_mlp.h"

namespace elliptical::nn {
namespace {

/// Those whose shape says everything.
struct NoOptions : Options {
  void visit(FieldList&) override {}
  std::unique_ptr<Options> clone() const override { return std::make_unique<NoOptions>(*this); }
};

template <class Layer>
std::shared_ptr<FeedForward> make_layer(const Options&, const FeedForwardShape& shape) {
  return std::make_shared<Layer>(shape.dim, shape.hidden_dim, shape.dropout);
}

const FeedForwardEntry& entry_of(const ChosenOptions& chosen) {
  const FeedForwardEntry* entry = find_entry(feed_forward_table(), chosen.name());
  TORCH_CHECK(entry != nullptr, "feed-forward: none is called \"", chosen.name(), "\"");
  return *entry;
}

FeedForwardCost cost_of_mlp(const Options&, const FeedForwardShape& shape) {
  return mlp_cost(shape);
}

}  // namespace

FeedForwardCost mlp_cost(const FeedForwardShape& shape) {
  const auto C = static_cast<double>(shape.dim), F = static_cast<double>(shape.hidden_dim);
  // Kept are both sides of the activation.
  return {.num_weights = 2 * C * F, .products = 2 * C * F, .kept = 2 * F, .widest = F};
}

FeedForwardCost sum_of_layers(
    FeedForwardShape shape,
    const std::function<FeedForwardCost(const FeedForwardShape&)>& cost_of_layer) {
  FeedForwardCost sum;
  for (shape.layer = 0; shape.layer < shape.num_layers; ++shape.layer) {
    const FeedForwardCost one = cost_of_layer(shape);
    sum.num_weights += one.num_weights;
    sum.products += one.products;
    sum.kept += one.kept;
    sum.widest = std::max(sum.widest, one.widest);
  }
  return sum;
}

const std::vector<FeedForwardEntry>& feed_forward_table() {
  static const std::vector<FeedForwardEntry> table{
      {.name = "gelu",
       .description = "two linear maps with a GELU between them, as in vision transformers",
       .can = {},
       .make_options = make_options<NoOptions>,
       .make = make_layer<GeluMlp>,
       .cost = cost_of_mlp},
      {.name = "relu",
       .description = "two linear maps with a ReLU between them, as in the paper's language model",
       .can = {},
       .make_options = make_options<NoOptions>,
       .make = make_layer<ReluMlp>,
       .cost = cost_of_mlp},
  };
  return table;
}

const std::vector<OptionsEntry>& feed_forward_choices() {
  static const std::vector<OptionsEntry> choices = choices_of(feed_forward_table());
  return choices;
}

std::shared_ptr<FeedForward> make_feed_forward(const ChosenOptions& chosen,
                                               const FeedForwardShape& shape) {
  return entry_of(chosen).make(chosen.get<Options>(), shape);
}

FeedForwardCost feed_forward_cost(const ChosenOptions& chosen, const FeedForwardShape& shape) {
  const FeedForwardEntry& entry = entry_of(chosen);
  return sum_of_layers(shape, [&](const FeedForwardShape& layer) {
    return entry.cost(chosen.get<Options>(), layer);
  });
}

}  // namespace elliptical::nn
