#include "train/head_gradient.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ops/activation.h"
#include "ops/linear.h"
#include "ops/pack_weight.h"

namespace godwit::train {
namespace {

MatrixView<float> NewMatrix(const Exec& exec, int64_t rows, int64_t cols) {
  return exec.workspace.Matrix<float>(rows, cols);
}

Weight Pack(const Exec& exec, MatrixView<const float> w, DType storage) {
  return ops::PackWeight(
      exec.pool, DType::kF32, w.rows, w.cols, [&](int64_t output) { return w.Row(output); },
      storage);
}

MatrixView<float> Transposed(const Exec& exec, MatrixView<const float> x) {
  const auto out = NewMatrix(exec, x.cols, x.rows);
  exec.ParallelRows(out.rows, out.cols, [&](int64_t row) {
    for (int64_t i = 0; i < x.rows; ++i) out.Row(row)[i] = x.Row(i)[row];
  });
  return out;
}

// The output head as a matrix: its outputs for the rows of a unit matrix.
Weight PackProjection(const Exec& exec, const LanguageModel& model, int64_t vocab, DType storage) {
  const int64_t hidden = model.hidden_size();
  Workspace::Scope scope(exec.workspace);
  const auto unit = NewMatrix(exec, hidden + 1, hidden);
  for (int64_t i = 0; i <= hidden; ++i) {
    std::ranges::fill(unit.RowSpan(i), 0.0f);
    if (i < hidden) unit.Row(i)[i] = 1;
  }
  const auto columns = NewMatrix(exec, hidden + 1, vocab);
  model.NormedLogits(exec, unit, columns);
  const float* bias = columns.Row(hidden);  // the outputs for zeros
  for (int64_t i = 0; i < hidden; ++i) {
    for (int64_t t = 0; t < vocab; ++t) columns.Row(i)[t] -= bias[t];
  }
  return Pack(exec, columns.Rows(0, hidden), storage);
}

// The gradient of y = norm(x): adds dx of dy to dx, and the weight's gradient to d_weight.
void NormBackward(const Exec& exec, const ops::NormWeights& norm, MatrixView<const float> x,
                  MatrixView<const float> dy, MatrixView<float> dx, std::span<float> d_weight) {
  Workspace::Scope scope(exec.workspace);
  const auto n = static_cast<size_t>(x.cols);
  const auto scales = NewMatrix(exec, 1, x.rows).RowSpan(0);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    const float* in = x.Row(row);
    const float* d = dy.Row(row);
    double squares = 0, along = 0;
    for (size_t i = 0; i < n; ++i) {
      squares += static_cast<double>(in[i]) * in[i];
      along += static_cast<double>(d[i]) * norm.weight[i] * in[i];
    }
    const double mean = squares / static_cast<double>(n) + static_cast<double>(norm.epsilon);
    const auto s = static_cast<float>(1 / std::sqrt(mean));
    const auto back = static_cast<float>(along / (mean * static_cast<double>(n)));
    scales[row] = s;
    for (size_t i = 0; i < n; ++i) dx.Row(row)[i] += s * (norm.weight[i] * d[i] - in[i] * back);
  });
  exec.ParallelRows(x.cols, x.rows, [&](int64_t i) {
    float sum = 0;
    for (int64_t row = 0; row < x.rows; ++row) {
      sum += dy.Row(row)[i] * x.Row(row)[i] * scales[row];
    }
    d_weight[i] += sum;
  });
}

// Turns a row of logits into the gradient of its loss, times scale, in place. Returns the loss.
double SoftmaxBackward(std::span<float> logits, int32_t target, float scale) {
  const float largest = *std::ranges::max_element(logits);
  const float at_target = logits[target];
  double sum = 0;
  for (float& value : logits) sum += value = std::exp(value - largest);
  const auto share = static_cast<float>(scale / sum);
  for (float& value : logits) value *= share;
  logits[target] -= scale;
  return std::log(sum) - static_cast<double>(at_target - largest);
}

}  // namespace

HeadGradient::HeadGradient(const Exec& exec, const LanguageModel& model, int64_t vocab,
                           DType storage)
    : model_(model),
      vocab_(vocab),
      storage_(storage),
      projection_(PackProjection(exec, model, vocab, storage)) {}

void HeadGradient::Prepare(const Exec& exec, HeadParameters& parameters) {
  const int64_t hidden = parameters.hidden();
  heads_.clear();
  independent_ = parameters.independent();
  for (int64_t i = 0; i < parameters.heads(); ++i) {
    Workspace::Scope scope(exec.workspace);
    const MatrixView<const float> matrix = {parameters.Matrix(i).data(), hidden, hidden, hidden};
    heads_.push_back({.input_norm = HeadNorm(parameters.InputNorm(i)),
                      .output_norm = HeadNorm(parameters.OutputNorm(i)),
                      .matrix = Pack(exec, matrix, storage_),
                      .transposed = Pack(exec, Transposed(exec, matrix), storage_)});
  }
}

// Calls see(rows, traces [heads], logits of each head) for as many rows at once as fit.
template <typename See>
void HeadGradient::Forward(const Exec& exec, const HiddenStates& states,
                           std::span<const int64_t> rows, const See& see) const {
  constexpr int64_t kLogits = 1 << 24;  // at once
  const auto at_once = static_cast<size_t>(std::clamp<int64_t>(kLogits / vocab_, 16, 1024));
  const int64_t hidden = model_.hidden_size();
  for (size_t begin = 0; begin < rows.size(); begin += at_once) {
    Workspace::Scope scope(exec.workspace);
    const auto some = rows.subspan(begin, std::min(at_once, rows.size() - begin));
    const int64_t n = std::ssize(some);
    std::vector<Trace> traces;
    auto x = NewMatrix(exec, n, hidden);
    states.Read(some, x);
    for (const Head& head : heads_) {
      traces.push_back(
          {.in = x, .normed = NewMatrix(exec, n, hidden), .out = NewMatrix(exec, n, hidden)});
      const Trace& trace = traces.back();
      ops::Norm(exec, trace.in, head.input_norm, trace.normed);
      ops::Linear(exec, trace.normed, head.matrix, trace.out);
      ops::Add(exec, trace.in, trace.out);
      if (!independent_) x = trace.out;
    }
    see(some, std::span<const Trace>(traces));
  }
}

