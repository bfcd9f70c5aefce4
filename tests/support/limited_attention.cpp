// SPDX-License-Identifier: MIT
#include "tests/support/limited_attention.h"

#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/base/name_table.h"
#include "elliptical/nn/attention/multi_head.h"

namespace elliptical::support {
namespace {

constexpr int64_t kMixtures = 2;
constexpr const char* kName = "limited";

struct LimitedOptions : Options {
  void visit(FieldList&) override {}
  std::unique_ptr<Options> clone() const override {
    return std::make_unique<LimitedOptions>(*this);
  }
};

class LimitedMixer : public nn::HeadMixer {
 public:
  explicit LimitedMixer(const nn::AttentionShape& shape)
      : mixtures_(register_parameter("mixtures", torch::zeros({kMixtures, shape.window}))) {
    if (shape.dropout > 0.0) throw ConfigError("limited attention: attention_dropout must be 0");
  }

  at::Tensor mix(const Heads& heads,
                 const nn::Pass& pass,
                 std::unique_ptr<nn::MixerState>*) override {
    const int64_t N = heads.k.size(2);
    TORCH_CHECK_VALUE(!pass.key_lengths, "limited attention: sequences must be of one length");
    TORCH_CHECK_VALUE(N <= mixtures_.size(1), "limited attention: too many tokens, ", N);
    const at::Tensor mixtures = mixtures_.narrow(1, 0, N);  // (2, N)
    const double scale = 1.0 / std::sqrt(static_cast<double>(heads.q.size(3)));
    const at::Tensor scores = heads.q.matmul(mixtures.matmul(heads.k).transpose(2, 3)) * scale;
    return scores.softmax(-1).matmul(mixtures.matmul(heads.v));  // (B, H, N, D)
  }
  std::optional<std::string> why_no_streaming() const override { return "it reads whole texts"; }
  std::map<std::string, LabelValue> labels() const override { return {{"leaks_future", false}}; }

 private:
  at::Tensor mixtures_;
};

}  // namespace

const std::vector<nn::AttentionEntry>& limited_attention_table() {
  static const std::vector<nn::AttentionEntry> table{
      {.name = kName,
       .description = "attention to a few mixtures of all keys",
       .can = {.causal = false,
               .padding = false,
               .fixed_length = true,
               .has_map = false,
               .streams = false,
               .drops = false},
       .make_options = make_options<LimitedOptions>,
       .make = [](const Options&,
                  const nn::AttentionShape& shape) -> std::shared_ptr<nn::Attention> {
         return std::make_shared<nn::MultiHead>(shape, std::make_shared<LimitedMixer>(shape));
       }}};
  return table;
}

const std::vector<OptionsEntry>& limited_attention_choices() {
  static const std::vector<OptionsEntry> choices = choices_of(limited_attention_table());
  return choices;
}

AttentionVariant limited_attention() {
  return {.name = kName,
          .attention = kName,
          .table = limited_attention_table,
          .choices = limited_attention_choices};
}

}  // namespace elliptical::support
