// SPDX-License-Identifier: MIT
//
// Tensors of torch to and from safetensors files. Names are those of the model's parameters and
// buffers, so a file can be read by any tool that knows the format.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/base/checkpoint_folder.h"

namespace torch::nn {
class Module;
}

namespace elliptical::store {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Parameters, then buffers, in the order the model lists them; tied ones once.
NamedTensors named_tensors(const torch::nn::Module& model);

/// Writes and syncs; not atomic by itself.
WrittenFile write_tensors(const std::filesystem::path& path,
                          const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata = {});

/// The same, atomically: beside, synced, renamed.
void replace_tensors(const std::filesystem::path& path,
                     const NamedTensors& tensors,
                     const std::map<std::string, std::string>& metadata = {});

/// All tensors of a file. Throws DataError; MemoryError where there is no memory for them.
std::map<std::string, at::Tensor> read_tensors(const std::filesystem::path& path);

/// All floating tensors of a file as float32. Others, counts of batches and the like, are passed
/// over, whatever their type. Throws as above.
std::map<std::string, at::Tensor> read_floating_tensors(const std::filesystem::path& path);

/// Copies `from` into `into`, in place. Names, shapes and types must be the same; DataError with
/// the first that is not, `source` being what the message starts with.
void copy_tensors(const NamedTensors& into,
                  const std::map<std::string, at::Tensor>& from,
                  const std::string& source);

}  // namespace elliptical::store
