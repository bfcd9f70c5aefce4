// SPDX-License-Identifier: MIT
#include "elliptical/cli/bench_loader.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <array>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "elliptical/cli/bench_output.h"
#include "elliptical/cli/table.h"
#include "elliptical/data/image/augment/augment.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/image/loader.h"
#include "elliptical/data/image/resample.h"
#include "elliptical/data/image/small_pictures.h"
#include "elliptical/models/vit.h"

namespace elliptical::cli {
namespace {

struct Problem {
  int64_t batch = 16, side = 224;
  int64_t file_width = 500, file_height = 375;  ///< what pictures of ImageNet mostly have
  int64_t num_files = 64;
};

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// JPEG files in memory, and batches made of them as a training run does.
class Pictures {
 public:
  explicit Pictures(const Problem& problem) : problem_(problem) {
    const data::SmallPictures set(data::Split::kTrain, {.side = problem.file_width});
    for (int64_t i = 0; i < problem.num_files; ++i) {
      files_.push_back(data::encode_jpeg(
          data::crop(set.get(i), 0, 0, problem.file_width, problem.file_height), 90));
    }
  }

  /// Decoded and augmented, (B, 3, side, side).
  std::vector<float> batch(int64_t number) const {
    const int64_t picture_size = 3 * problem_.side * problem_.side;
    std::vector<float> pixels(problem_.batch * picture_size);
    for (int64_t i = 0; i < problem_.batch; ++i) {
      const auto file = static_cast<size_t>((number * problem_.batch + i) % problem_.num_files);
      data::augment(data::decode_image(files_[file], "bench"), {}, {}, problem_.side,
                    RandomKey(1).derive(number).derive(i), pixels.data() + i * picture_size);
    }
    return pixels;
  }

 private:
  Problem problem_;
  std::vector<std::vector<uint8_t>> files_;
};

/// DeiT-tiny, and one step of its training without the optimizer.
class Model {
 public:
  Model(const Problem& problem, bool quick) : problem_(problem) {
    models::VitOptions options;
    options.image_size = problem.side;
    if (quick) options.num_layers = 1;
    model_ = std::make_shared<models::Vit>(options, 1000);
    model_->initialize(1);
  }

  void step(std::vector<float>& pixels) {
    const at::Tensor input = torch::from_blob(
        pixels.data(), {problem_.batch, Image::kChannels, problem_.side, problem_.side});
    auto pass = nn::Pass::of_training(RandomKey(1));
    const at::Tensor logits = model_->forward(input, pass);
    logits.logsumexp(1).mean().backward();
    model_->zero_grad();
  }

 private:
  using Image = data::Image;
  Problem problem_;
  std::shared_ptr<models::Vit> model_;
};

struct Row {
  int64_t workers;
  double loader, fed;  ///< pictures per second: of the workers alone, of steps that use them
  double wait;         ///< share of the time that steps wait for a batch
};

Row measure(
    const Pictures& pictures, Model& model, const Problem& problem, int64_t workers, int repeats) {
  const auto make = [&](int64_t number) { return pictures.batch(number); };
  const auto num_pictures = static_cast<double>(problem.batch * repeats);
  Row row{.workers = workers, .loader = 0, .fed = 0, .wait = 0};
  {
    data::BatchLoader<std::vector<float>> loader(make, {.workers = workers});
    loader.get(0);
    // What was made ahead of the clock is as much as what is still being made when it stops.
    row.loader = num_pictures / seconds_of([&] {
                   for (int64_t i = 1; i <= repeats; ++i) loader.get(i);
                 });
  }
  data::BatchLoader<std::vector<float>> loader(make, {.workers = workers});
  std::vector<float> batch = loader.get(0);
  double waited = 0;
  const double total = seconds_of([&] {
    for (int64_t i = 1; i <= repeats; ++i) {
      waited += seconds_of([&] { batch = loader.get(i); });
      model.step(batch);
    }
  });
  row.fed = num_pictures / total;
  row.wait = waited / total;
  return row;
}

}  // namespace

int bench_loader(const std::string& format, int repeats, bool quick) {
  Problem problem;
  if (quick) {
    problem = {.batch = 2, .side = 32, .file_width = 64, .file_height = 48, .num_files = 4};
  }
  constexpr std::array<int64_t, 4> kWorkers = {0, 1, 2, 4};
  constexpr size_t kParts = 1 + kWorkers.size();
  show_bench_progress(0, kParts, "steps without a loader");
  const Pictures pictures(problem);
  Model model(problem, quick);
  std::vector<float> batch = pictures.batch(0);
  model.step(batch);
  const double alone = static_cast<double>(problem.batch * repeats) / seconds_of([&] {
                         for (int i = 0; i < repeats; ++i) model.step(batch);
                       });
  std::vector<Row> rows;
  for (const int64_t workers : kWorkers) {
    show_bench_progress(1 + rows.size(), kParts, fmt::format("{} workers", workers));
    rows.push_back(measure(pictures, model, problem, workers, repeats));
  }
  show_bench_progress(kParts, kParts, "done");

  const Machine machine = this_machine();
  auto records = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json record{
        {"what", "loader"},
        {"workers", row.workers},
        {"loader_pictures_per_s", row.loader},
        {"step_pictures_per_s", alone},
        {"fed_pictures_per_s", row.fed},
        {"wait_share", row.wait},
        {"batch", problem.batch},
        {"side", problem.side},
        {"file", fmt::format("{} x {}", problem.file_width, problem.file_height)},
        {"repeats", repeats}};
    add_machine(machine, record);
    records.push_back(std::move(record));
  }
  if (format != "table") {
    print_bench_records(records, format);
    return 0;
  }
  Table table{.columns = {"workers", "loader/s", "step/s", "step with loader/s", "waiting"}};
  for (const Row& row : rows) {
    table.rows.push_back({std::to_string(row.workers), fmt::format("{:.1f}", row.loader),
                          fmt::format("{:.1f}", alone), fmt::format("{:.1f}", row.fed),
                          fmt::format("{:.0f} %", 100 * row.wait)});
  }
  std::cout << machine_line(machine) << "\n"
            << fmt::format(
                   "pictures a second; JPEG files of {} x {}, augmented to {} x {}, batches of {}; "
                   "steps of DeiT-tiny, forward and backward\n\n",
                   problem.file_width, problem.file_height, problem.side, problem.side,
                   problem.batch);
  print_text(std::cout, table);
  return 0;
}

}  // namespace elliptical::cli
