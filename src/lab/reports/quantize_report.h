// The report of godwit quantize: its plan, the search for alpha, and the result.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "quant/quantize_model.h"

namespace godwit::lab {

// The plan, in which a fact that all layers share is one line.
std::string PlanText(const quant::ModelPlan& plan, const quant::Scheme& scheme);

// "0.55", or "0.3 to 0.85" for several groups; "none" if there is nothing to smooth.
std::string DescribeAlphas(const quant::Smoothing& smoothing);

// The error for each alpha of a search (figure 3.8 of the SmoothQuant thesis).
std::string CurveText(const quant::Smoothing& smoothing);

// Adds "alphas", one for each group, and "search": [{"alpha", "error"}, ...], null without a
// search.
void PutSmoothing(nlohmann::ordered_json& json, const quant::Smoothing& smoothing);

// "4.94 GiB -> 2.61 GiB (0.53)"
std::string DescribeSizes(const quant::ModelPlan& plan);

}  // namespace godwit::lab
