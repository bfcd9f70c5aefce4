// SPDX-License-Identifier: MIT
//
// Labelled texts in files, one folder a class, as the official archive of IMDB has them:
//     FOLDER/train/CLASS/*.txt, FOLDER/test/CLASS/*.txt, perhaps FOLDER/valid/CLASS/*.txt (or val)
// Classes are numbered in the order of their names (neg 0, pos 1), files taken in the order of
// theirs. A folder `unsup` is no class: IMDB keeps its unlabelled reviews there.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

/// True when one of the class folders of `folder` has .txt files.
bool has_text_files(const std::filesystem::path& folder);

/// `folder` is that of the split, `train_folder` names the classes. Every file is read and checked.
std::unique_ptr<SequenceSet> open_text_files(const std::filesystem::path& folder,
                                             const std::filesystem::path& train_folder,
                                             const std::string& name,
                                             Split split,
                                             const OpenSequencesOptions& options);

}  // namespace elliptical::data
