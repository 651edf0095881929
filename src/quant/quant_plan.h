// The plan for a model: the linear layers that become integers, and the groups that are smoothed.
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
  // The quantized layers in the order of the model. The parts of one (q, k and v; gate and up) go
  // together.
  std::vector<const LinearTensors*> linears;
  std::set<const LinearTensors*> int8;  // those of `linears` with 8 bits where others have 4
  // The modules that stay in float, by name: what a config.json lists as "ignore".
  std::vector<std::string> ignore;
  // The tensors of all experts of a layer, by name, and the tensors that replace each.
  std::map<std::string, std::vector<MatrixPart>, std::less<>> unstacked;
  SmoothGroups smooth;

  // The scheme of one of `linears` in a model of this scheme.
  const Scheme& SchemeOf(const LinearTensors& linear, const Scheme& scheme) const {
    return int8.contains(&linear) ? Int8Counterpart(scheme) : scheme;
  }
};

// keep: names of linear layers that stay in float; int8: of those that have 8 bits in a 4-bit
// model. * stands for anything ("*.down_proj"). The output head, routers, embeddings and their
// projections always stay in float. So does the layer that makes keys and values of latent vectors:
// it is small, and in every score. Groups whose readers all stay in float are left out, as they
// would gain nothing.
//
// Throws Error(kInput) that names a pattern which matches no layer, or a part of fused ones.
QuantPlan PlanQuantization(const DecoderSpec& spec, const ModelTensors& tensors, SmoothKind smooth,
                           const std::vector<std::string>& keep,
                           const std::vector<std::string>& int8 = {});

}  // namespace godwit::quant
