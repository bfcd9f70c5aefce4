// SPDX-License-Identifier: MIT
//
// Damage to valid files, field by field: types, lengths, nesting, numbers out of range, keys and
// lines that come twice, ends that are missing. Bytes that are changed blindly are refused by the
// first check of a format; these get past it.
#pragma once

#include <string>
#include <string_view>

#include "elliptical/base/random.h"

namespace elliptical::test {

/// One value, member or end of a text of JSON values, one or several (lines of them).
std::string damage_json(std::string_view text, RandomStream& random);

/// The same of lines, or a line as a whole: twice, gone, cut, glued to the next.
std::string damage_lines(std::string_view text, RandomStream& random);

/// A safetensors file with another shape, type, name, value or entry of the metadata, and with what
/// header and length then have to be; or with a header that damage_json had.
std::string damage_tensors(std::string_view bytes, RandomStream& random);

/// A copy that is cut, overwritten or stretched at random places.
std::string damage_bytes(std::string_view bytes, RandomStream& random);

}  // namespace elliptical::test
