// SPDX-License-Identifier: MIT
//
// The dispatcher knows flat lists of arguments, functions of ours take one struct. `FromFlat` is a
// function of the flat list that makes the struct; `call_flat` calls a function of the flat list
// with the fields, which a struct names once, in flat().
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>
#include <utility>

namespace elliptical::ops {

using OptionalTensor = std::optional<at::Tensor>;

template <class Signature, class Args, auto Function>
struct FromFlat;

template <class Result, class... Flat, class Args, auto Function>
struct FromFlat<Result(Flat...), Args, Function> {
  static Result call(Flat... flat) { return Function(Args{std::forward<Flat>(flat)...}); }
};

template <class Args, class Call>
auto call_flat(const Args& args, Call&& call) {
  return std::apply(std::forward<Call>(call), args.flat());
}

}  // namespace elliptical::ops
