#include "attention/ranks/rank_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "attention/core/step.h"
#include "attention/make_policy.h"
#include "base/machine_memory.h"
#include "dist/link_rate.h"

namespace godwit {
namespace {

// Appends `rows` tokens, all zeros, to a text of one layer, with or without queries.
void Read(const Exec& exec, const AttentionGeometry& geometry, TextCache& text, int64_t rows,
          bool attends) {
  Workspace::Scope scope(exec.workspace);
  const ops::AttentionShape& shape = geometry.shape;
  const auto zeros = [&](int64_t cols) {
    const MatrixView<float> matrix = exec.workspace.Matrix<float>(rows, cols);
    for (int64_t row = 0; row < rows; ++row) std::ranges::fill(matrix.RowSpan(row), 0.0f);
    return matrix;
  };
  const std::vector<int32_t> tokens(rows);
  const Segment segment{.tokens = tokens, .text = &text};
  AttentionInput input{.q = {}, .k = zeros(shape.kv_heads * shape.head_dim), .v = {}};
  if (!shape.values_from) input.v = zeros(shape.kv_heads * shape.head_dim);
  MatrixView<float> out;
  if (attends) {
    input.q = zeros(shape.heads * shape.head_dim);
    out = zeros(shape.heads * shape.value_dim());
  }
  AttentionStep step(exec, {&segment, 1});
  step.Attend(0, input, out);
  step.End();
}

double KeySeconds(const Exec& exec, AttentionGeometry geometry, DType kv_type) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kKeys = 1024, kRows = 256, kTimes = 3;
  geometry.layers = 1;
  geometry.windows = {0};
  geometry.learned_positions = 0;  // their number limits a text but not the time of a key
  const auto text =
      MakeTextCache(geometry, {.kv_type = kv_type, .context = kKeys + kTimes * kRows});
  Read(exec, geometry, *text, kKeys, /*attends=*/false);
  double least = INFINITY;
  for (int64_t time = 0; time < kTimes; ++time) {
    const double keys = static_cast<double>(text->length()) + kRows / 2.0;
    const auto begin = Clock::now();
    Read(exec, geometry, *text, kRows, /*attends=*/true);
    const std::chrono::duration<double> took = Clock::now() - begin;
    least = std::min(least, took.count() / (keys * kRows));
  }
  return least;
}

constexpr double kSlow = 3;  // times as slow as the faster half of the others

}  // namespace

std::vector<RankSpeed> MeasureRanks(Communicator& ranks, const Exec& exec,
                                    const AttentionGeometry& geometry, DType kv_type,
                                    int64_t kv_bytes) {
  if (ranks.size() == 1) return {};
  std::vector<double> links = MeasureLinks(ranks);
  links.erase(links.begin() + ranks.rank());
  const auto [worst, best] = std::ranges::minmax(links);
  ranks.Barrier(nullptr);  // ranks that share cores are measured while all of them compute
  const RankSpeed mine{.best_link = best,
                       .worst_link = worst,
                       .key_seconds = KeySeconds(exec, geometry, kv_type),
                       .kv_bytes = kv_bytes};
  std::vector<RankSpeed> all(ranks.size());
  ranks.AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                  nullptr);
  return all;
}

std::vector<RankSpeed> SpeedsOfGroups(std::span<const RankSpeed> speeds, int64_t group) {
  std::vector<RankSpeed> slowest;
  if (std::ssize(speeds) <= group) return slowest;
  for (size_t first = 0; first < speeds.size(); first += static_cast<size_t>(group)) {
    RankSpeed worst = speeds[first];
    for (const RankSpeed& one : speeds.subspan(first, static_cast<size_t>(group))) {
      worst.best_link = std::min(worst.best_link, one.best_link);
      worst.worst_link = std::min(worst.worst_link, one.worst_link);
      worst.key_seconds = std::max(worst.key_seconds, one.key_seconds);
      worst.kv_bytes = std::min(worst.kv_bytes, one.kv_bytes);
    }
    slowest.push_back(worst);
  }
  return slowest;
}

std::vector<std::string> SlowRanks(const Communicator& ranks, std::span<const RankSpeed> speeds) {
  std::vector<std::string> slow;
  for (size_t rank = 0; rank < speeds.size(); ++rank) {
    // The rank's time as a multiple of that of the faster half of the others.
    const auto slower = [&](const auto& seconds) {
      std::vector<double> others;
      for (size_t other = 0; other < speeds.size(); ++other) {
        if (other != rank) others.push_back(seconds(speeds[other]));
      }
      const auto middle = others.begin() + (std::ssize(others) - 1) / 2;
      std::ranges::nth_element(others, middle);
      return seconds(speeds[rank]) / *middle;
    };
    const auto tell = [&](std::string_view what, double times) {
      if (times < kSlow) return;
      slow.push_back(
          fmt::format("{} {} takes {:.0f} times as long as half of the others or more, and all "
                      "ranks wait for it",
                      ranks.NameOf(static_cast<int>(rank)), what, times));
    };
    const std::string link = fmt::format("is reached with {}/s at best, which",
                                         FormatBytes(static_cast<int64_t>(speeds[rank].best_link)));
    tell(link, slower([](const RankSpeed& one) { return 1 / one.best_link; }));
    tell("is slow: its attention", slower([](const RankSpeed& one) { return one.key_seconds; }));
  }
  return slow;
}

}  // namespace godwit
