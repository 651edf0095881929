#include "ops/moe.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "ops/fill_rows.h"
#include "ops/linear.h"

namespace godwit::ops {
namespace {

constexpr int64_t kMaxOfGroup = 2;

// One token's way to one expert.
struct Route {
  int64_t row;  // of the token among all rows, sorted by expert
  int32_t expert;
  float share;
};

// Sets chosen(0) to chosen(count - 1) to the places of the highest values, best first. Comparisons
// with NaN are false, so the places differ whatever the values are.
template <typename Chosen>
void ChooseHighest(std::span<const float> values, size_t count, const Chosen& chosen) {
  const auto value_of = [&](int32_t place) { return values[place]; };
  size_t found = 0;
  for (int32_t place = 0; place < std::ssize(values); ++place) {
    size_t rank = found;
    while (rank > 0 && value_of(place) > value_of(chosen(rank - 1))) --rank;
    if (rank == count) continue;
    found = std::min(found + 1, count);
    for (size_t i = found - 1; i > rank; --i) chosen(i) = chosen(i - 1);
    chosen(rank) = place;
  }
}

// Sets the values of experts to -infinity if their group is not chosen.
void LeaveOutGroups(const ExpertChoice& choice, std::span<float> values) {
  const size_t groups = static_cast<size_t>(choice.groups), size = values.size() / groups;
  const auto best = static_cast<size_t>(choice.best_of_group);
  std::array<float, kMaxGroups> of_groups;
  std::array<int32_t, kMaxGroups> chosen;
  for (size_t group = 0; group < groups; ++group) {
    const auto members = values.subspan(group * size, size);
    std::array<int32_t, kMaxOfGroup> highest;
    ChooseHighest(members, best, [&](size_t i) -> int32_t& { return highest[i]; });
    of_groups[group] = 0;
    for (size_t i = 0; i < best; ++i) {
      of_groups[group] += members[highest[i]];
    }
  }
  const auto count = static_cast<size_t>(choice.groups_chosen);
  ChooseHighest(std::span(of_groups).first(groups), count,
                [&](size_t i) -> int32_t& { return chosen[i]; });
  for (size_t group = 0; group < groups; ++group) {
    if (std::find(chosen.begin(), chosen.begin() + count, group) != chosen.begin() + count)
      continue;
    std::ranges::fill(values.subspan(group * size, size), -std::numeric_limits<float>::infinity());
  }
}

// Each score becomes its part of the softmax.
void MakeParts(std::span<float> scores) {
  const float highest = std::ranges::max(scores);
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(score - highest);
    sum += score;
  }
  for (float& score : scores) score /= sum;
}

// ExpertChoice::near_scores. routes: best first.
void ShareAmongNear(const ExpertChoice& choice, std::span<const float> scores,
                    std::span<Route> routes) {
  for (size_t rank = 0; rank < routes.size(); ++rank) {
    const float best = scores[routes[rank].expert];
    float sum = 0;
    for (int32_t expert = 0; expert < std::ssize(scores); ++expert) {
      const float score = scores[expert], largest = std::max(std::abs(score), best);
      if ((best - score) / largest > choice.near_scores) continue;
      if (std::ranges::find(routes.first(rank), expert, &Route::expert) !=
          routes.begin() + static_cast<ptrdiff_t>(rank)) {
        continue;
      }
      sum += std::exp(score - best);
    }
    routes[rank].share = choice.share_scale / sum;
  }
}

// scores: of all experts; values: memory for as many.
void ChooseExperts(const MoeOptions& options, std::span<const float> bias, std::span<float> scores,
                   std::span<float> values, std::span<Route> routes) {
  const ExpertChoice& choice = options.choice;
  const auto sigmoid = [](float score) { return 1 / (1 + std::exp(-score)); };
  if (choice.score == ExpertScore::kSigmoid) {
    for (float& score : scores) score = sigmoid(score);
  } else if (choice.score == ExpertScore::kPart) {
    MakeParts(scores);
  }
  std::ranges::copy(scores, values.begin());
  for (size_t i = 0; i < bias.size(); ++i) values[i] += bias[i];
  if (choice.groups > 1) LeaveOutGroups(choice, values);
  ChooseHighest(values, routes.size(), [&](size_t i) -> int32_t& { return routes[i].expert; });
  if (choice.near_scores > 0) ShareAmongNear(choice, scores, routes);
  const float highest = scores[routes.front().expert];
  std::ranges::sort(routes, {}, &Route::expert);
  if (choice.scales_input) {
    for (Route& route : routes) route.share = sigmoid(scores[route.expert]);
    return;
  }
  if (choice.near_scores > 0) return;
  const bool logits = choice.score == ExpertScore::kLogit;
  const auto part = [&](float score) { return logits ? std::exp(score - highest) : score; };
  float sum = logits ? 0 : choice.share_epsilon;
  for (Route& route : routes) {
    route.share = part(scores[route.expert]);
    sum += route.share;
  }
  if (!options.shares_among_chosen) {
    sum = logits ? 0 : 1;
    if (logits) {
      for (const float score : scores) sum += part(score);
    }
  }
  for (Route& route : routes) route.share = route.share / sum * choice.share_scale;
}

template <typename T>
std::span<T> Scratch(const Exec& exec, size_t count) {
  return exec.workspace.Matrix<T>(1, static_cast<int64_t>(count)).RowSpan(0);
}

// Gives every route its row. Returns the beginnings of each expert's rows, and the end of the last:
// [experts + 1].
std::span<const int64_t> SortByExpert(const Exec& exec, MatrixView<Route> routes, int64_t experts) {
  const auto begins = Scratch<int64_t>(exec, static_cast<size_t>(experts) + 1);
  const auto next = Scratch<int64_t>(exec, static_cast<size_t>(experts));
  std::ranges::fill(begins, 0);
  for (int64_t token = 0; token < routes.rows; ++token) {
    for (const Route& route : routes.RowSpan(token)) {
      ++begins[static_cast<size_t>(route.expert) + 1];
    }
  }
  for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  std::copy_n(begins.begin(), next.size(), next.begin());
  for (int64_t token = 0; token < routes.rows; ++token) {
    for (Route& route : routes.RowSpan(token)) {
      route.row = next[route.expert]++;
    }
  }
  return begins;
}

// An expert, and its rows among those of all experts that run together.
struct Load {
  const Expert* expert;
  int64_t begin, end;
};

// A row that an expert reads: a token's row times a factor.
struct Reading {
  int64_t token;
  float factor;
};

// rows = each expert's output for its own rows; `readings` [rows.rows] names their rows of x.
// gate_up: scratch, of at least as many rows.
void RunTogether(const Exec& exec, std::span<const Load> loads, const MoeOptions& options,
                 MatrixView<const float> x, std::span<const Reading> readings,
                 MatrixView<float> gate_up, MatrixView<float> rows) {
  Workspace::Scope scope(exec.workspace);
  const auto up = gate_up.Rows(0, rows.rows);
  const auto inputs = Scratch<LinearRows>(exec, loads.size());
  const auto inner = Scratch<LinearRows>(exec, loads.size());
  const auto ups = Scratch<Product>(exec, loads.size());
  const auto downs = Scratch<Product>(exec, loads.size());
  for (size_t i = 0; i < loads.size(); ++i) {
    const auto& [expert, begin, end] = loads[i];
    inputs[i] = NewLinearRows(exec, expert->up, end - begin);
    inner[i] = NewLinearRows(exec, expert->down, end - begin);
    ups[i] = {&inputs[i], &expert->up, up.Rows(begin, end)};
    downs[i] = {&inner[i], &expert->down, rows.Rows(begin, end)};
  }
  FillRows(exec, inputs, [&](int64_t row, float* to) {
    const Reading& reading = readings[row];
    const float* from = x.Row(reading.token);
    for (int64_t i = 0; i < x.cols; ++i) to[i] = reading.factor * from[i];
  });
  Linear(exec, ups, StepPart::kExpertProducts);
  if (!options.gated) {
    Activate(exec, options.activation, up, inner);
  } else if (options.clamped) {
    ActivateGated(exec, *options.clamped, up, inner);
  } else {
    ActivateGated(exec, options.activation, up, inner);
  }
  Linear(exec, downs, StepPart::kExpertProducts);
}

// Runs all experts, several together while they have no more rows than x, or few. begins: of their
// rows, with the end of the last.
void RunExperts(const Exec& exec, const MoeWeights& w, const MoeOptions& options,
                std::span<const int64_t> begins, MatrixView<const float> x,
                std::span<const Reading> readings, MatrixView<float> rows) {
  constexpr int64_t kFewRows = 128;
  const int64_t most = std::max(x.rows, kFewRows);  // no expert has a token twice
  Workspace::Scope scope(exec.workspace);
  const auto loads = Scratch<Load>(exec, w.experts.size());
  const auto up =
      exec.workspace.Matrix<float>(std::min(most, rows.rows), w.experts.front().up.outputs);
  size_t count = 0;
  int64_t begin = begins.front();  // of the loads' rows
  const auto run = [&](int64_t end) {
    if (begin == end) return;
    RunTogether(exec, loads.first(count), options, x, readings.subspan(begin, end - begin), up,
                rows.Rows(begin, end));
    count = 0;
    begin = end;
  };
  for (size_t i = 0; i < w.experts.size(); ++i) {
    if (begins[i] == begins[i + 1]) continue;
    if (begins[i + 1] - begin > most) run(begins[i]);
    loads[count++] = {&w.experts[i], begins[i] - begin, begins[i + 1] - begin};
  }
  run(begins.back());
}

}  // namespace

