// SPDX-License-Identifier: MIT
#include "elliptical/store/tensor_files.h"

#include <torch/torch.h>

#include <array>
#include <optional>
#include <set>
#include <sstream>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/base/sha256.h"
#include "elliptical/store/failed_allocation.h"

namespace elliptical::store {
namespace {

struct TypePair {
  ElementType file;
  at::ScalarType torch;
};
constexpr std::array kTypes = {
    TypePair{ElementType::kBool, at::kBool}, TypePair{ElementType::kU8, at::kByte},
    TypePair{ElementType::kI8, at::kChar},   TypePair{ElementType::kI16, at::kShort},
    TypePair{ElementType::kF16, at::kHalf},  TypePair{ElementType::kBF16, at::kBFloat16},
    TypePair{ElementType::kI32, at::kInt},   TypePair{ElementType::kF32, at::kFloat},
    TypePair{ElementType::kI64, at::kLong},  TypePair{ElementType::kF64, at::kDouble},
};

std::optional<at::ScalarType> torch_type(ElementType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.file == type) return pair.torch;
  }
  return std::nullopt;
}

at::Tensor read_tensor(const SafetensorsFile& file, const TensorEntry& entry, at::ScalarType type) {
  const at::Tensor tensor = with_memory_errors([&] { return at::empty(entry.shape, type); });
  file.read(entry, {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
  return tensor;
}

std::string shape_text(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << " " << tensor.sizes();
  return text.str();
}

}  // namespace

NamedTensors named_tensors(const torch::nn::Module& model) {
  NamedTensors result;
  std::set<const void*> seen;
  const auto add = [&](const auto& list) {
    for (const auto& item : list) {
      if (seen.insert(item.value().unsafeGetTensorImpl()).second) {
        result.emplace_back(item.key(), item.value());
      }
    }
  };
  add(model.named_parameters());
  add(model.named_buffers());
  return result;
}

namespace {

WrittenFile write_tensors(FileWriter& file,
                          const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata) {
  std::vector<TensorBytes> entries;
  std::vector<at::Tensor> kept;  // contiguous copies live until they are written
  for (const auto& [name, tensor] : tensors) {
    const auto type = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypePair& pair) {
      return pair.torch == tensor.scalar_type();
    });
    TORCH_CHECK(type != kTypes.end(), "write_tensors: ", name,
                " has a type that files have not: ", tensor.scalar_type());
    const at::Tensor data = kept.emplace_back(tensor.detach().contiguous());
    entries.push_back({name,
                       type->file,
                       data.sizes().vec(),
                       {static_cast<const std::byte*>(data.const_data_ptr()), data.nbytes()}});
  }
  Sha256 hash;
  WrittenFile written;
  write_safetensors(entries, metadata, [&](std::span<const std::byte> bytes) {
    file.write(bytes);
    hash.update(bytes);
    written.num_bytes += static_cast<int64_t>(bytes.size());
  });
  written.sha256 = hash.hex();
  return written;
}

}  // namespace

WrittenFile write_tensors(const std::filesystem::path& path,
                          const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata) {
  FileWriter file(path);
  WrittenFile written = write_tensors(file, tensors, metadata);
  file.finish();
  return written;
}

void replace_tensors(const std::filesystem::path& path,
                     const NamedTensors& tensors,
                     const std::map<std::string, std::string>& metadata) {
  FileReplacement replacement(path);
  write_tensors(replacement.file(), tensors, metadata);
  replacement.finish();
}

std::map<std::string, at::Tensor> read_tensors(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  std::map<std::string, at::Tensor> result;
  for (const TensorEntry& entry : file.header().tensors) {
    const auto type = torch_type(entry.type);
    if (!type) {
      throw DataError(path.string() + ": " + entry.name +
                      " has a type that torch has not: " + std::string(to_string(entry.type)));
    }
    result.emplace(entry.name, read_tensor(file, entry, *type));
  }
  return result;
}

std::map<std::string, at::Tensor> read_floating_tensors(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  std::map<std::string, at::Tensor> result;
  for (const TensorEntry& entry : file.header().tensors) {
    const auto type = torch_type(entry.type);
    if (!type || !at::isFloatingType(*type)) continue;
    const at::Tensor tensor = read_tensor(file, entry, *type);
    result.emplace(entry.name, with_memory_errors([&] { return tensor.to(at::kFloat); }));
  }
  return result;
}

void copy_tensors(const NamedTensors& into,
                  const std::map<std::string, at::Tensor>& from,
                  const std::string& source) {
  std::set<std::string> wanted;
  for (const auto& [name, tensor] : into) {
    wanted.insert(name);
    const auto found = from.find(name);
    if (found == from.end()) {
      throw DataError(source + ": must hold " + name + " " + shape_text(tensor) + ", has none");
    }
    if (found->second.sizes() != tensor.sizes() ||
        found->second.scalar_type() != tensor.scalar_type()) {
      throw DataError(source + ": " + name + " must be " + shape_text(tensor) + ", is " +
                      shape_text(found->second));
    }
  }
  for (const auto& [name, tensor] : from) {
    if (!wanted.contains(name)) {
      throw DataError(source + ": holds " + name + ", which the model has not");
    }
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : into) {
    at::Tensor target = tensor;
    target.copy_(from.at(name));
  }
}

}  // namespace elliptical::store
