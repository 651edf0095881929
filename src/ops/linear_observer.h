// LinearObserver: an observer of the inputs of linear layers, for calibration and pictures of it.
// LinearFilter: a change of these inputs, for simulations.
#pragma once

#include <functional>

#include "tensor/view.h"

namespace godwit {

struct Weight;
namespace ops {
struct LinearRows;
}

// Called by ops::Linear before every product, from the thread that calls it. The rows are valid
// during the call.
using LinearObserver = std::function<void(const Weight& w, const ops::LinearRows& x)>;

// Called by ops::Linear before every product of a weight in f32 or f16, from the thread that calls
// it. x [rows, inputs] is a copy of the input, and the product reads what the filter leaves there.
// Other weights are multiplied without the filter, because their rows are rounded before.
using LinearFilter = std::function<void(const Weight& w, MatrixView<float> x)>;

}  // namespace godwit
