// SPDX-License-Identifier: MIT
//
// Plain attention, softmax(q^T k / sqrt(D)) v: the baseline of every comparison.
#pragma once

#include "elliptical/nn/attention/multi_head.h"

namespace elliptical::nn {

struct SoftmaxOptions : Options {
  bool scale_logits = true;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

std::shared_ptr<HeadMixer> make_softmax_mixer(const SoftmaxOptions& options,
                                              const AttentionShape& shape);
std::shared_ptr<Attention> make_softmax(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
