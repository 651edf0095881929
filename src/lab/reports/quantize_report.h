// What godwit quantize says: its plan, the search for alpha, and what became of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "quant/quantize_model.h"

namespace godwit::lab {

// What all layers have in common is one line.
std::string PlanText(const quant::ModelPlan& plan, const quant::Scheme& scheme);

// "0.55", of several groups "0.3 to 0.85"; "none" if there is nothing to smooth.
std::string DescribeAlphas(const quant::Smoothing& smoothing);

// Of a search (figure 3.8 of the SmoothQuant thesis): the error for each alpha.
std::string CurveText(const quant::Smoothing& smoothing);

// "alphas", of each group, and "search": [{"alpha", "error"}, ...], null if there was none.
void PutSmoothing(nlohmann::ordered_json& json, const quant::Smoothing& smoothing);

// "4.94 GiB -> 2.61 GiB (0.53)"
std::string DescribeSizes(const quant::ModelPlan& plan);

}  // namespace godwit::lab
