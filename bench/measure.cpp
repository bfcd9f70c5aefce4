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

Timing summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t middle = seconds.size() / 2;
  const double median =
      seconds.size() % 2 ? seconds[middle] : 0.5 * (seconds[middle - 1] + seconds[middle]);
  return {seconds.front(), median, static_cast<int>(seconds.size())};
}

/// The largest error; throws when one is above its limit.
double checked_error(Contestant& contestant, const Problem& problem, Pass pass, bool is_peer) {
  double worst = 0;
  for (const TensorError& e : errors(problem, contestant.results(pass), contestant.with_metric())) {
    const double limit = is_peer ? kPeerErrorLimit : e.limit;
    if (!(e.error <= limit)) {
      throw std::runtime_error(fmt::format(
          "bench: {} of {} on {} ({}) must be within {:.1e} of the double result, is {:.1e}",
          e.tensor, contestant.name(), problem.shape.name(), name(pass), limit, e.error));
    }
    worst = std::max(worst, e.error);
  }
  return worst;
}

}  // namespace

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
  for (auto& times : seconds) timings.push_back(summary(std::move(times)));
  return timings;
}

std::vector<Comparison> compare(const Case& shape,
                                Pass pass,
                                const std::vector<std::string>& peers,
                                int num_threads,
                                const MeasureOptions& options) {
  const Problem problem(shape);
  const std::unique_ptr<Contestant> ours = make_ours(problem);
  const double ours_error = checked_error(*ours, problem, pass, /*is_peer=*/false);

  std::vector<Comparison> comparisons;
  std::vector<std::unique_ptr<Contestant>> rivals;
  std::vector<Contestant*> runners = {ours.get()};
  for (const std::string& peer : peers) {
    rivals.push_back(make_peer(peer, problem, num_threads));
    Contestant& rival = *rivals.back();
    Comparison& row =
        comparisons.emplace_back(Comparison{.shape = shape, .pass = pass, .peer = peer});
    row.skipped = rival.refusal(pass);
    if (!row.skipped.empty()) continue;
    row.ours_error = ours_error;
    row.theirs_error = checked_error(rival, problem, pass, /*is_peer=*/true);
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
