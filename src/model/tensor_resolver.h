// The search for the tensors of a spec in a checkpoint.
//
// Internal to src/model. model_tensors.cc finds the tensors of a model, mixer_tensors.cc those of
// attention and of other mixers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/linear_finder.h"
#include "model/model_tensors.h"
#include "model/spec.h"
#include "model/tensor_finder.h"
#include "weights/weight_source.h"

namespace godwit {

// Finds the tensors of the spec, and collects the faults of the checkpoint.
class Resolver {
 public:
  Resolver(const DecoderSpec& spec, const WeightSource& source)
      : spec_(spec), source_(source), tensors_(spec, source), linears_(spec, tensors_) {}

  ModelTensors Resolve();
  // Looks for all tensors without reporting missing ones.
  TensorFinder::Shapes Wanted();

 private:
  ModelTensors FindAll();
  NormTensors Norm(const std::string& module, int64_t size, bool bias);
  // The name of a norm in this checkpoint (ModuleNames::renamed_norms).
  std::string NormName(const std::string& module) const;
  NormTensors HeadNorm(const std::string& pattern, int64_t layer, int64_t heads);
  LatentTensors Latent(int64_t layer);
  void LatentHeads(const std::string& module, LatentTensors& latent);
  void KeyIndex(int64_t layer, LatentTensors& latent);
  LinearTensors Qkv(int64_t layer);
  struct MlpNames {
    std::string gate, up, down;
  };
  MlpTensors Mlp(const MlpSpec& mlp, const MlpNames& names, int64_t layer, int64_t expert = 0);
  MlpTensors StackedExpert(const MlpSpec& mlp, int64_t layer, int64_t expert);
  std::vector<MlpTensors> Experts(int64_t layer);
  void Attention(int64_t index, LayerTensors& layer);
  void ShortConvolution(int64_t index, LayerTensors& layer);
  void GatedDeltaNet(int64_t index, LayerTensors& layer);
  void Mamba2(int64_t index, LayerTensors& layer);
  void Mixing(int64_t index, LayerTensors& layer);
  void MlpOrExperts(int64_t index, LayerTensors& layer);
  void Projections(int64_t index, int64_t inner, int64_t outer, bool bias, LayerTensors& layer);
  void BranchNorms(int64_t index, LayerTensors& layer);
  void LayerEnd(int64_t index, LayerTensors& layer);
  void Streams(int64_t index, LayerTensors& layer);
  LayerTensors Layer(int64_t index);
  void LayerTable(ModelTensors& tensors);
  PredictionTensors Prediction();
  // A name of a layer, and of its expert or head. The layer that predicts may have others.
  std::string Numbered(const std::string& pattern, int64_t layer, int64_t expert = 0) const;
  void Embedding(ModelTensors& tensors);
  void ReportUnexpected();

  const DecoderSpec& spec_;
  const WeightSource& source_;
  TensorFinder tensors_;
  LinearFinder linears_;
};

}  // namespace godwit
