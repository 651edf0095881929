// What will be done to a model: which linear layers become int8 and which groups are smoothed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quant/matrix_part.h"
#include "quant/scheme.h"
#include "quant/smooth_groups.h"

namespace godwit::quant {

struct QuantPlan {
  // In the order of the model. The parts of one (q, k and v; gate and up) go together.
  std::vector<const LinearTensors*> linears;
  std::set<const LinearTensors*> int8;  // of these, those that have 8 bits where others have 4
  // Modules that stay in float, by name: what a config.json lists as "ignore".
  std::vector<std::string> ignore;
  // Tensors of all experts of a layer that several tensors take the place of, by their names.
  std::map<std::string, std::vector<MatrixPart>, std::less<>> unstacked;
  SmoothGroups smooth;

  // What becomes of one of `linears` in a model of this scheme.
  const Scheme& SchemeOf(const LinearTensors& linear, const Scheme& scheme) const {
    return int8.contains(&linear) ? Int8Beside(scheme) : scheme;
  }
};

// keep, int8: names of linear layers that stay in float or have 8 bits in a model of 4, where *
// stands for anything ("*.down_proj"). The output head, routers, embeddings and their projections
// always do, and so does what makes keys and values of latent vectors: it is small, and in every
// score. Groups all of whose readers stay in float are left out, as they would gain nothing.
//
// Throws Error(kInput) for a pattern that matches no layer or a part of fused ones, which it names.
QuantPlan PlanQuantization(const DecoderSpec& spec, const ModelTensors& tensors, SmoothKind smooth,
                           const std::vector<std::string>& keep,
                           const std::vector<std::string>& int8 = {});

}  // namespace godwit::quant
