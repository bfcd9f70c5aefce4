// SPDX-License-Identifier: MIT
//
// Text of others on its way to a terminal. Names of files and classes, words of a text and names of
// recipes may hold anything, also sequences that move the cursor, retitle the window or turn the
// direction of a line; nothing of that kind may reach a terminal. Nor may it end a
// word of a command that we advise.
#pragma once

#include <string>
#include <string_view>

namespace elliptical {

enum class LineEnds { kEscape, kKeep };

/// The same text with everything that is no visible character or space written as an escape:
/// \x1b for control characters (C0, DEL and C1) and for bytes that are no UTF-8, \u{202e} for
/// characters that separate lines or change the direction of writing, \n and \t for those two.
/// Letters of all languages stay as they are.
std::string printable(std::string_view text, LineEnds line_ends = LineEnds::kEscape);

/// One word of a shell command, in single quotes where it needs them.
std::string shell_word(std::string_view text);

}  // namespace elliptical
