// SPDX-License-Identifier: MIT
//
// SHA-256 with the SHA extensions of x86. The instructions keep the state as (A B E F) and (C D G
// H), and do two rounds each; the schedule of the message runs four words ahead of them.
#include "elliptical/base/sha256_impl.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include <utility>

namespace elliptical {

bool sha256_x86_available() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kShaBit = 1u << 29;
  return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (b & kShaBit) != 0;
}

__attribute__((target("sha,sse4.1"))) void sha256_compress_x86(std::array<uint32_t, 8>& state,
                                                               const std::byte* blocks,
                                                               size_t count) {
  // In the words of a register from high to low: low holds D C B A, high holds H G F E.
  auto* words = reinterpret_cast<__m128i*>(state.data());
  const __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);       // C D A B
  const __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);  // E F G H
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xF0);
  const __m128i swap_bytes = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);

  for (; count > 0; --count, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      const auto* from = reinterpret_cast<const __m128i*>(blocks) + i;
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(from), swap_bytes);
    }
    for (int i = 0; i < 16; ++i) {
      const auto* rounds = reinterpret_cast<const __m128i*>(kSha256Rounds.data()) + i;
      __m128i sum = _mm_add_epi32(w[0], _mm_loadu_si128(rounds));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      sum = _mm_shuffle_epi32(sum, 0x0E);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, sum);
      // The next four words, from the last sixteen.
      __m128i next = _mm_sha256msg1_epu32(w[0], w[1]);
      next = _mm_add_epi32(next, _mm_alignr_epi8(w[3], w[2], 4));
      next = _mm_sha256msg2_epu32(next, w[3]);
      w[0] = w[1];
      w[1] = w[2];
      w[2] = w[3];
      w[3] = next;
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }

  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace elliptical
#else
namespace elliptical {

bool sha256_x86_available() { return false; }
void sha256_compress_x86(std::array<uint32_t, 8>&, const std::byte*, size_t) {}

}  // namespace elliptical
#endif
