// SPDX-License-Identifier: MIT
//
// Files of ListOps expressions, in the two forms that were published:
//     Long Range Arena    basic_{train,val,test}.tsv: a header Source TAB Target, then EXPRESSION
//                         TAB VALUE a line, usually with CR LF ends
//     Nangia and Bowman   {train,valid,test}_d20s.tsv: VALUE TAB EXPRESSION a line
// Every expression is evaluated when the file is opened: a wrong value is an error of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

struct ListOpsRow {
  std::vector<int32_t> tokens;
  int64_t value;
};

enum class ListOpsForm { kExpressionFirst, kValueFirst };

/// Throws DataError "WHERE: ..." for anything but a line of that form with the right value.
ListOpsRow parse_listops_row(std::string_view line, ListOpsForm form, const std::string& where);

/// The file of a split in `folder`, in either form; empty when it is not there.
std::filesystem::path listops_file(const std::filesystem::path& folder, Split split);

std::unique_ptr<SequenceSet> open_listops_file(const std::filesystem::path& file,
                                               const std::string& name,
                                               Split split,
                                               int64_t max_length);

}  // namespace elliptical::data
