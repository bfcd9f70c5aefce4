// SPDX-License-Identifier: MIT
//
// Files that are part of the program: our page (elliptical/report/web) and the chart library, which
// is taken from node_modules when the program is built.
#pragma once

#include <string_view>

namespace elliptical::report {

struct WebFiles {
  /// Ours: report.html, report.css, pictures.js, heat_maps.js, snapshots.js, report.js.
  std::string_view page, style, pictures, heat_maps, snapshots, script;
  std::string_view vega, vega_lite, vega_embed;  ///< minified
  std::string_view licences;                     ///< of all that the minified files contain
};

const WebFiles& web_files();

}  // namespace elliptical::report
