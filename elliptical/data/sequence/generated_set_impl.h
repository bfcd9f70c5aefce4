// SPDX-License-Identifier: MIT
//
// What sets have in common whose examples are functions of seed, split and number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

class GeneratedSet : public SequenceSet {
 public:
  int64_t size() const override {
    const bool is_train = split_ == Split::kTrain;
    const int64_t wanted = is_train ? options_.train_examples : options_.eval_examples;
    if (wanted > 0) return wanted;
    return is_train ? train_size_ : eval_size_;
  }
  std::string origin(int64_t index) const override {
    return name() + ", " + to_string(split_) + " " + what_ + " " + std::to_string(index);
  }
  std::map<std::string, std::string> fingerprint() const override {
    return {{to_string(split_), "version 1, seed " + std::to_string(options_.seed) + ", " + name() +
                                    ", " + std::to_string(size()) + " examples"}};
  }

 protected:
  /// The sizes are for options that say nothing; `what` an example is: "picture".
  GeneratedSet(SequenceForm form,
               Split split,
               const OpenSequencesOptions& options,
               int64_t train_size,
               int64_t eval_size,
               const char* what)
      : SequenceSet(std::move(form)),
        split_(split),
        options_(options),
        train_size_(train_size),
        eval_size_(eval_size),
        what_(what) {}

  Split split() const { return split_; }
  const OpenSequencesOptions& options() const { return options_; }

 private:
  Split split_;
  OpenSequencesOptions options_;
  int64_t train_size_, eval_size_;
  const char* what_;
};

}  // namespace elliptical::data
