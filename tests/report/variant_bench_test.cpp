// SPDX-License-Identifier: MIT
//
// What `report --bench` reads: records become rows and two charts, everything else an error that
// names the file.
#include "elliptical/report/variant_bench.h"

#include <gtest/gtest.h>

#include <ctime>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical::report {
namespace {

std::string record(const std::string& attention, const std::string& peaks) {
  return R"({"what": "variants", "attention": ")" + attention +
         R"(", "refusal": "", "min_s": 0.012, "ratio_min": 1.25, "ratio_median": null, )" + peaks +
         R"("threads": 2, "cpu": "a CPU", "simd": "AVX3", "torch": "2.13.0"})";
}

TEST(VariantBench, RecordsBecomeRowsAndCharts) {
  const VariantBench bench = parse_variant_bench(
      "[" + record("softmax", R"("peak_bytes_1024": 1048576, "peak_bytes_512": null, )") + "," +
          record("kde", R"("peak_bytes_1024": 2097152, "peak_bytes_512": 1, )") + "]",
      "f");
  EXPECT_EQ(bench.machine, "a CPU, 2 threads, SIMD AVX3, torch 2.13.0");
  EXPECT_EQ(bench.times.size(), 2U);
  EXPECT_EQ(bench.times.at(0, "milliseconds"), 12.0);
  EXPECT_TRUE(bench.times.at(0, "ratio_median").is_null());
  EXPECT_EQ(bench.memory.size(), 3U);
  const std::vector<Chart> charts = variant_charts(bench);
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_EQ(charts[1].spec["encoding"]["x"]["axis"]["values"], nlohmann::json({512, 1024}));
}

TEST(VariantBench, R1OtherFilesAreRefusedByName) {
  for (const char* text :
       {"", "{}", "[]", "[1]", R"([{"what": "ops"}])", R"([{"what": "variants"}])",
        R"([{"what": "variants", "attention": 1, "refusal": ""}])"}) {
    const std::string message =
        test::error_message<DataError>([&] { parse_variant_bench(text, "bench.json"); });
    EXPECT_TRUE(message.starts_with("bench.json: must be what `elliptical bench")) << message;
  }
}

// The numbers of tokens were once looked for in the list of those that had been seen.
TEST(VariantBench, R1TwentyThousandNumbersOfTokensTakeNoSquareOfThat) {
  std::string peaks;
  for (int tokens = 1; tokens <= 20'000; ++tokens) {
    peaks += "\"peak_bytes_" + std::to_string(tokens) + "\": 1, ";
  }
  const VariantBench bench = parse_variant_bench("[" + record("softmax", peaks) + "]", "f");
  const std::clock_t start = std::clock();
  const std::vector<Chart> charts = variant_charts(bench);
  EXPECT_EQ(charts[1].spec["encoding"]["x"]["axis"]["values"].size(), 20'000U);
  // Under sanitizers a tenth of a second; the square of it was more than ten.
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2.0);
}

}  // namespace
}  // namespace elliptical::report
