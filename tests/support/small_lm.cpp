// SPDX-License-Identifier: MIT
#include "tests/support/small_lm.h"

#include <torch/torch.h>

namespace elliptical::support {

at::Tensor some_tokens(int64_t B, int64_t N, int64_t first) {
  const at::Tensor index = torch::arange(first, first + B * N);
  return (index * index * 7 + index * 3 + 1).remainder(kSmallVocabulary).view({B, N});
}

}  // namespace elliptical::support
