// SPDX-License-Identifier: MIT
#include "elliptical/report/web_files.h"

#include <cstddef>

// The assembler copies the file; CMake says where it lies and builds this source again when it
// changes.
#define ELLIPTICAL_WEB_FILE(name, path)                                                \
  asm(".pushsection .rodata\n"                                                         \
      ".global elliptical_web_" #name                                                  \
      "\n"                                                                             \
      ".global elliptical_web_" #name                                                  \
      "_end\n"                                                                         \
      ".hidden elliptical_web_" #name                                                  \
      "\n"                                                                             \
      ".hidden elliptical_web_" #name                                                  \
      "_end\n"                                                                         \
      "elliptical_web_" #name                                                          \
      ":\n"                                                                            \
      ".incbin \"" path                                                                \
      "\"\n"                                                                           \
      "elliptical_web_" #name                                                          \
      "_end:\n"                                                                        \
      ".byte 0\n"                                                                      \
      ".popsection\n");                                                                \
  extern "C" __attribute__((visibility("hidden"))) const char elliptical_web_##name[]; \
  extern "C" __attribute__((visibility("hidden"))) const char elliptical_web_##name##_end[]

ELLIPTICAL_WEB_FILE(page, ELLIPTICAL_WEB_REPORT_HTML);
ELLIPTICAL_WEB_FILE(style, ELLIPTICAL_WEB_REPORT_CSS);
ELLIPTICAL_WEB_FILE(pictures, ELLIPTICAL_WEB_PICTURES_JS);
ELLIPTICAL_WEB_FILE(heat_maps, ELLIPTICAL_WEB_HEAT_MAPS_JS);
ELLIPTICAL_WEB_FILE(snapshots, ELLIPTICAL_WEB_SNAPSHOTS_JS);
ELLIPTICAL_WEB_FILE(script, ELLIPTICAL_WEB_REPORT_JS);
ELLIPTICAL_WEB_FILE(vega, ELLIPTICAL_WEB_VEGA_MIN_JS);
ELLIPTICAL_WEB_FILE(vega_lite, ELLIPTICAL_WEB_VEGA_LITE_MIN_JS);
ELLIPTICAL_WEB_FILE(vega_embed, ELLIPTICAL_WEB_VEGA_EMBED_MIN_JS);
ELLIPTICAL_WEB_FILE(licences, ELLIPTICAL_WEB_LICENCES_TXT);

namespace elliptical::report {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

const WebFiles& web_files() {
  static const WebFiles files = {
      .page = between(elliptical_web_page, elliptical_web_page_end),
      .style = between(elliptical_web_style, elliptical_web_style_end),
      .pictures = between(elliptical_web_pictures, elliptical_web_pictures_end),
      .heat_maps = between(elliptical_web_heat_maps, elliptical_web_heat_maps_end),
      .snapshots = between(elliptical_web_snapshots, elliptical_web_snapshots_end),
      .script = between(elliptical_web_script, elliptical_web_script_end),
      .vega = between(elliptical_web_vega, elliptical_web_vega_end),
      .vega_lite = between(elliptical_web_vega_lite, elliptical_web_vega_lite_end),
      .vega_embed = between(elliptical_web_vega_embed, elliptical_web_vega_embed_end),
      .licences = between(elliptical_web_licences, elliptical_web_licences_end)};
  return files;
}

}  // namespace elliptical::report
