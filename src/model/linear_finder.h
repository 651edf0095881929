// Finds the tensors of linear layers, quantized or packed as config.json says.
//
// Internal to src/model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/model_tensors.h"
#include "model/tensor_finder.h"

namespace godwit {

// Every error becomes a problem of the finder's, and null in the layer.
class LinearFinder {
 public:
  LinearFinder(const DecoderSpec& spec, TensorFinder& tensors) : spec_(spec), tensors_(tensors) {}

  // Finds modules with so many outputs each, fused in this order.
  LinearTensors Find(const std::vector<std::pair<std::string, int64_t>>& parts, int64_t inputs,
                     bool bias, bool transposed = false);
  // Finds the layer of one expert in a module whose tensors hold all experts.
  LinearTensors FindStacked(const std::string& module, const MlpSpec& mlp, int64_t outputs,
                            int64_t inputs, int64_t expert);

  // Whether some layers are int8, whether some are packed.
  bool int8() const { return int8_; }
  bool packed() const { return packed_; }

 private:
  // The quantization of a module, if it has one.
  std::optional<LayerQuantization> Quantization(const std::string& module) const;
  void WantScales(const std::string& module, int64_t outputs, const LayerQuantization& quantization,
                  LinearTensors& linear);
  bool GroupsDivide(const std::string& module, int64_t inputs, const PackedFormat& format,
                    bool says = true);
  // Finds packed tensors; null where something is missing or wrong.
  std::shared_ptr<const PackedTensors> Packed(const std::string& module, int64_t outputs,
                                              int64_t inputs, const PackedFormat& format);
  bool FinishNf4(const std::string& module, int64_t outputs, int64_t inputs, PackedTensors& packed);
  void CheckShape(const TensorInfo& tensor, int64_t outputs, int64_t inputs);
  // The number that multiplies all scales of a weight; a problem unless it is positive.
  float ReadFactor(const TensorInfo& tensor, const PackedFormat& format);
  std::shared_ptr<const PackedTensors> Mxfp4Slice(const std::string& module, int64_t outputs,
                                                  int64_t inputs, int64_t expert, int64_t experts);

  // The format of FP8 if the tensor of all experts' matrices is in it, as config.json says.
  std::optional<PackedFormat> StackedFloats8(const std::string& module) const;
  // The layer of one expert in that tensor and in that of all scales.
  std::shared_ptr<const PackedTensors> Floats8Slice(const std::string& module, const MlpSpec& mlp,
                                                    PackedFormat format, int64_t outputs,
                                                    int64_t inputs, int64_t expert);
  // The scales of one expert: its slice, or a number that all experts share. Null where they are
  // missing or wrong. format: gets the outputs that share a scale, as the tensor's shape tells.
  const TensorInfo* StackedScales(const std::string& module, const MlpSpec& mlp, int64_t outputs,
                                  int64_t inputs, int64_t expert, PackedFormat& format);

  const DecoderSpec& spec_;
  TensorFinder& tensors_;
  bool int8_ = false, packed_ = false;
};

}  // namespace godwit
