// SPDX-License-Identifier: MIT
//
// The loop of `attack`: for each batch of an evaluation set and each case of a plan, clean logits,
// adversarial pictures, their logits, counts. Random numbers of a picture are a function of the
// seed and of the picture's number in the set, so batches, threads and interruptions change
// nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "elliptical/run/attack_plan.h"
#include "elliptical/run/evaluate.h"
#include "elliptical/tasks/task.h"

namespace elliptical::run {

struct AttackRequest {
  tasks::Task& task;
  Options& eval_options;  ///< the task's, of undamaged or damaged data
  const AttackPlan& plan;
  Labels labels;                ///< of every record
  std::filesystem::path state;  ///< finished batches; the records of a run that stopped and went on
                                ///< are those of one that never stopped
  std::string program;          ///< name and version: another one starts over
  LoopHooks hooks;
  /// If given, of a plan with one case: clean, adversarial, labels, pictures (their numbers in the
  /// data set), clean_logits, adversarial_logits. Pictures are pixels in the strict profile,
  /// normalized in the published one. No finished batch is used.
  tasks::Dump* dump = nullptr;
  std::vector<std::string>* class_names = nullptr;  ///< if given, what the data call their labels
  /// If given, the first pictures of one case are left there (attack_pictures.h). Batches of that
  /// case are attacked again where they are finished and the file is missing or of another case;
  /// what is known about them stays.
  std::filesystem::path pictures = {};
};

/// Throws UsageError where a task has no pictures, Interrupted after a signal. The model is left in
/// the mode in which it was found, its parameters with the gradients they had.
std::vector<Record> evaluate_attacks(const AttackRequest& request);

}  // namespace elliptical::run
