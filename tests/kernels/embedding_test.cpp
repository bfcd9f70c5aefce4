// SPDX-License-Identifier: MIT
//
// Embeddings against their reference with error bounds.
#include "elliptical/kernels/embedding.h"

#include <gtest/gtest.h>

#include <vector>

#include "elliptical/kernels/embedding_reference.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/layer_sizes.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/same_bits.h"

namespace elliptical::kernels::test {
namespace {

TEST(Embed, MatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const Rows size = random_rows(random);
      const int64_t V = 1 + random.below(9), N = 1 + random.below(8);
      const Floats table = Floats::normal(V * size.C, random),
                   positions = Floats::normal(N * size.C, random);
      std::vector<int64_t> tokens;
      for (int64_t r = 0; r < size.rows; ++r) tokens.push_back(random.below(V));
      const ElementDropout dropout = random_dropout(random);
      const double scale = random.normal();
      Floats y(size.rows * size.C);
      embed_forward(size, {table.data(), tokens.data(), positions.data(), N, scale, dropout},
                    y.data(), serial_for);
      const auto exact_table = table.as<Bounded>(), exact_positions = positions.as<Bounded>();
      std::vector<Bounded> exact(static_cast<size_t>(size.rows * size.C));
      embed_reference_forward(size,
                              EmbedInputs<Bounded>{exact_table.data(), tokens.data(),
                                                   exact_positions.data(), N, scale, dropout},
                              exact.data());
      expect_within(y, exact, describe(seed, size, dropout));
    }
  });
}

TEST(Embed, SameBitsForAnySchedule) {
  on_every_target([] {
    Random random(4);
    const Rows size = kRowsOfSeveralTasks;
    const Floats table = Floats::normal(5 * size.C, random);
    std::vector<int64_t> tokens;
    for (int64_t r = 0; r < size.rows; ++r) tokens.push_back(random.below(5));
    expect_same_for_any_schedule([&](const ParallelFor& threads) {
      Floats y(size.rows * size.C);
      embed_forward(size,
                    {table.data(), tokens.data(), table.data(), 3, 1.7, ElementDropout(0.3, 6)},
                    y.data(), threads);
      return std::vector<Floats>{y};
    });
  });
}

}  // namespace
}  // namespace elliptical::kernels::test
