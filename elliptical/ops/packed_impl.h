// SPDX-License-Identifier: MIT
//
// The dispatcher knows flat lists of arguments, functions of ours take one struct. `Packed` is a
// function of the flat list that makes the struct; `unpack` calls a function of the flat list with
// the fields, which a struct names once, in flat().
#pragma once

#include <tuple>
#include <utility>

namespace elliptical::ops {

template <class Signature, class Args, auto Function>
struct Packed;

template <class Result, class... Flat, class Args, auto Function>
struct Packed<Result(Flat...), Args, Function> {
  static Result call(Flat... flat) { return Function(Args{std::forward<Flat>(flat)...}); }
};

template <class Args, class Call>
auto unpack(const Args& args, Call&& call) {
  return std::apply(std::forward<Call>(call), args.flat());
}

}  // namespace elliptical::ops
