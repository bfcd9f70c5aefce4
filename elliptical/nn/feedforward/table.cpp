// SPDX-License-Identifier: MIT
#include <torch/torch.h>

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

}  // namespace

const std::vector<FeedForwardEntry>& feed_forward_table() {
  static const std::vector<FeedForwardEntry> table{
      {.name = "gelu",
       .description = "two linear maps with a GELU between them, as in vision transformers",
       .make_options = make_options<NoOptions>,
       .make = make_layer<GeluMlp>},
      {.name = "relu",
       .description = "two linear maps with a ReLU between them, as in the paper's language model",
       .make_options = make_options<NoOptions>,
       .make = make_layer<ReluMlp>},
  };
  return table;
}

const std::vector<OptionsEntry>& feed_forward_choices() {
  static const std::vector<OptionsEntry> choices = choices_of(feed_forward_table());
  return choices;
}

std::shared_ptr<FeedForward> make_feed_forward(const ChosenOptions& chosen,
                                               const FeedForwardShape& shape) {
  const FeedForwardEntry* entry = find_entry(feed_forward_table(), chosen.name());
  TORCH_CHECK(entry != nullptr, "feed-forward: none is called \"", chosen.name(), "\"");
  return entry->make(chosen.get<Options>(), shape);
}

}  // namespace elliptical::nn
