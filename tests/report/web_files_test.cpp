// SPDX-License-Identifier: MIT
#include "elliptical/report/web_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "elliptical/base/utf8.h"

namespace elliptical::report {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

TEST(WebFiles, AreWhole) {
  const WebFiles& files = web_files();
  EXPECT_TRUE(files.page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(files.page.ends_with("</html>\n"));
  EXPECT_NE(files.vega.find("t.version=\"6.4.0\""), files.vega.npos);
  EXPECT_GT(files.vega_lite.size(), 100'000U);
  EXPECT_GT(files.vega_embed.size(), 10'000U);
  EXPECT_LT(files.vega.size() + files.vega_lite.size() + files.vega_embed.size(), 1'200'000U);
}

TEST(WebFiles, ScriptsEndNoScript) {
  const WebFiles& files = web_files();
  for (const std::string_view script :
       {files.pictures, files.heat_maps, files.snapshots, files.script, files.vega, files.vega_lite,
        files.vega_embed}) {
    const std::string text = lower(script);
    EXPECT_EQ(text.find("</script"), text.npos);
    EXPECT_EQ(text.find("<!--"), text.npos);
    EXPECT_EQ(find_invalid_utf8(text), text.npos);
  }
  EXPECT_EQ(lower(files.style).find("</style"), std::string::npos);
}

TEST(WebFiles, LicencesFitIntoAComment) {
  const std::string_view licences = web_files().licences;
  for (const char* name : {"vega-lite", "d3-scale", "semver", "University of Washington"}) {
    EXPECT_NE(licences.find(name), licences.npos) << name;
  }
  EXPECT_EQ(licences.find("--"), licences.npos);
}

}  // namespace
}  // namespace elliptical::report
