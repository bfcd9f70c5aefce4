// SPDX-License-Identifier: MIT
#include "bench/onnxruntime_peer.h"

#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace elliptical::bench {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kFloat).contiguous();
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(values.data_ptr()),
             static_cast<std::streamsize>(values.nbytes()));
}

/// Everything that hides keys as one additive mask, broadcastable to (B, H, N, N); undefined: none.
at::Tensor additive_mask(const Problem& problem) {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  at::Tensor mask;
  if (problem.additive_mask) mask = *problem.additive_mask;
  if (problem.key_padding_mask) {
    mask = at::zeros(problem.key_padding_mask->sizes())
               .masked_fill(~*problem.key_padding_mask, kHidden);
  }
  if (problem.shape.is_causal) {
    const int64_t N = problem.shape.sizes.N;
    const at::Tensor causal = at::full({1, 1, N, N}, kHidden).triu(1);
    mask = mask.defined() ? mask + causal : causal;
  }
  return mask;
}

}  // namespace

OnnxRuntimePeer::OnnxRuntimePeer(const Problem& problem, int num_threads) : problem_(problem) {
  std::string pattern =
      fs::absolute(fs::temp_directory_path() / "elliptical-bench-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("bench: no temporary folder " + pattern);
  folder_ = pattern;

  nlohmann::json inputs = nlohmann::json::object();
  const auto add = [&](const char* name, const at::Tensor& tensor) {
    write(folder_ / name, tensor);
    inputs[name] = tensor.sizes().vec();
  };
  add("q", problem.q);
  add("k", problem.k);
  add("v", problem.v);
  add("metric", problem.metric);
  const at::Tensor mask = additive_mask(problem);
  if (mask.defined()) add("mask", mask);

  child_ = std::make_unique<LineProcess>("onnxruntime_attention.py");
  const nlohmann::json request = {
      {"open", {{"folder", folder_.string()}, {"inputs", inputs}, {"threads", num_threads}}}};
  const std::string answer = child_->ask(request.dump());
  if (answer.empty()) {
    refusal_ = "its process could not be started with " + peer_python();
  } else {
    refusal_ = nlohmann::json::parse(answer).value("error", "");
  }
}

OnnxRuntimePeer::~OnnxRuntimePeer() {
  child_.reset();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string OnnxRuntimePeer::refusal(Pass pass) const {
  return pass == Pass::kForward ? refusal_ : "ONNX Runtime has no backward pass";
}

double OnnxRuntimePeer::time(Pass) {
  const std::string answer = child_->ask(R"({"run": true})");
  if (answer.empty()) throw std::runtime_error("bench: the ONNX Runtime process died");
  return nlohmann::json::parse(answer).at("seconds").get<double>();
}

Results OnnxRuntimePeer::results(Pass pass) {
  time(pass);
  child_->ask(R"({"write": "out"})");
  at::Tensor out = at::empty(problem_.q.sizes());
  std::ifstream file(folder_ / "out", std::ios::binary);
  file.read(static_cast<char*>(out.data_ptr()), static_cast<std::streamsize>(out.nbytes()));
  if (!file) throw std::runtime_error("bench: the ONNX Runtime process wrote no result");
  return {out, std::nullopt};
}

}  // namespace elliptical::bench
