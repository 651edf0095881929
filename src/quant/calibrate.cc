#include "quant/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/make_policy.h"
#include "base/error.h"
#include "ops/linear_rows.h"
#include "tensor/float_bytes.h"

namespace godwit::quant {
namespace {

// Calls see(name, row [inputs]) for every row that enters a named linear layer of the scope.
template <typename See>
void RunPieces(const Exec& exec, const Decoder& decoder,
               std::span<const std::vector<int32_t>> pieces, const CalibrationProgress& progress,
               const CalibrationScope& scope, const See& see) {
  std::vector<float> row;
  const LinearObserver observer = [&](const Weight& w, const ops::LinearRows& x) {
    if (w.name.empty() || (scope.linears && !scope.linears->contains(w.name))) return;
    row.resize(x.cols);
    for (int64_t i = 0; i < x.rows; ++i) {
      ReadFloats(x.dtype, x.Row(i), row);
      see(w.name, std::span<const float>(row));
    }
  };
  Exec observed = exec;
  observed.observer = &observer;
  int64_t total = 0, done = 0;
  for (const auto& piece : pieces) total += std::ssize(piece);
  for (const auto& piece : pieces) {
    const auto n = std::ssize(piece);
    const auto text =
        MakeTextCache(Geometry(decoder.spec()), {.kv_type = DType::kF32, .context = n});
    const Segment segment{piece, text.get()};
    Workspace::Scope memory(exec.workspace);
    const auto hidden = exec.workspace.Matrix<float>(n, decoder.hidden_size());
    decoder.Forward(observed, {&segment, 1}, hidden);
    done += n;
    if (progress) progress(done, total);
  }
}

}  // namespace

Calibration Calibrate(const Exec& exec, const Decoder& decoder,
                      std::span<const std::vector<int32_t>> pieces,
                      const CalibrationProgress& progress, const CalibrationScope& scope) {
  Calibration calibration;
  RunPieces(exec, decoder, pieces, progress, scope,
            [&](const std::string& name, std::span<const float> row) {
              LinearStatistics& seen = calibration[name];
              seen.largest.resize(row.size());
              seen.squares.resize(row.size());
              ++seen.rows;
              bool finite = true;
              for (size_t i = 0; i < row.size(); ++i) {
                finite &= std::isfinite(row[i]);
                seen.largest[i] = std::max(seen.largest[i], std::fabs(row[i]));
                seen.squares[i] += double{row[i]} * row[i];
              }
              if (!finite) {
                Throw(ErrorKind::kUnsupported, "calibration: the input of {} holds NaN or infinity",
                      name);
              }
              if (scope.samples && seen.sample.WantsNext()) seen.sample.Add(row);
              if (scope.products) seen.products.Add(exec, row);
            });
  return calibration;
}

std::map<std::string, std::vector<float>, std::less<>> ClippedMaxima(
    const Exec& exec, const Decoder& decoder, std::span<const std::vector<int32_t>> pieces,
    std::span<const LinearTensors* const> linears, const Scalings& scalings,
    std::span<const double> shares, const CalibrationProgress& progress) {
  // Keys are names of packed weights; the maxima are those of every row.
  std::map<std::string, std::vector<float>, std::less<>> maxima;
  std::map<std::string, const Scaling*, std::less<>> scaling_of;
  CalibrationScope scope{.linears = std::set<std::string, std::less<>>()};
  for (const LinearTensors* linear : linears) {
    scope.linears->insert(ModuleName(*linear));
    scaling_of[ModuleName(*linear)] = &FindScaling(scalings, PartsOf(*linear).front().name);
  }
  RunPieces(exec, decoder, pieces, progress, scope,
            [&](const std::string& name, std::span<const float> row) {
              const auto& s = scaling_of.at(name)->column_factors;
              float largest = 0;
              for (size_t i = 0; i < row.size(); ++i) {
                largest = std::max(largest, std::fabs(row[i] / (s.empty() ? 1.0f : s[i])));
              }
              maxima[name].push_back(largest);
            });
  std::map<std::string, std::vector<float>, std::less<>> clipped;
  for (auto& [name, values] : maxima) {
    for (const double share : shares) {
      const auto cut = static_cast<size_t>(share * static_cast<double>(values.size()));
      const auto place = values.end() - 1 - static_cast<std::ptrdiff_t>(cut);
      std::nth_element(values.begin(), place, values.end());
      clipped[name].push_back(*place);
    }
  }
  return clipped;
}

}  // namespace godwit::quant
