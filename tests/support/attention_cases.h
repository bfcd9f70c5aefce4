// SPDX-License-Identifier: MIT
//
// Attention calls that between them use every option; the suites of the kernels and of the ops run
// all of them.
#pragma once

#include <vector>

#include "bench/attention_case.h"

namespace elliptical::support {

using bench::AttentionCase;

std::vector<AttentionCase> attention_cases();

}  // namespace elliptical::support
