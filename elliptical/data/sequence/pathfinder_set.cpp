// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/pathfinder_set.h"

#include "elliptical/data/sequence/encodings_impl.h"
#include "elliptical/data/sequence/generated_set_impl.h"

namespace elliptical::data {
namespace {

class GeneratedPathfinder : public GeneratedSet {
 public:
  GeneratedPathfinder(const std::string& name,
                      const PathfinderOptions& geometry,
                      Split split,
                      const OpenSequencesOptions& options)
      : GeneratedSet({.name = name,
                      .class_names = {"apart", "connected"},
                      .vocabulary = pixel_vocabulary(options.pixel_ids),
                      .max_length = geometry.side * geometry.side,
                      .side = geometry.side},
                     split,
                     options,
                     kPathfinderTrain,
                     kPathfinderEval,
                     "picture"),
        generator_(geometry) {}

  int64_t label(int64_t index) const override { return pathfinder_label(key(index)); }

 protected:
  SequenceExample read(int64_t index) const override {
    const PathfinderPicture picture = generator_.make(key(index));
    return {.ids = to_pixel_ids(picture.pixels, options().pixel_ids),
            .second_ids = {},
            .label = picture.label,
            .facts = {{"marker_1_y", picture.markers[0].y},
                      {"marker_1_x", picture.markers[0].x},
                      {"marker_2_y", picture.markers[1].y},
                      {"marker_2_x", picture.markers[1].x}}};
  }

 private:
  RandomKey key(int64_t index) const {
    return pathfinder_key(options().seed, generator_.options(), split(), index);
  }

  PathfinderGenerator generator_;
};

}  // namespace

RandomKey pathfinder_key(uint64_t seed,
                         const PathfinderOptions& options,
                         Split split,
                         int64_t index) {
  return RandomKey(seed)
      .derive("pathfinder")
      .derive(static_cast<uint64_t>(options.side))
      .derive(static_cast<uint64_t>(options.contour_length))
      .derive(to_string(split))
      .derive(static_cast<uint64_t>(index));
}

std::unique_ptr<SequenceSet> open_generated_pathfinder(const std::string& name,
                                                       Split split,
                                                       const OpenSequencesOptions& options) {
  PathfinderOptions geometry;
  if (name == "pathfinder-128") {
    geometry = pathfinder_128();
  } else if (name == "pathfinder-32/9") {
    geometry.contour_length = 9;
  } else if (name == "pathfinder-32/6") {
    geometry.contour_length = 6;
  } else if (name != "pathfinder-32") {
    return nullptr;
  }
  return std::make_unique<GeneratedPathfinder>(name, geometry, split, options);
}

}  // namespace elliptical::data
