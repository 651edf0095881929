// The quantized model as a folder. Its format is compressed-tensors "int-quantized", or
// "pack-quantized" if only weights have 4 bits, which vLLM reads, too. A scheme with outliers
// becomes bitsandbytes, which transformers reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "ops/exec.h"
#include "quant/group_codes.h"
#include "quant/quant_plan.h"
#include "quant/scaled_tensor.h"
#include "quant/scheme.h"
#include "quant/static_scales.h"
#include "weights/safetensors_writer.h"
#include "weights/weight_source.h"

namespace godwit::quant {

// The tensors of the new checkpoint, in the order of the old one. A quantized X.weight is followed
// by X.weight_scale and, with static scales, X.input_scale; for bitsandbytes by X.SCB and
// X.weight_format. In "pack-quantized", X.weight_packed, X.weight_scale and X.weight_shape replace
// X.weight, with X.weight_zero_point if the scheme has zero points. A tensor of all experts of a
// layer becomes one for each matrix: formats of quantized checkpoints have no others.
std::vector<NewTensor> PlanTensors(const WeightSource& source, const QuantPlan& plan,
                                   const Scheme& scheme);

struct WriteInput {
  // The model's folder, or `to` itself if all but the weights is there already.
  const std::filesystem::path& from;
  const WeightSource& source;  // the model's weights
  const QuantPlan& plan;
  const Scheme& scheme;
  const Scalings& scalings;
  const InputMaxima& input_maxima;  // for static scales
  const GroupedMatrices& rounded;   // with groups; weights not in it are rounded to the nearest
  int64_t max_shard_bytes = SafetensorsWriter::kMaxShardBytes;
};

// Fills the empty folder `to`: weights, config.json, and every other file of the model except its
// weights, unchanged. Blocks of GGUF that stay in float become BF16. One tensor is in memory at a
// time. progress: bytes of the old weights.
void WriteCheckpoint(const Exec& exec, const WriteInput& input, const std::filesystem::path& to,
                     const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace godwit::quant
