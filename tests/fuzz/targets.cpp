// SPDX-License-Identifier: MIT
#include "tests/fuzz/targets.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/records.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/data/archive.h"
#include "elliptical/data/corrupt/word_swap.h"
#include "elliptical/data/image/cifar.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/image/packed.h"
#include "elliptical/data/packed_weights.h"
#include "elliptical/data/sequence/listops.h"
#include "elliptical/data/sequence/listops_file.h"
#include "elliptical/data/sequence/pathfinder_set.h"
#include "elliptical/data/sequence/text_rows.h"
#include "elliptical/data/text/tokens.h"
#include "elliptical/data/text/vocabulary.h"
#include "elliptical/data/xz.h"
#include "tests/fuzz/damage.h"

namespace elliptical::test {
namespace {

void run_safetensors(std::string_view bytes) {
  succeeds<DataError>([&] {
    const SafetensorsHeader header =
        parse_safetensors_header(std::as_bytes(std::span(bytes)), bytes.size(), "f");
    uint64_t covered = 0;
    for (const TensorEntry& tensor : header.tensors) {
      require(tensor.begin == covered && tensor.begin <= tensor.end, "tensors are in order");
      int64_t size = element_bytes(tensor.type);
      for (const int64_t dimension : tensor.shape) size *= dimension;
      require(static_cast<uint64_t>(size) == tensor.end - tensor.begin, "shape gives the size");
      covered = tensor.end;
    }
    require(header.data_offset + covered == bytes.size(), "tensors cover the file");
  });
}

struct RoundOptions : Options {
  double radius = 1.5;
  void visit(FieldList& fields) override { fields.add("radius", radius, "", above(0)); }
  std::unique_ptr<Options> clone() const override { return std::make_unique<RoundOptions>(*this); }
};

struct SquareOptions : Options {
  int64_t side = 4;
  void visit(FieldList& fields) override { fields.add("side", side, "", at_least(1)); }
  std::unique_ptr<Options> clone() const override { return std::make_unique<SquareOptions>(*this); }
};

const std::vector<OptionsEntry>& shapes() {
  static const std::vector<OptionsEntry> table = {
      {"round", "", []() -> std::unique_ptr<Options> { return std::make_unique<RoundOptions>(); }},
      {"square", "",
       []() -> std::unique_ptr<Options> { return std::make_unique<SquareOptions>(); }}};
  return table;
}

/// A field of each type.
struct RecipeOptions {
  bool flag = false;
  int64_t seed = 1;
  double rate = 0.5;
  std::string data = "x";
  std::optional<int64_t> limit;
  std::optional<double> scale;
  std::vector<int64_t> counts;
  std::vector<double> weights;
  std::vector<std::string> names;
  ChosenOptions shape{shapes(), "round"};
  void visit(FieldList& fields) {
    fields.add("flag", flag, "");
    fields.add("seed", seed, "");
    fields.add("rate", rate, "", between(0, 1));
    fields.add("data", data, "");
    fields.add("limit", limit, "");
    fields.add("scale", scale, "");
    fields.add("counts", counts, "");
    fields.add("weights", weights, "");
    fields.add("names", names, "");
    fields.add_group("shape", shape);
  }
};

void run_recipe(std::string_view bytes) {
  // A base would be a file of this machine.
  if (bytes.find("base") != std::string_view::npos) return;
  RecipeOptions options;
  const std::string text(bytes);
  if (succeeds<ConfigError>([&] { read_recipe_text(text, "f", fields_of(options)); })) {
    const std::string effective = to_toml(fields_of(options));
    RecipeOptions again;
    read_recipe_text(effective, "effective", fields_of(again));
    require(to_toml(fields_of(again)) == effective, "the effective configuration reads back");
  }
  succeeds<ConfigError>([&] { apply_overrides({text}, fields_of(options)); });
}

void run_record(std::string_view bytes) {
  succeeds<DataError>([&] {
    const std::string line = to_json_line(parse_record(std::string(bytes)));
    require(to_json_line(parse_record(line)) == line, "a record reads back");
  });
}

void run_packed_weights(std::string_view bytes) {
  constexpr int64_t kNumValues = 10;
  succeeds<DataError>([&] {
    int64_t covered = 0;
    for (const data::PackedTensor& tensor : data::parse_packed_weights(bytes, "f", kNumValues)) {
      int64_t size = 1;
      for (const int64_t dimension : tensor.shape) size *= dimension;
      require(tensor.offset == covered && tensor.num_elements == size, "shape gives the size");
      covered += size;
    }
    require(covered == kNumValues, "tensors cover the file");
  });
}

void run_text(std::string_view bytes) {
  const bool valid = succeeds<DataError>([&] { data::check_text(bytes, "f"); });
  // Also of text that a check would refuse: it must not read beyond its end.
  const data::EncodedText encoded = data::build_vocabulary(bytes, 0);
  require(encoded.stream == data::encode(bytes, encoded.vocabulary), "both ways give the same ids");
  for (const int32_t id : encoded.stream) {
    require(id >= 0 && id < encoded.vocabulary.size(), "ids are in the vocabulary");
  }
  data::build_vocabulary(bytes, 3);
  if (valid) {
    const std::string text = encoded.vocabulary.to_text();
    require(data::Vocabulary::from_text(text, "v").to_text() == text, "a vocabulary reads back");
  }
}

void run_word_swap(std::string_view bytes) {
  if (!succeeds<DataError>([&] { data::check_text(bytes, "f"); })) return;
  const auto count = [](std::string_view text) {
    size_t number = 0;
    data::for_each_token(text, [&](std::string_view) { ++number; }, [&] { ++number; });
    return number;
  };
  const size_t num_tokens = count(bytes);
  for (const data::SwapUnit unit : {data::SwapUnit::kLine, data::SwapUnit::kStream}) {
    for (const double rate : {0.0, 0.3, 1.0}) {
      const data::SwappedText swapped = data::swap_words(bytes, {.rate = rate, .unit = unit});
      require(count(swapped.text) == num_tokens, "a swap keeps the number of tokens");
      require(swapped.swapped.size() == num_tokens, "each token has a flag");
    }
  }
  data::swap_words(bytes, {.rate = 0.3, .profile = data::SwapProfile::kPublished});
}

std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void run_picture(std::string_view bytes) {
  constexpr int64_t kMaxPixels = 1 << 18;
  succeeds<DataError>([&] {
    const data::Image image =
        data::decode_image(as_bytes(bytes), "f", {.max_pixels = kMaxPixels, .max_side = 10'000});
    const int64_t num_pixels = image.width * image.height;
    require(num_pixels > 0 && num_pixels <= kMaxPixels, "the limits hold");
    require(static_cast<int64_t>(image.pixels.size()) == 3 * num_pixels, "every pixel is there");
    if (num_pixels > 4096) return;
    require(data::decode_image(data::encode_png(image), "png") == image, "PNG loses nothing");
    const data::Image jpeg = data::decode_image(data::encode_jpeg(image, 50), "jpeg");
    require(jpeg.width == image.width && jpeg.height == image.height, "JPEG keeps the size");
  });
}

void run_cifar(std::string_view bytes) {
  for (const data::CifarFormat* format : {&data::cifar_10(), &data::cifar_100()}) {
    succeeds<DataError>([&] {
      data::check_cifar(bytes, "f", *format);
      for (size_t i = 0; i < bytes.size(); i += format->record_bytes()) {
        const auto record = bytes.substr(i, format->record_bytes());
        require(data::cifar_picture(record, *format).width == 32, "each record is a picture");
      }
    });
  }
}

void run_packed_index(std::string_view bytes) {
  succeeds<DataError>([&] {
    for (const data::PackedEntry& entry : data::parse_packed_index(bytes, "f", 1000)) {
      require(entry.label >= 0 && entry.label < 1000, "labels are classes");
    }
  });
}

void run_listops(std::string_view bytes) {
  for (const auto form : {data::ListOpsForm::kExpressionFirst, data::ListOpsForm::kValueFirst}) {
    succeeds<DataError>([&] {
      const data::ListOpsRow row = data::parse_listops_row(bytes, form, "f:1");
      require(row.value >= 0 && row.value <= 9, "values are digits");
      require(data::listops_depth(row.tokens) <= data::kMaxListOpsDepth, "the depth is bounded");
      for (const std::string& text :
           {data::print_listops(row.tokens), data::print_binarised_listops(row.tokens)}) {
        require(data::parse_listops(text, "again") == row.tokens, "an expression reads back");
      }
    });
  }
}

/// The lines of a file of texts: a table with or without header, AAN, and JSON.
void run_text_row(std::string_view bytes) {
  std::optional<data::TextColumns> columns;
  const auto check = [](const data::TextRow& row, bool is_pair) {
    require(!row.label.empty() && row.label.size() <= 200, "labels are short");
    for (int i = 0; i < (is_pair ? 2 : 1); ++i) {
      require(!row.texts[i].empty() && row.texts[i].find('\0') == std::string::npos,
              "documents are text");
    }
  };
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    succeeds<DataError>([&] { check(data::parse_json_row(line, "f:1"), false); });
    succeeds<DataError>([&] { check(data::parse_tsv_row(line, data::kAanColumns, "f:1"), true); });
    succeeds<DataError>([&] {
      bool is_header = false;
      if (!columns) columns = data::find_text_columns(line, "f:1", is_header);
      check(data::parse_tsv_row(line, *columns, "f:1"), columns->second.has_value());
    });
  }
}

void run_pathfinder_line(std::string_view bytes) {
  succeeds<DataError>([&] {
    const data::PathfinderFile file = data::parse_pathfinder_line(bytes, "f:1");
    require(file.label == 0 || file.label == 1, "labels are classes");
    require(file.path[0] != '/' && ("/" + file.path + "/").find("/../") == std::string::npos,
            "pictures are below their folder");
  });
}

void run_archive(std::string_view bytes) {
  constexpr uint64_t kMaxBytes = 1 << 16;
  const std::vector<data::WantedMember> wanted = {{{"train.txt", "wiki.train.tokens"}, kMaxBytes},
                                                  {{"test.txt"}, kMaxBytes}};
  std::vector<uint64_t> num_bytes(wanted.size());
  succeeds<DataError>([&] {
    data::read_archive(bytes, "f", wanted, [&](size_t index, std::string_view piece) {
      num_bytes[index] += piece.size();
      require(num_bytes[index] <= kMaxBytes, "the limit holds");
    });
  });
}

void run_xz(std::string_view bytes) {
  constexpr uint64_t kMaxBytes = 1 << 20;
  succeeds<DataError>([&] {
    require(data::unpack_xz(bytes, "f", kMaxBytes).size() <= kMaxBytes, "the limit holds");
  });
}

}  // namespace

std::vector<FuzzTarget> parser_targets() {
  return {{"archive", run_archive},
          {"cifar", run_cifar},
          {"listops", run_listops},
          {"packed_index", run_packed_index},
          {"packed_weights", run_packed_weights},
          {"pathfinder_line", run_pathfinder_line},
          {"picture", run_picture},
          {"recipe", run_recipe},
          {"record", run_record, damage_json},
          {"safetensors", run_safetensors, damage_tensors},
          {"text", run_text},
          {"text_row", run_text_row, damage_lines},
          {"word_swap", run_word_swap},
          {"xz", run_xz}};
}

}  // namespace elliptical::test
