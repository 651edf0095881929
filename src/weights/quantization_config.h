// QuantizationConfig: the quantized linear layers of a checkpoint and their formats, by the
// `quantization_config` of a config.json. int8 is in the format of compressed-tensors
// ("int-quantized"), which vLLM and SGLang read, or in that of bitsandbytes (LLM.int8()), which
// transformers reads. Codes in groups ("pack-quantized") are in those that weights/packed_format.h
// lists.
//
// Immutable, thread-safe, cheap to copy.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/weight.h"
#include "weights/hf_config.h"
#include "weights/packed_format.h"

namespace godwit {

// The tensor that holds the scales of an int8 weight X.weight.
enum class Int8Format : uint8_t {
  kCompressedTensors,  // X.weight_scale, [outputs, 1] or [1]
  // X.SCB, [outputs]: 127 times the scale. X.weight_format, a scalar that older writers left out,
  // is 0 for rows one after another.
  kBitsandbytes,
};

// Weights are int8 and symmetric, w = scale * integer, unless they are packed.
struct LayerQuantization {
  bool scale_per_output = true;  // strategy "channel"; else one scale for the tensor, "tensor"
  InputQuantization input = {};  // a static scale and its zero point are tensors, not set here
  Int8Format format = Int8Format::kCompressedTensors;
  std::optional<PackedFormat> packed = {};  // then nothing above is of interest

  bool operator==(const LayerQuantization&) const = default;
};

// "int8 weights with a scale per output, input quantized per token"
std::string Describe(const LayerQuantization& quantization);

// The key of a config.json that says how its model is quantized, in whatever format; none: it is
// in float.
std::optional<std::string_view> QuantizationKey(const HfConfig& config);

class QuantizationConfig {
 public:
  QuantizationConfig() = default;  // nothing is quantized

  // Reads the quantization of a config.json; older ones call it `compression_config`. head: the
  // module of the output head, which transformers leaves in float unless it is told what to skip.
  //
  // Layers are int8 times int8 with one weight scale per output or tensor, or packed as
  // weights/packed_config.h and weights/float_codes_config.h have it. Throws Error(kUnsupported)
  // that names the key for all else: another quant_method, other bits, and transforms. Throws
  // Error(kFormat) for what is no quantization_config.
  static QuantizationConfig Read(const HfConfig& config, const std::string& head);

  // How a linear layer is quantized, by the name of its module; null: it is not quantized.
  const LayerQuantization* Find(std::string_view module) const;

  // All different ones; empty: nothing is quantized.
  std::vector<LayerQuantization> Distinct() const;

  // Gives every input its own scale in layers whose rows would share one (InputScale::kPerTensor).
  // A row alone has the same scale either way. Returns whether there were such layers.
  bool ScaleEachToken();

  // The storage of cached keys and values that config.json recommends ("8-bit floats"); empty: it
  // says nothing. It changes no weight, and the type of keys and values is chosen for each session.
  const std::string& cache_scheme() const { return cache_scheme_; }

 private:
  struct Rules;
  std::shared_ptr<const Rules> rules_;  // null: none
  std::string cache_scheme_;
};

}  // namespace godwit
