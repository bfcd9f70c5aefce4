// SPDX-License-Identifier: MIT
#include "elliptical/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace elliptical::report {
namespace {

constexpr double kCovered = 0.95;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// One cell of the table that is there, with its residual so far.
struct Entry {
  size_t row, column;
  double residual;
};

/// Subtracts from each residual the mean of its row or column; returns the largest change.
double subtract_means(std::vector<Entry>& cells, size_t Entry::* group, size_t num_groups) {
  std::vector<double> sums(num_groups, 0.0), counts(num_groups, 0.0);
  for (const Entry& cell : cells) {
    sums[cell.*group] += cell.residual;
    counts[cell.*group] += 1;
  }
  double largest = 0;
  for (Entry& cell : cells) {
    const double change = sums[cell.*group] / counts[cell.*group];
    cell.residual -= change;
    largest = std::max(largest, std::abs(change));
  }
  return largest;
}

/// Rows and columns are joined by the cells that are there; how many separate pieces they form.
int64_t num_pieces(const std::vector<Entry>& cells, size_t num_rows, size_t num_columns) {
  std::vector<size_t> piece(num_rows + num_columns);
  std::iota(piece.begin(), piece.end(), size_t{0});
  for (const Entry& cell : cells) {
    const size_t from = piece[cell.row], to = piece[num_rows + cell.column];
    std::replace(piece.begin(), piece.end(), from, to);
  }
  std::sort(piece.begin(), piece.end());
  return std::unique(piece.begin(), piece.end()) - piece.begin();
}

}  // namespace

double draw_student_t(RandomStream& random, double degrees) {
  // A point in the unit disk gives one draw (Bailey 1994).
  while (true) {
    const double u = 2 * random.uniform() - 1, v = 2 * random.uniform() - 1;
    const double w = u * u + v * v;
    if (w > 1 || w == 0) continue;
    return u * std::sqrt(degrees * (std::pow(w, -2 / degrees) - 1) / w);
  }
}

double quantile(const std::vector<double>& sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double standard_deviation(const std::vector<double>& values) {
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<TrainingNoise> training_noise(
    const std::vector<std::vector<std::optional<double>>>& table) {
  if (table.empty()) return std::nullopt;
  const size_t num_rows = table.size(), num_columns = table.front().size();
  std::vector<Entry> cells;
  for (size_t row = 0; row < num_rows; ++row) {
    for (size_t column = 0; column < num_columns; ++column) {
      if (table[row][column]) cells.push_back({row, column, *table[row][column]});
    }
  }
  // Each row and each column has a mean; in every piece one of them follows from the others. Empty
  // rows and columns are pieces of their own and so count for nothing.
  const auto num_means = static_cast<int64_t>(num_rows + num_columns);
  const int64_t degrees =
      static_cast<int64_t>(cells.size()) - (num_means - num_pieces(cells, num_rows, num_columns));
  if (degrees <= 0) return std::nullopt;
  // Alternating projections: at once exact for a whole table, quickly for one with gaps.
  constexpr int kMaxRounds = 10000;
  for (int round = 0; round < kMaxRounds; ++round) {
    const double change = std::max(subtract_means(cells, &Entry::row, num_rows),
                                   subtract_means(cells, &Entry::column, num_columns));
    if (change < 1e-14) break;
  }
  double squares = 0;
  for (const Entry& cell : cells) squares += cell.residual * cell.residual;
  return TrainingNoise{std::sqrt(squares / static_cast<double>(degrees)), degrees};
}

DataParts parts_of_mean(const std::vector<BlockDifference>& blocks) {
  const auto difference = [blocks](const std::vector<size_t>& drawn) -> std::optional<double> {
    double sum = 0, weight = 0;
    for (const size_t place : drawn) {
      sum += blocks[place].weight * blocks[place].value;
      weight += blocks[place].weight;
    }
    return weight > 0 ? std::optional(sum / weight) : std::nullopt;
  };
  return {.count = blocks.size(), .difference = difference};
}

Interval difference_interval(double difference,
                             int64_t num_seeds,
                             const TrainingNoise& noise,
                             const DataParts& parts,
                             int64_t num_replicates,
                             RandomKey key) {
  std::vector<size_t> drawn(parts.count);
  std::iota(drawn.begin(), drawn.end(), size_t{0});
  const std::optional<double> center = parts.count > 0 ? parts.difference(drawn) : std::nullopt;
  const double scale = noise.deviation * std::sqrt(2.0 / static_cast<double>(num_seeds));

  RandomStream random(key);
  std::vector<double> replicates(static_cast<size_t>(num_replicates));
  for (double& replicate : replicates) {
    replicate = difference + scale * draw_student_t(random, static_cast<double>(noise.degrees));
    for (size_t& place : drawn) place = random.below(parts.count);
    if (!center) continue;
    if (const auto other = parts.difference(drawn)) replicate += *other - *center;
  }
  std::sort(replicates.begin(), replicates.end());
  return {quantile(replicates, (1 - kCovered) / 2), quantile(replicates, (1 + kCovered) / 2)};
}

}  // namespace elliptical::report
