// SPDX-License-Identifier: MIT
#include "elliptical/report/attack_pictures.h"

#include <algorithm>
#include <cmath>

#include "elliptical/report/snapshots.h"
#include "elliptical/report/tensor_file_impl.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

constexpr int64_t kMaxSide = 112, kMinSide = 32, kFewPictures = 3, kChannels = 3;

/// The class of the largest of K logits.
std::vector<int64_t> predictions(const SafetensorsFile& file, const std::string& name, int64_t B) {
  const auto [shape, logits] = read_tensor<float>(file, name, ElementType::kF32, 2);
  if (shape[0] != B) {
    throw DataError(file.path().string() + ": " + name + " must be (" + std::to_string(B) +
                    ", K), has another shape");
  }
  std::vector<int64_t> classes;
  for (int64_t b = 0; b < B; ++b) {
    const auto row = logits.begin() + b * shape[1];
    classes.push_back(std::max_element(row, row + shape[1]) - row);
  }
  return classes;
}

json packed(const float* clean, const float* attacked, int64_t h, int64_t w, int64_t cell) {
  const std::vector<double> before = reduced_picture(clean, h, w, cell),
                            after = reduced_picture(attacked, h, w, cell);
  double largest = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    largest = std::max(largest, std::abs(after[i] - before[i]));
  }
  std::string differences;
  for (size_t i = 0; i < before.size(); ++i) {
    const double share = largest > 0 ? (after[i] - before[i]) / largest : 0;
    differences += static_cast<char>(std::lround(127 * share));
  }
  return {{"clean", base64(pixel_bytes(before))},
          {"difference", base64(differences)},
          {"largest", largest}};
}

/// What the data call their classes; empty where the file does not say, or not in a way to be read:
/// pictures have numbers then.
std::vector<std::string> class_names(const SafetensorsFile& file) {
  std::vector<std::string> result;
  json names;
  try {
    names = metadata_json(file, "class_names");
  } catch (const DataError&) {
    return result;
  }
  if (!names.is_array()) return result;
  for (const json& name : names) result.push_back(name.is_string() ? name.get<std::string>() : "");
  return result;
}

/// As sharp as lets a few pictures fit.
int64_t cell_of(int64_t side, int64_t num_pictures, size_t max_bytes) {
  int64_t cell = (side + kMaxSide - 1) / kMaxSide;
  const auto bytes = [&] { return std::pow((side + cell - 1) / cell, 2) * 2 * kChannels * 4 / 3; };
  while (bytes() * static_cast<double>(std::min(num_pictures, kFewPictures)) >
             static_cast<double>(max_bytes) &&
         side / (cell + 1) >= kMinSide) {
    ++cell;
  }
  return cell;
}

json read_pictures(const std::filesystem::path& path, size_t max_bytes) {
  const SafetensorsFile file(path);
  const auto refuse = [&](const std::string& why) { throw DataError(path.string() + ": " + why); };
  if (metadata(file, "profile") == "published") {
    refuse("must be of the strict profile, is of the published one, which changes no pixels");
  }
  const auto [shape, clean] = read_tensor<float>(file, "clean", ElementType::kF32, 4);
  const auto [other, attacked] = read_tensor<float>(file, "adversarial", ElementType::kF32, 4);
  const int64_t B = shape[0], h = shape[2], w = shape[3];
  if (shape != other || shape[1] != kChannels) {
    refuse("clean and adversarial must be the same pictures (B, 3, h, w), have other shapes");
  }
  const auto is_pixel = [](float value) { return value >= 0 && value <= 1; };
  if (!std::all_of(clean.begin(), clean.end(), is_pixel) ||
      !std::all_of(attacked.begin(), attacked.end(), is_pixel)) {
    refuse("clean and adversarial must be in [0, 1], are not");
  }
  const std::vector<int64_t> labels =
      read_tensor<int64_t>(file, "labels", ElementType::kI64, 1).values;
  if (std::ssize(labels) != B)
    refuse("labels must be (" + std::to_string(B) + "), has another shape");
  const std::vector<int64_t> before = predictions(file, "clean_logits", B),
                             after = predictions(file, "adversarial_logits", B);

  std::vector<size_t> order(static_cast<size_t>(B));
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t i) { return before[i] != after[i]; });
  order.resize(std::min(order.size(), kMaxAttackPictures));

  const std::vector<std::string> names = class_names(file);
  const auto name_of = [&](int64_t number) {
    const auto place = static_cast<size_t>(number);
    return place < names.size() ? names[place] : "class " + std::to_string(number);
  };
  const int64_t cell = cell_of(std::max(h, w), static_cast<int64_t>(order.size()), max_bytes);
  json result = {{"attack", metadata(file, "attack")},
                 {"eps", metadata(file, "eps")},
                 {"height", (h + cell - 1) / cell},
                 {"width", (w + cell - 1) / cell},
                 {"cell", cell},
                 {"pictures", json::array()}};
  const auto pixels = static_cast<size_t>(kChannels * h * w);
  size_t num_bytes = 0;
  for (const size_t i : order) {
    json picture = packed(&clean[i * pixels], &attacked[i * pixels], h, w, cell);
    num_bytes += picture.dump().size();
    if (num_bytes > max_bytes) break;
    picture["label"] = labels[i];
    picture["before"] = before[i];
    picture["after"] = after[i];
    picture["names"] = {name_of(labels[i]), name_of(before[i]), name_of(after[i])};
    result["pictures"].push_back(std::move(picture));
  }
  return result;
}

}  // namespace

json read_attack_pictures(const std::vector<RunData>& runs,
                          const std::vector<size_t>& chosen,
                          std::vector<std::string>& problems,
                          size_t max_bytes) {
  std::vector<size_t> with_pictures;
  for (const size_t i : chosen) {
    if (!runs[i].attack_pictures.empty()) with_pictures.push_back(i);
  }
  json all = json::array();
  for (const size_t i : with_pictures) {
    use_file(runs[i].attack_pictures, "its pictures are not shown", problems, [&] {
      json pictures = read_pictures(runs[i].attack_pictures, max_bytes / with_pictures.size());
      pictures["run"] = i;
      all.push_back(std::move(pictures));
    });
  }
  return all;
}

}  // namespace elliptical::report
