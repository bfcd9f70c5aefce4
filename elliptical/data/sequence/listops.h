// SPDX-License-Identifier: MIT
//
// Expressions of ListOps (Nangia and Bowman 2018):
//     expression = digit | operator expression ... ]        operator = [MIN | [MAX | [MED | [SM
// MED is the median, of an even number of values the mean of the two in the middle without its
// fraction; SM is the sum modulo 10. Written with blanks between tokens, plain,
//     [MAX 1 7 ]
// or in the binarised form of the published files, whose round brackets mark a left-nested binary
// tree and carry no meaning: ( ( ( [MAX 1 ) 7 ) ] ).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::data {

/// Ids of the tokens: 0 is padding; [MIN, [MAX, [MED, [SM, ] and the digits follow; 16 is the id of
/// unknown tokens in the published pipeline, which no example has.
inline constexpr int32_t kListOpsMin = 1, kListOpsMax = 2, kListOpsMed = 3, kListOpsSum = 4,
                         kListOpsEnd = 5, kListOpsDigit = 6, kListOpsUnknown = 16;

/// Deeper nesting is no ListOps: published files have at most 20.
inline constexpr int64_t kMaxListOpsDepth = 100;

/// What each id stands for, 0 to 16.
const std::vector<std::string>& listops_vocabulary();

/// The tokens of one expression in either form. Throws DataError "WHERE: what must hold, what is
/// (token 7)" unless it is one, complete, with round brackets in pairs, no deeper than allowed.
std::vector<int32_t> parse_listops(std::string_view text, const std::string& where);

// Of complete expressions:

/// 0 to 9.
int64_t listops_value(const std::vector<int32_t>& tokens);
/// Of a digit 1, of an operator one more than its deepest argument.
int64_t listops_depth(const std::vector<int32_t>& tokens);
std::string print_listops(const std::vector<int32_t>& tokens);
std::string print_binarised_listops(const std::vector<int32_t>& tokens);

}  // namespace elliptical::data
