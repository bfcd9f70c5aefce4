// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include "elliptical/base/name_table.h"
#include "elliptical/models/fan.h"
#include "elliptical/models/image_model.h"
#include "elliptical/models/rvt.h"
#include "elliptical/models/vit.h"

namespace elliptical::models {
namespace {

template <class Model, class ModelOptions>
std::shared_ptr<ImageModel> make(const Options& options, int64_t num_classes) {
  return std::make_shared<Model>(dynamic_cast<const ModelOptions&>(options), num_classes);
}

}  // namespace

const std::vector<ImageModelEntry>& image_model_table() {
  static const std::vector<ImageModelEntry> table{
      {.name = "fan",
       .description = "fully attentional network: attention between tokens and between channels",
       .can = {},
       .make_options = make_options<FanOptions>,
       .make = make<Fan, FanOptions>},
      {.name = "rvt",
       .description = "robust vision transformer: convolutions around attention, no class token",
       .can = {},
       .make_options = make_options<RvtOptions>,
       .make = make<Rvt, RvtOptions>},
      {.name = "vit",
       .description = "vision transformer on patches of pixels (DeiT), plain or distilled",
       .can = {.distils = true},
       .make_options = make_options<VitOptions>,
       .make = make<Vit, VitOptions>},
  };
  return table;
}

const std::vector<OptionsEntry>& image_model_choices() {
  static const std::vector<OptionsEntry> choices = choices_of(image_model_table());
  return choices;
}

std::shared_ptr<ImageModel> make_image_model(const ChosenOptions& chosen, int64_t num_classes) {
  const ImageModelEntry* entry = find_entry(image_model_table(), chosen.name());
  TORCH_CHECK(entry != nullptr, "models: no model is called \"", chosen.name(), "\"");
  return entry->make(chosen.get<Options>(), num_classes);
}

}  // namespace elliptical::models
