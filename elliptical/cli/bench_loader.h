// SPDX-License-Identifier: MIT
//
// `elliptical bench --what loader`.
#pragma once

#include <string>

namespace elliptical::cli {

/// Pictures per second of decoding and augmenting by number of workers, beside those of a training
/// step of DeiT-tiny, alone and fed by the workers, as a table, JSON or CSV. `quick`: small
/// pictures and a tiny model, to see that it works.
int bench_loader(const std::string& format, int repeats, bool quick);

}  // namespace elliptical::cli