void HeadGradient::Backward(const Exec& exec, const Head& head, const Trace& trace,
                            MatrixView<float> d_out, HeadParameters& gradient,
                            int64_t index) const {
  Workspace::Scope scope(exec.workspace);
  const int64_t hidden = d_out.cols;
  // The gradient of the matrix: d_out^T * normed.
  const auto product = NewMatrix(exec, hidden, hidden);
  const Weight inputs = Pack(exec, Transposed(exec, trace.normed), storage_);
  ops::Linear(exec, Transposed(exec, d_out), inputs, product);
  float* sum = gradient.Matrix(index).data();
  exec.ParallelRows(hidden, hidden, [&](int64_t row) {
    for (int64_t i = 0; i < hidden; ++i) sum[row * hidden + i] += product.Row(row)[i];
  });
  // The gradient through the matrix and the norm before it is added to that of the residual path.
  const auto d_normed = NewMatrix(exec, d_out.rows, hidden);
  ops::Linear(exec, d_out, head.transposed, d_normed);
  NormBackward(exec, head.input_norm, trace.in, d_normed, d_out, gradient.InputNorm(index));
}

void HeadGradient::Add(const Exec& exec, const HiddenStates& states, std::span<const int64_t> rows,
                       float scale, HeadParameters& gradient, std::span<HeadScore> scores) const {
  assert(std::ssize(scores) == std::ssize(heads_) && states.heads() == std::ssize(heads_));
  Forward(exec, states, rows, [&](std::span<const int64_t> some, std::span<const Trace> traces) {
    const int64_t n = std::ssize(some), hidden = model_.hidden_size();
    Workspace::Scope scope(exec.workspace);
    const auto d_out = NewMatrix(exec, n, hidden);
    const auto d_normed = NewMatrix(exec, n, hidden);
    const auto normed = NewMatrix(exec, n, hidden);
    const auto logits = NewMatrix(exec, n, vocab_);
    const auto losses = exec.workspace.Matrix<double>(1, n).RowSpan(0);
    for (int64_t i = std::ssize(heads_); i-- > 0;) {
      const Head& head = heads_[i];
      const Trace& trace = traces[i];
      // The gradient of a chained head's output has come through the head behind it.
      if (independent_ || i + 1 == std::ssize(heads_)) {
        for (int64_t row = 0; row < n; ++row) std::ranges::fill(d_out.RowSpan(row), 0.0f);
      }
      ops::Norm(exec, trace.out, head.output_norm, normed);
      model_.NormedLogits(exec, normed, logits);
      exec.ParallelRows(n, vocab_, [&](int64_t row) {
        const int32_t target = states.Target(some[row], i);
        if (target >= 0) {
          losses[row] = SoftmaxBackward(logits.RowSpan(row), target, scale);
        } else {
          std::ranges::fill(logits.RowSpan(row), 0.0f);
        }
      });
      HeadScore& score = scores[i];
      for (int64_t row = 0; row < n; ++row) {
        if (states.Target(some[row], i) < 0) continue;
        score.loss += losses[row];
        ++score.rows;
      }
      ops::Linear(exec, logits, projection_, d_normed);
      NormBackward(exec, head.output_norm, trace.out, d_normed, d_out, gradient.OutputNorm(i));
      Backward(exec, head, trace, d_out, gradient, i);
    }
  });
}

void HeadGradient::Score(const Exec& exec, const HiddenStates& states,
                         std::span<const int64_t> rows, std::span<HeadScore> scores) const {
  Forward(exec, states, rows, [&](std::span<const int64_t> some, std::span<const Trace> traces) {
    const int64_t n = std::ssize(some);
    Workspace::Scope scope(exec.workspace);
    const auto normed = NewMatrix(exec, n, model_.hidden_size());
    const auto logits = NewMatrix(exec, n, vocab_);
    const auto places = exec.workspace.Matrix<int64_t>(1, n).RowSpan(0);
    const auto losses = exec.workspace.Matrix<double>(1, n).RowSpan(0);
    for (int64_t i = 0; i < std::ssize(heads_); ++i) {
      const auto at = static_cast<size_t>(i);
      ops::Norm(exec, traces[at].out, heads_[at].output_norm, normed);
      model_.NormedLogits(exec, normed, logits);
      exec.ParallelRows(n, vocab_, [&](int64_t row) {
        const int32_t target = states.Target(some[row], i);
        if (target < 0) return;
        const float at_target = logits.Row(row)[target];
        places[row] = std::ranges::count_if(logits.RowSpan(row),
                                            [&](float value) { return value > at_target; });
        losses[row] = SoftmaxBackward(logits.RowSpan(row), target, 1);
      });
      for (int64_t row = 0; row < n; ++row) {
        if (states.Target(some[row], i) < 0) continue;
        const int64_t place = places[row];
        scores[at].loss += losses[row];
        scores[at].rows += 1;
        scores[at].first += place < 1 ? 1 : 0;
        scores[at].among_ten += place < 10 ? 1 : 0;
      }
    }
  });
}

}  // namespace godwit::train
