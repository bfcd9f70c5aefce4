// SPDX-License-Identifier: MIT
#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"
#include "elliptical/data/sequence/encodings_impl.h"
#include "elliptical/data/sequence/listops.h"

namespace elliptical::data {
namespace {

[[noreturn]] void refuse_length(const std::string& where,
                                const char* what,
                                int64_t max_length,
                                size_t length) {
  throw DataError(where + ": must have at most " + std::to_string(max_length) + " " + what +
                  ", has " + std::to_string(length) + " (a larger maximum length takes it)");
}

}  // namespace

std::vector<std::string> digit_names() {
  std::vector<std::string> names;
  for (int digit = 0; digit < 10; ++digit) names.push_back(std::to_string(digit));
  return names;
}

SequenceExample listops_example(std::vector<int32_t> tokens,
                                int64_t label,
                                int64_t max_length,
                                const std::string& where) {
  const auto length = static_cast<int64_t>(tokens.size());
  if (length > max_length) refuse_length(where, "tokens", max_length, tokens.size());
  const int64_t depth = listops_depth(tokens);
  return {.ids = std::move(tokens),
          .second_ids = {},
          .label = label,
          .facts = {{"depth", depth}, {"length", length}}};
}

std::vector<std::string> byte_vocabulary() {
  std::vector<std::string> names = {"<pad>"};
  for (int byte = 0; byte < 256; ++byte) {
    names.push_back(printable(std::string(1, static_cast<char>(byte))));
  }
  return names;
}

void check_document(std::string_view text,
                    int64_t max_length,
                    bool refuse_longer,
                    const std::string& where) {
  if (text.find('\0') != std::string_view::npos) {
    throw DataError(where + ": must be text, has a NUL byte");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw DataError(where + ": must have text, is an empty document");
  }
  if (refuse_longer && text.size() > static_cast<size_t>(max_length)) {
    refuse_length(where, "bytes", max_length, text.size());
  }
}

std::vector<int32_t> byte_ids(std::string_view text, int64_t max_length) {
  text = text.substr(0, static_cast<size_t>(max_length));
  std::vector<int32_t> ids(text.size());
  std::transform(text.begin(), text.end(), ids.begin(),
                 [](char byte) { return static_cast<unsigned char>(byte) + 1; });
  return ids;
}

std::vector<std::string> pixel_vocabulary(PixelIds pixel_ids) {
  std::vector<std::string> names;
  if (pixel_ids == PixelIds::kShifted) names.emplace_back("<pad>");
  for (int value = 0; value < 256; ++value) names.push_back(std::to_string(value));
  return names;
}

std::vector<int32_t> to_pixel_ids(const std::vector<uint8_t>& values, PixelIds pixel_ids) {
  const int32_t shift = pixel_ids == PixelIds::kShifted ? 1 : 0;
  std::vector<int32_t> ids(values.size());
  std::transform(values.begin(), values.end(), ids.begin(),
                 [shift](uint8_t value) { return value + shift; });
  return ids;
}

}  // namespace elliptical::data
