// SPDX-License-Identifier: MIT
#include "bench/onnxruntime_peer.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

extern char** environ;  // POSIX declares it nowhere

namespace elliptical::bench {
namespace {

namespace fs = std::filesystem;

std::string python() {
  const char* chosen = std::getenv("ELLIPTICAL_PYTHON");
  return chosen ? chosen : ELLIPTICAL_SOURCE_DIR "/.venv/bin/python";
}

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
    const int64_t N = problem.shape.N;
    const at::Tensor causal = at::full({1, 1, N, N}, kHidden).triu(1);
    mask = mask.defined() ? mask + causal : causal;
  }
  return mask;
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& command) {
  // A socket, not two pipes: writing to a child that is gone is then an error, not a signal.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("bench: no socket for a peer process");
  }
  socket_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
    pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
}

LineProcess::~LineProcess() {
  close(socket_);  // the child ends when its input does
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

std::string LineProcess::ask(const std::string& line) {
  const std::string request = line + "\n";
  for (size_t sent = 0; sent < request.size();) {
    const ssize_t count = send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return "";
    sent += static_cast<size_t>(count);
  }
  std::string answer;
  for (char c = 0; recv(socket_, &c, 1, 0) == 1;) {
    if (c == '\n') return answer;
    answer += c;
  }
  return "";
}

OnnxRuntimePeer::OnnxRuntimePeer(const Problem& problem, int num_threads) : problem_(problem) {
  std::string pattern = (fs::temp_directory_path() / "elliptical-bench-XXXXXX").string();
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

  child_ = std::make_unique<LineProcess>(std::vector<std::string>{
      python(), ELLIPTICAL_SOURCE_DIR "/bench/peers/onnxruntime_attention.py"});
  const nlohmann::json request = {
      {"open", {{"folder", folder_.string()}, {"inputs", inputs}, {"threads", num_threads}}}};
  const std::string answer = child_->ask(request.dump());
  if (answer.empty()) {
    refusal_ = "its process could not be started with " + python();
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
  const Case& c = problem_.shape;
  at::Tensor out = at::empty({c.B, c.H, c.N, c.D});
  std::ifstream file(folder_ / "out", std::ios::binary);
  file.read(static_cast<char*>(out.data_ptr()), static_cast<std::streamsize>(out.nbytes()));
  if (!file) throw std::runtime_error("bench: the ONNX Runtime process wrote no result");
  return {out, std::nullopt};
}

}  // namespace elliptical::bench
