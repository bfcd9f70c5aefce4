// SPDX-License-Identifier: MIT
#include <algorithm>
#include <mutex>
#include <span>
#include <thread>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/json.h"
#include "elliptical/data/catalog_checks_impl.h"
#include "elliptical/data/image/cifar.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/image/imagenet.h"
#include "elliptical/data/text/tokens.h"
#include "elliptical/data/text/vocabulary.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLabelBytes = uint64_t{1} << 20;  // 50,000 labels are a tenth

void require_count(const std::string& path, const char* what, int64_t expected, int64_t found) {
  if (expected != 0 && expected != found) {
    throw DataError(path + ": must have " + std::to_string(expected) + " " + what + ", has " +
                    std::to_string(found));
  }
}

void check_cifar_file(const DataFile& file,
                      std::string_view bytes,
                      const std::string& path,
                      const CifarFormat& format) {
  if (std::string_view(file.name).ends_with(".bin")) check_cifar(bytes, path, format);
}

/// Throws unless every picture can be read; says how many can not, and the first.
void check_pictures(const ImageSet& set) {
  const auto num_threads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  std::mutex mutex;
  int64_t num_bad = 0, first = set.size();
  std::string message;
  const auto check_share = [&](int64_t thread) {
    for (int64_t i = thread; i < set.size(); i += num_threads) {
      try {
        set.get(i);
      } catch (const DataError& error) {
        const std::lock_guard lock(mutex);
        ++num_bad;
        if (i < first) message = error.what();
        first = std::min(first, i);
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < num_threads; ++i) threads.emplace_back(check_share, i);
  }
  if (num_bad > 0) {
    throw DataError(std::to_string(num_bad) + " of " + std::to_string(set.size()) +
                    " pictures can not be read, the first: " + message);
  }
}

/// A sheet has 32 x 32 pixels a row; the result one record a row.
std::string records_of_sheet(const fs::path& sheet, std::span<const uint8_t> labels) {
  const std::string bytes = read_file(sheet);
  const Image image =
      decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, sheet.string());
  constexpr int64_t kPixels = 1024;
  if (image.width != kPixels || image.height != static_cast<int64_t>(labels.size())) {
    throw DataError(sheet.string() + ": must be 1024 x " + std::to_string(labels.size()) +
                    " pixels, is " + std::to_string(image.width) + " x " +
                    std::to_string(image.height));
  }
  std::string records;
  records.reserve(labels.size() * cifar_10().record_bytes());
  for (int64_t y = 0; y < image.height; ++y) {
    records += static_cast<char>(labels[y]);
    for (int channel = 0; channel < 3; ++channel) {
      for (int64_t x = 0; x < kPixels; ++x) records += static_cast<char>(image.at(y, x)[channel]);
    }
  }
  return records;
}

}  // namespace

std::vector<uint8_t> parse_label_list(std::string_view text, const std::string& name) {
  constexpr int64_t kNumClasses = 10;
  const auto list = parse_json<nlohmann::json>(text, name);
  if (!list.is_array()) throw DataError(name + ": must be a list of labels, is none");
  std::vector<uint8_t> labels;
  for (const nlohmann::json& label : list) {
    if (!label.is_number_unsigned() || label.get<uint64_t>() >= kNumClasses) {
      throw DataError(name + ": label " + std::to_string(labels.size()) +
                      " must be a whole number from 0 to 9, is none");
    }
    labels.push_back(label.get<uint8_t>());
  }
  return labels;
}

void check_text_file(const DataFile& file, std::string_view text, const std::string& path) {
  check_text(text, path);
  int64_t num_tokens = 0, num_lines = 0;
  for_each_token(
      text, [&](std::string_view) { ++num_tokens; },
      [&] {
        ++num_tokens;
        ++num_lines;
      });
  require_count(path, "lines", file.num_lines, num_lines);
  require_count(path, "tokens", file.num_tokens, num_tokens);
  if (file.num_words != 0) {
    require_count(path, "different words", file.num_words,
                  build_vocabulary(text).vocabulary.size());
  }
}

void check_cifar_10_file(const DataFile& file, std::string_view bytes, const std::string& path) {
  check_cifar_file(file, bytes, path, cifar_10());
}

void check_cifar_100_file(const DataFile& file, std::string_view bytes, const std::string& path) {
  check_cifar_file(file, bytes, path, cifar_100());
}

void check_imagenet(const fs::path& folder) {
  for (const Split split : {Split::kTrain, Split::kValid}) {
    check_pictures(*open_imagenet_at(folder, "imagenet", split));
  }
}

void check_imagenet_a(const fs::path& folder) {
  check_pictures(*open_imagenet_at(folder, "imagenet-a", Split::kTest));
}

void check_imagenet_c(const fs::path& folder) {
  int64_t num_levels = 0;
  for (const fs::directory_entry& noise : fs::directory_iterator(folder)) {
    if (!noise.is_directory()) continue;
    for (const fs::directory_entry& level : fs::directory_iterator(noise)) {
      if (!level.is_directory()) continue;
      const std::string name =
          noise.path().filename().string() + "/" + level.path().filename().string();
      check_pictures(*open_imagenet_at(folder, "imagenet-c/" + name, Split::kTest));
      ++num_levels;
    }
  }
  if (num_levels == 0) throw DataError(folder.string() + ": must have folders NOISE/LEVEL");
}

void check_imagenet_r(const fs::path& folder) {
  check_pictures(*open_imagenet_at(folder, "imagenet-r", Split::kTest));
}

void convert_cifar_10_sheets(const fs::path& from, const fs::path& to) {
  const auto write = [&](const std::string& name, std::string_view bytes) {
    FileWriter writer(to / name);
    writer.write(bytes);
    writer.finish();
  };
  const fs::path train_file = from / "train_lables.json", test_file = from / "test_lables.json";
  const auto read_labels = [](const fs::path& file) {
    return parse_label_list(read_file(file, kMaxLabelBytes), file.string());
  };
  const auto train = read_labels(train_file), test = read_labels(test_file);
  const size_t num_sheets = cifar_10().train_files.size();
  if (train.size() % num_sheets != 0) {
    throw DataError(train_file.string() + ": must have as many labels for each of " +
                    std::to_string(num_sheets) + " sheets, has " + std::to_string(train.size()));
  }
  const size_t rows = train.size() / num_sheets;
  for (size_t i = 0; i < num_sheets; ++i) {
    const fs::path file = cifar_10().train_files[i];
    const fs::path sheet = from / (file.stem().string() + ".png");
    write(file.string(), records_of_sheet(sheet, std::span(train).subspan(i * rows, rows)));
  }
  write(cifar_10().test_file, records_of_sheet(from / "test_batch.png", test));
  write(cifar_10().class_file,
        "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");  // as in the
                                                                                      // archive
}

}  // namespace elliptical::data
