// Several residual streams side by side (AltUp, arXiv 2301.13310), and a gate that lets few units
// through.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// Every number of x becomes its hyperbolic tangent.
void Tanh(const Exec& exec, MatrixView<float> x);

// Computes predicted stream j = stream j + the sum over i of coefficients[j * n + i] times stream
// i, in the order of i. streams, predicted [rows, n * width]; coefficients [rows, n * n].
// `predicted` may not overlap `streams`.
void PredictStreams(const Exec& exec, MatrixView<const float> streams,
                    MatrixView<const float> coefficients, MatrixView<float> predicted);

// Adds to each stream j (coefficients[j] + 1) times what `activated` has beyond stream `active`.
// streams [rows, n * width]; coefficients [rows, n]; activated [rows, width].
void CorrectStreams(const Exec& exec, MatrixView<const float> activated,
                    MatrixView<const float> coefficients, int64_t active,
                    MatrixView<float> streams);

// Scales each row of x to the root mean square of the row of `like`. The mean square of x counts as
// 1e-5 at least. x, like [rows, width].
void MatchMagnitude(const Exec& exec, MatrixView<const float> like, MatrixView<float> x);

// out [rows, cols] = x times a factor of each column.
void ScaleColumns(const Exec& exec, MatrixView<const float> x, std::span<const float> factors,
                  MatrixView<float> out);

// Each row of x less a cutoff, and 0 below it. The cutoff lies `deviations` standard deviations
// above the mean of the row's numbers (Gemma 3n, "gaussian top-k").
void CutBelow(const Exec& exec, float deviations, MatrixView<float> x);

}  // namespace godwit::ops
