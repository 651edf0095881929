#include "ops/moe.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>

#include "ops/linear.h"

namespace godwit::ops {
namespace {

// That a token goes to an expert.
struct Route {
  int64_t row;  // of the token among all that go to experts, sorted by expert
  int32_t expert;
  float share;
};

// The highest scores, chosen one after another: there are few. Comparisons with NaN are false, so
// whatever the scores, the experts are different ones.
void ChooseExperts(std::span<const float> scores, bool shares_among_chosen,
                   std::span<Route> routes) {
  const auto experts = std::ssize(scores);
  for (size_t i = 0; i < routes.size(); ++i) {
    const auto chosen = routes.first(i);
    int32_t best = -1;
    for (int32_t expert = 0; expert < experts; ++expert) {
      if (std::ranges::find(chosen, expert, &Route::expert) != chosen.end()) continue;
      if (best < 0 || scores[static_cast<size_t>(expert)] > scores[static_cast<size_t>(best)]) {
        best = expert;
      }
    }
    routes[i].expert = best;
  }
  const float highest = scores[static_cast<size_t>(routes.front().expert)];
  std::ranges::sort(routes, {}, &Route::expert);
  float sum = 0;
  for (Route& route : routes) {
    route.share = std::exp(scores[static_cast<size_t>(route.expert)] - highest);
    sum += route.share;
  }
  if (!shares_among_chosen) {
    sum = 0;
    for (const float score : scores) sum += std::exp(score - highest);
  }
  for (Route& route : routes) route.share /= sum;
}

// Gives every route its row. Returns where each expert's rows begin, and the end of the last:
// [experts + 1].
std::span<const int64_t> SortByExpert(const Exec& exec, MatrixView<Route> routes, int64_t experts) {
  const auto begins = exec.workspace.Matrix<int64_t>(1, experts + 1).RowSpan(0);
  const auto next = exec.workspace.Matrix<int64_t>(1, experts).RowSpan(0);
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
      route.row = next[static_cast<size_t>(route.expert)]++;
    }
  }
  return begins;
}

// rows = expert(rows). up: scratch, of at least as many rows.
void RunExpert(const Exec& exec, const Expert& expert, const MoeOptions& options,
               MatrixView<float> rows, MatrixView<float> up) {
  Workspace::Scope scope(exec.workspace);
  const auto gate_up = up.Rows(0, rows.rows);
  auto inner = NewLinearRows(exec, expert.down, rows.rows);
  Linear(exec, rows, expert.up, gate_up);
  if (options.clamped) {
    ActivateGated(exec, *options.clamped, gate_up, inner);
  } else {
    ActivateGated(exec, options.activation, gate_up, inner);
  }
  Linear(exec, inner, expert.down, rows);
}

}  // namespace

void MixtureOfExperts(const Exec& exec, MatrixView<const float> x, const MoeWeights& w,
                      const MoeOptions& options, MatrixView<float> out) {
  const int64_t per_token = options.per_token;
  const auto experts = std::ssize(w.experts);
  assert(w.router.dtype == DType::kF32 && w.router.outputs == experts);
  assert(1 <= per_token && per_token <= experts);
  assert(x.cols == out.cols && x.rows == out.rows);
  Workspace::Scope scope(exec.workspace);
  const auto scores = exec.workspace.Matrix<float>(x.rows, experts);
  const auto routes = exec.workspace.Matrix<Route>(x.rows, per_token);
  const auto rows = exec.workspace.Matrix<float>(x.rows * per_token, x.cols);
  // An expert serves a token once, so it has at most all of them. Sized by that and not by how
  // many it has, scratch memory is the same in every step.
  const auto up = exec.workspace.Matrix<float>(x.rows, w.experts.front().up.outputs);

  Linear(exec, x, w.router, scores);
  for (int64_t token = 0; token < x.rows; ++token) {
    ChooseExperts(scores.RowSpan(token), options.shares_among_chosen, routes.RowSpan(token));
  }
  const auto begins = SortByExpert(exec, routes, experts);
  exec.ParallelRows(x.rows, per_token * x.cols, [&](int64_t token) {
    for (const Route& route : routes.RowSpan(token)) {
      std::copy_n(x.Row(token), x.cols, rows.Row(route.row));
    }
  });
  for (size_t i = 0; i < w.experts.size(); ++i) {
    if (begins[i] == begins[i + 1]) continue;
    RunExpert(exec, w.experts[i], options, rows.Rows(begins[i], begins[i + 1]), up);
  }
  exec.ParallelRows(x.rows, per_token * x.cols, [&](int64_t token) {
    std::fill_n(out.Row(token), out.cols, 0.0f);
    for (const Route& route : routes.RowSpan(token)) {
      const float* row = rows.Row(route.row);
      for (int64_t i = 0; i < out.cols; ++i) out.Row(token)[i] += route.share * row[i];
    }
  });
}

}  // namespace godwit::ops
