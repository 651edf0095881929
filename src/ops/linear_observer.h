// LinearObserver: an observer of the inputs of linear layers, for calibration and pictures of it.
#pragma once

#include <functional>

namespace godwit {

struct Weight;
namespace ops {
struct LinearRows;
}

// Called by ops::Linear before every product, from the thread that calls it. The rows are valid
// during the call.
using LinearObserver = std::function<void(const Weight& w, const ops::LinearRows& x)>;

}  // namespace godwit
