// SPDX-License-Identifier: MIT
//
// Text of others (names of runs, labels, words of a text) inside a page of ours. What is no UTF-8
// or may not stand in HTML becomes U+FFFD.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace elliptical::report {

/// For text and for values of attributes in double or single quotes.
std::string escape_html(std::string_view text);

/// For <script type="application/json">: no "<", ">" or "&" is left, so nothing in it ends the
/// element or starts a comment.
std::string json_in_script(const nlohmann::json& value);

}  // namespace elliptical::report
