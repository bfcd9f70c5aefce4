// SPDX-License-Identifier: MIT
#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace elliptical::bench {
namespace {

constexpr int kWarmUpRounds = 2;

/// A peer only has to compute the same function; how exactly is its own business.
constexpr double kPeerErrorLimit = 1e-3;

double worst(const std::vector<TensorError>& found) {
  double error = 0;
  for (const TensorError& e : found) error = std::max(error, e.error);
  return error;
}

/// "out: error 2.0e-06, may be 8.0e-07", for each tensor above its limit. NaN is above.
std::string describe_excess(const std::vector<TensorError>& found) {
  std::string text;
  for (const TensorError& e : found) {
    if (e.error <= e.limit) continue;
    text += fmt::format("{}{}: error {:.1e}, may be {:.1e}", text.empty() ? "" : "; ", e.tensor,
                        e.error, e.limit);
  }
  return text;
}

}  // namespace

Timing summarize(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t middle = seconds.size() / 2;
  const double median =
      seconds.size() % 2 ? seconds[middle] : 0.5 * (seconds[middle - 1] + seconds[middle]);
  return {seconds.front(), median, static_cast<int>(seconds.size())};
}

std::vector<Timing> take_turns(size_t count,
                               const Turns& turns,
                               const std::function<double(size_t)>& seconds_of) {
  const int num_rounds = turns.warm_up + turns.repeats;
  const auto show = [&](int round) {
    if (!turns.progress) return;
    turns.progress(static_cast<size_t>(round), static_cast<size_t>(num_rounds), turns.what);
  };
  std::vector<std::vector<double>> seconds(count);
  for (int round = 0; round < num_rounds; ++round) {
    show(round);
    for (size_t i = 0; i < count; ++i) {
      const double time = seconds_of(i);
      if (round >= turns.warm_up) seconds[i].push_back(time);
    }
  }
  show(num_rounds);
  std::vector<Timing> timings;
  for (std::vector<double>& each : seconds) timings.push_back(summarize(std::move(each)));
  return timings;
}

std::vector<Timing> measure(const std::vector<Contestant*>& contestants,
                            Pass pass,
                            const MeasureOptions& options) {
  std::vector<std::vector<double>> seconds(contestants.size());
  for (int round = 0; round < kWarmUpRounds; ++round) {
    for (Contestant* contestant : contestants) contestant->time(pass);
  }
  double total = 0;
  for (int round = 0; round < options.max_repeats; ++round) {
    if (round >= options.repeats && total >= options.min_time) break;
    for (size_t i = 0; i < contestants.size(); ++i) {
      seconds[i].push_back(contestants[i]->time(pass));
      total += seconds[i].back();
    }
  }
  std::vector<Timing> timings;
  for (auto& times : seconds) timings.push_back(summarize(std::move(times)));
  return timings;
}

std::vector<Comparison> compare(const TimedCase& timed,
                                Pass pass,
                                const std::vector<std::string>& peers,
                                int num_threads,
                                const MeasureOptions& options) {
  const Problem problem(timed.shape);
  const std::unique_ptr<Contestant> ours = make_ours(problem);
  const std::vector<TensorError> ours_errors =
      errors(problem, ours->results(pass), ours->with_metric());

  std::vector<Comparison> comparisons;
  std::vector<std::unique_ptr<Contestant>> rivals;
  std::vector<Contestant*> runners = {ours.get()};
  for (const std::string& peer : peers) {
    rivals.push_back(make_peer(peer, problem, num_threads));
    Contestant& rival = *rivals.back();
    Comparison& row =
        comparisons.emplace_back(Comparison{.timed = timed, .pass = pass, .peer = peer});
    row.skipped = rival.refusal(pass);
    if (!row.skipped.empty()) continue;
    row.ours_error = worst(ours_errors);
    row.inexact = describe_excess(ours_errors);
    row.theirs_error = worst(errors(problem, rival.results(pass), rival.with_metric()));
    if (!(row.theirs_error <= kPeerErrorLimit)) {
      throw std::runtime_error(
          fmt::format("bench: {} on {} ({}) must be within {:.0e} of the double result, is {:.1e}",
                      peer, timed.name(), name(pass), kPeerErrorLimit, row.theirs_error));
    }
    runners.push_back(&rival);
  }
  const std::vector<Timing> timings = measure(runners, pass, options);
  size_t runner = 0;
  for (Comparison& row : comparisons) {
    if (!row.skipped.empty()) continue;
    row.ours = timings[0];
    row.theirs = timings[++runner];
  }
  return comparisons;
}

}  // namespace elliptical::bench
