// SPDX-License-Identifier: MIT
//
// What Pillow made of some pictures: tests/fixtures/pictures/make_pictures.py says what there is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elliptical/data/image/image.h"

namespace elliptical::test {

/// Names that begin with `prefix`, without it.
std::vector<std::string> pillow_names(const std::string& prefix);

std::vector<uint8_t> pillow_bytes(const std::string& name);
data::Image pillow_picture(const std::string& name);

}  // namespace elliptical::test
