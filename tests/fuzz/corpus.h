// SPDX-License-Identifier: MIT
//
// The inputs in tests/fixtures/corpus, and cheap changes of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "elliptical/base/random.h"

namespace elliptical::test {

std::filesystem::path corpus_folder();

/// Of one target, in the order of their names.
std::vector<std::string> read_corpus(const std::string& name);

/// One of them with one to four changes.
std::string mutate(const std::vector<std::string>& corpus, RandomStream& random);

}  // namespace elliptical::test
