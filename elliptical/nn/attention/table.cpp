// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/base/name_table.h"
#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/attention/elliptical.h"
#include "elliptical/nn/attention/fourier.h"
#include "elliptical/nn/attention/kde.h"
#include "elliptical/nn/attention/mgk.h"
#include "elliptical/nn/attention/mom.h"
#include "elliptical/nn/attention/performer.h"
#include "elliptical/nn/attention/rkde.h"
#include "elliptical/nn/attention/rvt.h"
#include "elliptical/nn/attention/softmax.h"
#include "elliptical/nn/attention/spkde.h"

namespace elliptical::nn {
const std::vector<AttentionEntry>& attention_table() {
  static const std::vector<AttentionEntry> table{
      {.name = "elliptical",
       .description = "softmax attention with a metric read off the change of the values",
       .can = {},
       .make_options = make_options<EllipticalOptions>,
       .make = make_elliptical},
      {.name = "fourier",
       .description = "a product of sinc functions of q - k as the kernel (FourierFormer)",
       .can = {},
       .make_options = make_options<FourierAttentionOptions>,
       .make = make_fourier},
      {.name = "kde",
       .description = "attention as kernel density regression on keys of length 1",
       .can = {},
       .make_options = make_options<KdeOptions>,
       .make = make_kde},
      {.name = "mgk",
       .description = "a mixture of two Gaussian keys per token",
       .can = {.fixed_length = true},
       .make_options = make_options<MgkOptions>,
       .make = make_mgk},
      {.name = "mom",
       .description = "kernel density attention to the median of random blocks of keys",
       .can = {.streams = false, .linear_memory = false},
       .make_options = make_options<MomOptions>,
       .make = make_mom},
      {.name = "performer",
       .description = "softmax attention by random features, linear in the number of tokens",
       .can = {.drops = false},
       .make_options = make_options<PerformerOptions>,
       .make = make_performer},
      {.name = "rkde",
       .description = "kernel density attention that gives less weight to outlying keys",
       .can = {.streams = false},
       .make_options = make_options<RkdeOptions>,
       .make = make_rkde},
      {.name = "rvt",
       .description = "softmax attention with a learned gate for each pair of positions",
       .can = {.fixed_length = true, .linear_memory = false},
       .make_options = make_options<RvtAttentionOptions>,
       .make = make_rvt},
      {.name = "softmax",
       .description = "plain softmax attention, the baseline",
       .can = {},
       .make_options = make_options<SoftmaxOptions>,
       .make = make_softmax},
      {.name = "spkde",
       .description = "kernel density attention with weights of keys from a quadratic program",
       .can = {.causal = false, .looks_ahead = true, .streams = false, .linear_memory = false},
       .make_options = make_options<SpkdeOptions>,
       .make = make_spkde},
  };
  return table;
}

const std::vector<OptionsEntry>& attention_choices() {
  static const std::vector<OptionsEntry> choices = choices_of(attention_table());
  return choices;
}

std::shared_ptr<Attention> make_attention(const ChosenOptions& chosen,
                                          const AttentionShape& shape) {
  const AttentionEntry* entry = find_entry(attention_table(), chosen.name());
  TORCH_CHECK(entry != nullptr, "attention: no variant is called \"", chosen.name(), "\"");
  return make_attention(*entry, chosen.get<Options>(), shape);
}

std::shared_ptr<Attention> make_attention(const AttentionEntry& entry,
                                          const Options& options,
                                          const AttentionShape& shape) {
  if (shape.is_causal && !entry.can.may_be_causal()) {
    throw ConfigError("attention: a causal model needs a causal variant, got \"" +
                      std::string(entry.name) + "\" (run: elliptical list attention)");
  }
  return entry.make(options, shape);
}

}  // namespace elliptical::nn
