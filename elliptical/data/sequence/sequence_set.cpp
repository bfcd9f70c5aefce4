// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/sequence_set.h"

#include <filesystem>
#include <stdexcept>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/image/image_set.h"
#include "elliptical/data/image/small_pictures.h"
#include "elliptical/data/sequence/grey_pictures.h"
#include "elliptical/data/sequence/listops_file.h"
#include "elliptical/data/sequence/listops_generator.h"
#include "elliptical/data/sequence/pathfinder_set.h"
#include "elliptical/data/sequence/small_documents.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostIds = 1 << 20;

void check_options(const OpenSequencesOptions& options) {
  const auto require = [](bool holds, const char* what, const char* range, int64_t value) {
    if (holds) return;
    throw ConfigError(std::string("data: ") + what + " must be " + range + ", got " +
                      std::to_string(value));
  };
  require(options.max_length >= 0 && options.max_length <= kMostIds, "max_length", "0 to 1048576",
          options.max_length);
  require(options.side >= 1 && options.side <= 1024, "side", "1 to 1024", options.side);
  require(options.train_examples >= 0, "train_examples", "at least 0", options.train_examples);
  require(options.eval_examples >= 0, "eval_examples", "at least 0", options.eval_examples);
}

std::unique_ptr<SequenceSet> open_listops(Split split, const OpenSequencesOptions& options) {
  ListOpsOptions generated{.seed = options.seed};
  if (options.train_examples > 0) generated.train_examples = options.train_examples;
  if (options.eval_examples > 0) generated.eval_examples = options.eval_examples;
  if (options.max_length > 0 && options.max_length < kMaxListOpsLength) {
    throw ConfigError("data: max_length of listops must be at least " +
                      std::to_string(kMaxListOpsLength) + ", got " +
                      std::to_string(options.max_length));
  }
  return open_generated_listops(split, generated,
                                options.max_length > 0 ? options.max_length : 2000);
}

bool is_folder(const std::string& name) {
  return name.find('/') != std::string::npos || fs::is_directory(name);
}

}  // namespace

SequenceExample SequenceSet::get(int64_t index) const {
  if (index < 0 || index >= size()) {
    throw std::out_of_range(name() + ": example must be 0 to " + std::to_string(size() - 1) +
                            ", got " + std::to_string(index));
  }
  return read(index);
}

std::vector<std::string> sequence_set_names() {
  return {"cifar-10",
          "imdb",
          "listops",
          "listops-2018",
          "pathfinder-128",
          "pathfinder-32",
          "pathfinder-32/6",
          "pathfinder-32/9",
          std::string(kSmallDocumentPairs),
          std::string(kSmallDocuments),
          std::string(kSmallPictures)};
}

std::unique_ptr<SequenceSet> open_sequences(const std::string& name,
                                            Split split,
                                            const OpenSequencesOptions& options) {
  check_options(options);
  if (name == "listops") return open_listops(split, options);
  if (auto set = open_generated_pathfinder(name, split, options)) return set;
  if (name == kSmallDocuments) return open_small_documents(false, split, options);
  if (name == kSmallDocumentPairs) return open_small_documents(true, split, options);
  if (name == "cifar-10" || name == kSmallPictures) {
    return open_grey_pictures(
        open_images(name, split, {.side = options.side, .seed = options.seed}), split, options);
  }
  if (name == "imdb" || name == "listops-2018") {
    return open_sequence_folder(find_data(name).string(), name, split, options);
  }
  if (is_folder(name)) {
    return open_sequence_folder(name, fs::path(name).filename().string(), split, options);
  }
  throw ConfigError("data: " + unknown_name(name, sequence_set_names()));
}

}  // namespace elliptical::data
