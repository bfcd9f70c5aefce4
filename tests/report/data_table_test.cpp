// SPDX-License-Identifier: MIT
#include "elliptical/report/data_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace elliptical::report {
namespace {

using nlohmann::json;
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(ChartNumber, HasFiveDigitsOrIsNull) {
  EXPECT_EQ(chart_number(66.7912345).dump(), "66.791");
  EXPECT_EQ(chart_number(2000.0).dump(), "2000");
  EXPECT_EQ(chart_number(1.23456e-9).dump(), "1.2346e-09");
  EXPECT_TRUE(chart_number(std::nan("")).is_null());
  EXPECT_TRUE(chart_number(-kInf).is_null());
}

TEST(NumberText, IsForPeople) {
  EXPECT_EQ(number_text(66.7912), "66.79");
  EXPECT_EQ(number_text(1234567.0), "1,234,567");
  EXPECT_EQ(number_text(-1234.5), "-1,234");  // to even
  EXPECT_EQ(number_text(-123.0, 3), "-123");
  EXPECT_EQ(number_text(0.0), "0.000");
  EXPECT_EQ(number_text(-0.67, 3), "-0.67");
  EXPECT_EQ(number_text(1e-7, 3), "1e-07");
  EXPECT_EQ(number_text(std::nan("")), "nan");
  EXPECT_EQ(number_text(kInf), "inf");
  EXPECT_EQ(number_text(-kInf), "-inf");
}

TEST(DataTable, NamesColumnsAndTextsOnce) {
  DataTable table({"method", "value"});
  table.add({"softmax", chart_number(1.5)});
  table.add({"elliptical", nullptr});
  table.add({"softmax", 3});
  EXPECT_EQ(table.to_json(), json::parse(R"({"columns": ["method", "value"],
    "values": [{"texts": ["softmax", "elliptical"], "at": [0, 1, 0]}, [1.5, null, 3]]})"));
  EXPECT_EQ(table.rows_where("method", "softmax"), (std::vector<size_t>{0, 2}));
  EXPECT_EQ(table.at(2, "value"), 3);
}

TEST(DataTable, RefusesRowsOfAnotherLength) {
  DataTable table({"method", "value"});
  EXPECT_THROW(table.add({"softmax"}), std::logic_error);
  EXPECT_THROW(table.rows_where("speed", "x"), std::logic_error);
}

}  // namespace
}  // namespace elliptical::report
