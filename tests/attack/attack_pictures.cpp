// SPDX-License-Identifier: MIT
//
// attack_pictures IN OUT ATTACK EPS [KEY=VALUE...]: attacks the pictures of a safetensors file.
// IN holds x (B, 3, H, W) in [0, 1], y (B), and a net: a convolution of stride 2 (conv.weight,
// conv.bias), a relu, a layer (fc.weight, fc.bias). OUT gets x. For test_attack_peer.py.
#include <torch/torch.h>

#include <iostream>

#include "elliptical/attack/attack.h"
#include "elliptical/base/config.h"
#include "elliptical/run/attack_plan.h"
#include "elliptical/store/tensor_files.h"

int main(int argc, char** argv) try {
  using namespace elliptical;
  const std::vector<std::string> words(argv + 1, argv + argc);
  TORCH_CHECK(words.size() >= 4, "usage: attack_pictures IN OUT ATTACK EPS [KEY=VALUE...]");
  auto in = store::read_tensors(words[0]);
  const attack::LogitsFn logits = [&](const at::Tensor& x) {
    const at::Tensor hidden =
        at::conv2d((x - 0.5) / 0.25, in.at("conv.weight"), in.at("conv.bias"), 2, 1).relu();
    return at::linear(hidden.flatten(1), in.at("fc.weight"), in.at("fc.bias"));
  };
  ChosenOptions chosen(attack::attack_choices(), words[2]);
  apply_overrides({words.begin() + 4, words.end()}, fields_of(chosen));
  const at::Tensor& x = in.at("x");
  const at::Tensor adversarial = attack::make_attack(chosen)->perturb(
      logits, {.x = x, .y = in.at("y"), .keys = attack::picture_keys(RandomKey(1), 0, x.size(0))},
      {.eps = run::parse_eps(words[3]),
       .low = at::scalar_tensor(0.0),
       .high = at::scalar_tensor(1.0)});
  store::write_tensors(words[1], {{"x", adversarial}});
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
