// What godwit quantize says: its plan, the search for alpha, and what became of it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "quant/plan.h"
#include "quant/scheme.h"
#include "quant/smooth.h"

namespace godwit::cli {

struct QuantizedSizes {
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
};

// What all layers have in common is one line.
std::string PlanText(const quant::QuantPlan& plan, const quant::Scheme& scheme,
                     const QuantizedSizes& sizes);

// "0.55", of several groups "0.3 to 0.85"; "none" if there is nothing to smooth.
std::string DescribeAlphas(const quant::Smoothing& smoothing);

// Of a search (figure 3.8 of the SmoothQuant thesis): the error for each alpha.
std::string CurveText(const quant::Smoothing& smoothing);

// "alphas", of each group, and "search": [{"alpha", "error"}, ...], null if there was none.
void PutSmoothing(nlohmann::ordered_json& json, const quant::Smoothing& smoothing);

std::string DescribeSizes(const QuantizedSizes& sizes);

}  // namespace godwit::cli
