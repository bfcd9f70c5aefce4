// SPDX-License-Identifier: MIT
//
// The program `elliptical`: a table of commands. Results go to stdout, everything else to stderr.
// Exit status: 0 done, 1 failed, 2 wrong usage, 3 set-up missing, 128 + signal interrupted.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>

#include "elliptical/base/errors.h"
#include "elliptical/base/memory.h"
#include "elliptical/base/names.h"
#include "elliptical/base/printable.h"
#include "elliptical/cli/commands.h"
#include "elliptical/cli/short_waits.h"
#include "elliptical/run/failure_text.h"

namespace elliptical::cli {
namespace {

constexpr std::array kCommands = {
    Command{"attack", "how much of a classifier's accuracy adversarial pictures leave", attack},
    Command{"bench", "our attention or training against peers on this machine", bench},
    Command{"compare", "train methods and controls with several seeds; what differs?", compare},
    Command{"config", "the effective recipe, what it costs and how long it takes here", config},
    Command{"data", "data sets: list, get, import, verify", data},
    Command{"demo", "softmax and elliptical on real text and pictures, compared", demo},
    Command{"eval", "measure a run, on clean or damaged data", eval},
    Command{"fork", "a new run from another run's weights, with other options", fork},
    Command{"generate", "go on with a text, word by word", generate},
    Command{"info", "CPU, kernel targets, torch, and the path each dtype takes", info},
    Command{"list", "what there is to choose from", list},
    Command{"report", "runs as one HTML file, with comparison, curves and heads", report},
    Command{"resume", "continue a run where it stopped", resume},
    Command{"train", "train what a recipe describes, in a new run folder", train},
};

void print_help(std::ostream& stream) {
  stream << "usage: elliptical [--debug] COMMAND [ARGUMENTS...]\n\n";
  for (const Command& command : kCommands) {
    stream << fmt::format("  {:<8} {}\n", command.name, command.description);
  }
  stream << "\n  elliptical COMMAND --help   what a command takes\n"
            "  elliptical --version        the version of the program\n"
            "  --debug                     where in torch an error came from\n";
}

int run(Arguments arguments) {
  if (arguments.empty()) {
    print_help(std::cerr);
    return 2;
  }
  const std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "--help") {
    print_help(std::cout);
    return 0;
  }
  if (name == "--version") {
    std::cout << "elliptical " ELLIPTICAL_VERSION "\n";
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (command.name == name) return command.function(arguments);
    names.emplace_back(command.name);
  }
  throw UsageError("command: " + unknown_name(name, names));
}

int run_and_report(Arguments arguments) {
  const bool debug = !arguments.empty() && arguments.front() == "--debug";
  if (debug) arguments.erase(arguments.begin());
  try {
    const int status = run(std::move(arguments));
    std::cout.flush();
    if (!std::cout) throw std::runtime_error("stdout: could not be written");
    return status;
  } catch (const std::exception& error) {
    // A line is one line, whatever the names in it hold; only torch's places in sources are many.
    const std::string text =
        printable(run::failure_text(error, debug), debug ? LineEnds::kKeep : LineEnds::kEscape);
    std::cerr << "elliptical: " << text << "\n";
    return exit_status(error);
  }
}

/// Descriptors 0 to 2 that were closed by whoever started the program lead nowhere. Otherwise the
/// next files that are opened would get their numbers, and progress would be written into records.
void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is given out first: the one that is missing.
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) _exit(1);
  }
}

std::terminate_handler other_terminate_handler = nullptr;

/// An allocation that fails where nobody can catch it ends with a sentence, too: in the
/// constructors of torch's libraries, which run before main.
[[noreturn]] void terminate_in_words() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kSentence =
        "elliptical: memory: more was asked for than could be had (close other programs; "
        "raise ulimit -v where it is set)\n";
    [[maybe_unused]] const ssize_t ignored =
        write(STDERR_FILENO, kSentence.data(), kSentence.size());
    _exit(1);
  } catch (...) {
    // Anything else is a fault of ours, for the handler of the library.
  }
  other_terminate_handler();
  std::abort();
}

void prepare(int /*argc*/, char** argv, char** envp) {
  start_again_with_short_waits(argv, envp);
  other_terminate_handler = std::set_terminate(terminate_in_words);
}

/// Runs before the constructors of every library.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const before_all)(int, char**, char**) = prepare;

}  // namespace
}  // namespace elliptical::cli

int main(int argc, char** argv) {
  elliptical::cli::occupy_standard_descriptors();
  // A reader that went away and a file that may not grow are failed writes, not deaths.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  elliptical::keep_freed_memory();
  return elliptical::cli::run_and_report({argv + 1, argv + argc});
}
