// SPDX-License-Identifier: MIT
//
// The commands of the program: one function each, in a file of its own name. A command gets the
// words after its name, writes results to stdout and everything else to stderr, and returns the
// exit status (0 done, 1 failed). It throws UsageError when it was called wrongly.
#pragma once

#include <string>
#include <vector>

namespace elliptical::cli {

using Arguments = std::vector<std::string>;

struct Command {
  const char* name;
  const char* description;
  int (*function)(const Arguments& arguments);
};

int attack(const Arguments& arguments);
int bench(const Arguments& arguments);
int compare(const Arguments& arguments);
int config(const Arguments& arguments);
int data(const Arguments& arguments);
int demo(const Arguments& arguments);
int eval(const Arguments& arguments);
int fork(const Arguments& arguments);
int generate(const Arguments& arguments);
int info(const Arguments& arguments);
int list(const Arguments& arguments);
int report(const Arguments& arguments);
int resume(const Arguments& arguments);
int train(const Arguments& arguments);

}  // namespace elliptical::cli
