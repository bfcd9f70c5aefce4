// SPDX-License-Identifier: MIT
#include "tests/support/pillow_pictures.h"

#include <stdexcept>

#include "elliptical/base/safetensors.h"

namespace elliptical::test {
namespace {

const SafetensorsFile& pictures() {
  static const SafetensorsFile file(ELLIPTICAL_SOURCE_DIR
                                    "/tests/fixtures/pictures/pillow.safetensors");
  return file;
}

const TensorEntry& entry_of(const std::string& name) {
  const TensorEntry* entry = pictures().find(name);
  if (entry == nullptr) throw std::runtime_error("no picture " + name);
  return *entry;
}

}  // namespace

std::vector<std::string> pillow_names(const std::string& prefix) {
  std::vector<std::string> names;
  for (const TensorEntry& entry : pictures().header().tensors) {
    if (entry.name.starts_with(prefix)) names.push_back(entry.name.substr(prefix.size()));
  }
  return names;
}

std::vector<uint8_t> pillow_bytes(const std::string& name) {
  std::vector<uint8_t> bytes(entry_of(name).num_elements());
  pictures().read(entry_of(name), std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

data::Image pillow_picture(const std::string& name) {
  const TensorEntry& entry = entry_of(name);
  data::Image image;
  image.height = entry.shape.at(0);
  image.width = entry.shape.at(1);
  image.pixels = pillow_bytes(name);
  return image;
}

}  // namespace elliptical::test