void MixtureOfExperts(const Exec& exec, MatrixView<const float> x, const MoeWeights& w,
                      const MoeOptions& options, MatrixView<float> out) {
  const int64_t per_token = options.per_token;
  const int64_t experts = w.router.outputs, first = w.first_expert;
  const int64_t end = first + std::ssize(w.experts);
  assert(w.router.dtype == DType::kF32 && 0 <= first && first < end && end <= experts);
  assert(1 <= per_token && per_token <= experts);
  assert(x.cols == out.cols && x.rows == out.rows);
  assert(options.choice.groups <= kMaxGroups && experts % options.choice.groups == 0);
  assert(options.choice.best_of_group <= kMaxOfGroup);
  const ProfilePart measured(exec.profile, StepPart::kRouting);
  Workspace::Scope scope(exec.workspace);
  const auto scores = exec.workspace.Matrix<float>(x.rows, experts);
  const auto values = exec.workspace.Matrix<float>(exec.pool.threads(), experts);
  const auto routes = exec.workspace.Matrix<Route>(x.rows, per_token);
  const auto rows = exec.workspace.Matrix<float>(x.rows * per_token, x.cols);
  const auto readings = Scratch<Reading>(exec, static_cast<size_t>(rows.rows));

  assert(options.router_input.rows == 0 || options.router_input.rows == x.rows);
  Linear(exec, options.router_input.rows > 0 ? options.router_input : x, w.router, scores);
  exec.ParallelRows(x.rows, experts * per_token, [&](int64_t token, int worker) {
    ChooseExperts(options, w.choice_bias, scores.RowSpan(token), values.RowSpan(worker),
                  routes.RowSpan(token));
    if (w.scales.empty()) return;
    for (Route& route : routes.RowSpan(token)) route.share *= w.scales[route.expert];
  });
  const auto begins = SortByExpert(exec, routes, experts);
  for (int64_t token = 0; token < x.rows; ++token) {
    for (Route& route : routes.RowSpan(token)) {
      const float factor = options.choice.scales_input ? std::exchange(route.share, 1.0f) : 1.0f;
      readings[route.row] = {token, factor};
    }
  }
  RunExperts(exec, w, options, begins.subspan(first, std::ssize(w.experts) + 1), x, readings, rows);
  exec.ParallelRows(x.rows, per_token * x.cols, [&](int64_t token) {
    std::fill_n(out.Row(token), out.cols, 0.0f);
    for (const Route& route : routes.RowSpan(token)) {
      if (route.expert < first || route.expert >= end) continue;
      const float* row = rows.Row(route.row);
      for (int64_t i = 0; i < out.cols; ++i) out.Row(token)[i] += route.share * row[i];
    }
  });
}

}  // namespace godwit::ops
