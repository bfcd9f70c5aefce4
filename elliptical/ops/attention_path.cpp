// SPDX-License-Identifier: MIT
//
// Which path an attention call takes. It depends on dtype, device and what must be differentiated,
// never on values, so that traced calls take the path that real ones take.
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <ostream>
#include <sstream>
#include <string_view>

#include "elliptical/ops/attention_impl.h"
#include "elliptical/ops/transforms_impl.h"

namespace elliptical::ops {
namespace {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// True when the environment forces the composite path. Read at every call: a test or a user in a
/// debugger may change it.
bool composite_is_forced() {
  const char* value = std::getenv("ELLIPTICAL_ATTENTION");
  const std::string_view name = value ? value : "";
  TORCH_CHECK_VALUE(name.empty() || name == "auto" || name == "composite",
                    "attention: ELLIPTICAL_ATTENTION must be auto or composite, got ", name);
  return name == "composite";
}

constexpr const char* kForced = "ELLIPTICAL_ATTENTION=composite is set";

/// Why the fused path can not take this call; empty when it can.
std::string fused_refusal(const AttentionArgs& args) {
  if (composite_is_forced()) return kForced;
  if (!args.q.device().is_cpu())
    return text("q is on ", args.q.device(), ", the kernel runs on cpu");
  if (args.q.scalar_type() != at::kFloat)
    return text("q is ", args.q.scalar_type(), ", the kernel takes Float");
  if (args.attn_mask && args.attn_mask->requires_grad() && at::GradMode::is_enabled())
    return "attn_mask requires grad, the kernel gives no gradient of the mask";
  if (functional_transform_runs())
    return "a torch.func transform runs, the kernel has no rule for it";
  if (forward_mode_runs())
    return "forward-mode differentiation runs, the kernel has no rule for it";
  return "";
}

/// Why torch's SDPA can not take this call; empty when it can.
std::string sdpa_refusal(const AttentionArgs& args) {
  if (composite_is_forced()) return kForced;
  if (args.q.device().is_cpu()) return "q is on cpu, SDPA is used on other devices only";
  if (args.need_lse) return "the logsumexp is asked for, SDPA does not return it";
  if (args.dropout_p > 0.0) return "dropout_p > 0, SDPA can not replay dropout from a seed";
  return "";
}

}  // namespace

bool fused_applies(const AttentionArgs& args) { return fused_refusal(args).empty(); }
bool sdpa_applies(const AttentionArgs& args) { return sdpa_refusal(args).empty(); }

std::ostream& operator<<(std::ostream& stream, const Explanation& explanation) {
  stream << explanation.path;
  for (const auto& [path, reason] : explanation.refused) {
    stream << "\n  not " << path << ": " << reason;
  }
  return stream;
}

Explanation choose_path(const AttentionArgs& args) {
  Explanation result;
  const auto offer = [&](const char* path, std::string refusal) {
    if (!result.path.empty()) refusal = text("the ", result.path, " path comes first");
    if (refusal.empty()) {
      result.path = path;
    } else {
      result.refused.push_back({path, std::move(refusal)});
    }
  };
  offer("fused", fused_refusal(args));
  offer("sdpa", sdpa_refusal(args));
  offer("composite", "");
  return result;
}

}  // namespace elliptical::ops
