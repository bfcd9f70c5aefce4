// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/grey_pictures.h"

#include "elliptical/base/errors.h"
#include "elliptical/data/sequence/encodings_impl.h"

namespace elliptical::data {
namespace {

class GreyPictures : public SequenceSet {
 public:
  GreyPictures(std::unique_ptr<ImageSet> pictures, Split split, const OpenSequencesOptions& options)
      : SequenceSet(SequenceForm{.name = pictures->name(),
                                 .class_names = pictures->class_names(),
                                 .vocabulary = pixel_vocabulary(options.pixel_ids),
                                 .max_length = options.side * options.side,
                                 .side = options.side}),
        pictures_(std::move(pictures)),
        split_(split),
        pixel_ids_(options.pixel_ids) {}

  int64_t size() const override { return pictures_->size(); }
  int64_t label(int64_t index) const override { return pictures_->label(index); }
  std::string origin(int64_t index) const override { return pictures_->origin(index); }
  std::map<std::string, std::string> fingerprint() const override {
    return pictures_->fingerprint();
  }

 protected:
  SequenceExample read(int64_t index) const override {
    const Image picture = pictures_->get(index);
    require_side(picture, form().side, origin(index));
    return {.ids = to_pixel_ids(luma_values(picture), pixel_ids_),
            .second_ids = {},
            .label = label(index),
            .facts = {}};
  }

 private:
  std::unique_ptr<ImageSet> pictures_;
  Split split_;
  PixelIds pixel_ids_;
};

}  // namespace

std::vector<uint8_t> luma_values(const Image& image) {
  std::vector<uint8_t> values;
  values.reserve(image.pixels.size() / Image::kChannels);
  for (size_t i = 0; i < image.pixels.size(); i += Image::kChannels) {
    const double luma =
        0.2989 * image.pixels[i] + 0.5870 * image.pixels[i + 1] + 0.1140 * image.pixels[i + 2];
    values.push_back(static_cast<uint8_t>(255.5 * luma / 255));
  }
  return values;
}

std::vector<uint8_t> grey_values(const Image& image) {
  std::vector<uint8_t> values;
  values.reserve(image.pixels.size() / Image::kChannels);
  for (size_t i = 0; i < image.pixels.size(); i += Image::kChannels) {
    values.push_back(image.pixels[i]);
  }
  return values;
}

void require_side(const Image& image, int64_t side, const std::string& name) {
  if (image.width == side && image.height == side) return;
  throw DataError(name + ": must be " + std::to_string(side) + " x " + std::to_string(side) +
                  " pixels, is " + std::to_string(image.width) + " x " +
                  std::to_string(image.height));
}

std::unique_ptr<SequenceSet> open_grey_pictures(std::unique_ptr<ImageSet> pictures,
                                                Split split,
                                                const OpenSequencesOptions& options) {
  return std::make_unique<GreyPictures>(std::move(pictures), split, options);
}

}  // namespace elliptical::data
