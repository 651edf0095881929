// The forward pass of models with several residual streams (DecoderSpec::streams).
#include <cassert>
#include <numbers>
#include <utility>

#include "model/decoder.h"
#include "ops/activation.h"
#include "ops/copy_rows.h"
#include "ops/linear.h"
#include "ops/streams.h"

namespace godwit {
namespace {

// The streams other than the first begin and end as projections, scaled to the first's magnitude.
void ProjectStream(const Exec& exec, const Weight& w, MatrixView<const float> from,
                   MatrixView<const float> like, MatrixView<float> to) {
  ops::Linear(exec, from, w, to);
  ops::MatchMagnitude(exec, like, to);
}

}  // namespace

void Decoder::ForwardStreams(const Exec& exec, AttentionStep& step, MatrixView<const float> parts,
                             MatrixView<float> x) const {
  const int64_t n = spec_.streams->count, hidden = spec_.hidden_size;
  const int64_t part = spec_.layer_embedding->width;
  Workspace::Scope scope(exec.workspace);
  auto streams = exec.workspace.Matrix<float>(x.rows, n * hidden);
  auto predicted = exec.workspace.Matrix<float>(x.rows, n * hidden);
  const auto stream = [&](int64_t i) { return streams.Cols(i * hidden, (i + 1) * hidden); };

  ops::CopyRows(exec, x, stream(0));
  for (int64_t i = 1; i < n; ++i) {
    ProjectStream(exec, weights_.streams_in[i - 1], x, x, stream(i));
  }
  for (int64_t layer = 0; layer < spec_.layers; ++layer) {
    StreamsLayer(exec, layer, step, parts.Cols(layer * part, (layer + 1) * part), streams,
                 predicted);
    std::swap(streams, predicted);
  }
  ops::CopyRows(exec, stream(0), x);
  const auto out = exec.workspace.Matrix<float>(x.rows, hidden);
  for (int64_t i = 1; i < n; ++i) {
    ProjectStream(exec, weights_.streams_out[i - 1], stream(i), stream(0), out);
    ops::Add(exec, out, x);
  }
  ops::Scale(exec, 1 / static_cast<float>(n), x);
}

// Coefficients of the streams, made of the tangents of a projection of the active one.
void Decoder::StreamCoefficients(const Exec& exec, const StreamWeights& w, const Weight& made_by,
                                 MatrixView<const float> active,
                                 MatrixView<float> coefficients) const {
  Workspace::Scope scope(exec.workspace);
  const auto normed = exec.workspace.Matrix<float>(active.rows, active.cols);
  const auto routed = exec.workspace.Matrix<float>(active.rows, w.router.outputs);
  ops::Norm(exec, active, w.router_norm, normed);
  ops::Linear(exec, normed, w.router, routed);
  ops::Tanh(exec, routed);
  ops::Linear(exec, routed, made_by, coefficients);
}

// out = norm(x) and what a product of two narrow matrices makes of it (LAuReL, arXiv 2411.07501).
void Decoder::Laurel(const Exec& exec, const DecoderLayer& layer, MatrixView<const float> x,
                     MatrixView<float> out) const {
  Workspace::Scope scope(exec.workspace);
  const auto normed = exec.workspace.Matrix<float>(x.rows, x.cols);
  const auto narrow = exec.workspace.Matrix<float>(x.rows, layer.laurel_down.outputs);
  ops::Norm(exec, x, layer.attention_norm, normed);
  ops::Linear(exec, normed, layer.laurel_down, narrow);
  ops::Linear(exec, narrow, layer.laurel_up, out);
  ops::Norm(exec, out, layer.laurel_norm, out);
  ops::Add(exec, normed, out);
}

void Decoder::StreamsLayer(const Exec& exec, int64_t index, AttentionStep& step,
                           MatrixView<const float> part, MatrixView<const float> streams,
                           MatrixView<float> predicted) const {
  const StreamsSpec& spec = *spec_.streams;
  const DecoderLayer& layer = weights_.layers[index];
  const StreamWeights& w = layer.streams;
  const int64_t rows = streams.rows, hidden = spec_.hidden_size, n = spec.count;
  const int64_t begin = spec.active * hidden, end = begin + hidden;
  Workspace::Scope scope(exec.workspace);
  const auto coefficients = exec.workspace.Matrix<float>(rows, n * n);
  const auto y = exec.workspace.Matrix<float>(rows, hidden);
  const auto other = exec.workspace.Matrix<float>(rows, hidden);

  StreamCoefficients(exec, w, w.predict, streams.Cols(begin, end), coefficients);
  ops::PredictStreams(exec, streams, coefficients, predicted);
  const auto active = predicted.Cols(begin, end);
  MixerBlock(exec, index, step, active, y);
  ops::Add(exec, active, y);
  Laurel(exec, layer, active, other);
  ops::Add(exec, other, y);
  ops::Scale(exec, 1 / std::numbers::sqrt2_v<float>, y);
  MlpBlock(exec, index, y, other);
  ops::Add(exec, other, y);

  StreamCoefficients(exec, w, w.correct, y, coefficients.Cols(0, n));
  ops::CorrectStreams(exec, y, coefficients.Cols(0, n), spec.active, predicted);
  if (spec.scaled) {
    ops::ScaleColumns(exec, active, w.scales, y);
  } else {
    ops::CopyRows(exec, active, y);
  }
  LayerEmbeddingResult(exec, layer, part, y, other);
  for (int64_t i = 1; i < n; ++i) {
    ops::Add(exec, other, predicted.Cols(i * hidden, (i + 1) * hidden));
  }
}

}  // namespace godwit
