// SPDX-License-Identifier: MIT
//
// safetensors_copy IN OUT: reads with our reader and writes with our writer, for the comparison
// with the Python package (test_safetensors_peer.py).
#include <exception>
#include <iostream>
#include <vector>

#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const elliptical::SafetensorsFile in(argv[1]);
  std::vector<std::vector<std::byte>> contents;
  std::vector<elliptical::TensorBytes> tensors;
  for (const elliptical::TensorEntry& entry : in.header().tensors) {
    contents.emplace_back(entry.end - entry.begin);
    in.read(entry, contents.back());
    tensors.push_back({entry.name, entry.type, entry.shape, contents.back()});
  }
  elliptical::FileWriter out(argv[2]);
  elliptical::write_safetensors(tensors, in.header().metadata,
                                [&](std::span<const std::byte> bytes) { out.write(bytes); });
  out.finish();
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
