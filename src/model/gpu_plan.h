// GpuPlan: how much of a model computes on a GPU, by its memory: the first layers, as many as fit,
// and then the output head.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model_tensors.h"
#include "model/spec.h"
#include "ops/gpu/gpu_layer.h"
#include "ops/gpu/gpu_weight.h"
#include "tensor/dtype.h"

namespace godwit {

// The linear layers of a model as they lie in memory.
struct GpuShapes {
  std::vector<ops::GpuLayerShape> layers;
  // The output head; none: of a storage that GPUs do not multiply, so that it stays on the host.
  std::optional<ops::GpuWeightShape> head;
  bool tied = false;  // the head is the embedding, whose rows the host looks up
  // The attention that the GPU may compute, too; none: the host computes all.
  std::optional<ops::GpuAttends> attention = {};
  int64_t window_bytes = 0;  // of near keys and values that the GPU keeps
};

// The near keys that a GPU keeps in all layers (PolicyOptions::gpu_window): so many tokens of each
// of so many texts, whose numbers take two bytes.
struct GpuWindow {
  int64_t tokens = 0;  // 0: none
  int64_t texts = 1;
};

struct GpuPlan {
  int64_t layers = 0;        // the first ones
  int64_t host_mlps = 0;     // of those layers, whose MLPs or experts the host computes
  int64_t shared_mlps = 0;   // of those, whose MLPs beside experts are on the GPU, too
  bool head = false;         // the output head
  int64_t weight_bytes = 0;  // of both
  int64_t scratch_bytes = 0;
  int64_t window_bytes = 0;  // of near keys and values
  int64_t host_bytes = 0;    // of page-locked memory of the host, through which copies go
  // The bytes of weights that the host gives back: all but a tied head.
  int64_t freed_bytes = 0;

  int64_t bytes() const { return weight_bytes + scratch_bytes + window_bytes; }
};

// Whether GPUs compute the MLPs of such layers: gated ones, without experts, limits or scales. The
// host computes others, such as mixtures of experts, between the halves of a layer.
bool GpuComputesMlp(const MlpSpec& mlp);

// Whether GPUs compute the MLP of all tokens in such layers, while the host computes the experts
// beside it.
bool GpuComputesShared(const DecoderSpec& spec, const LayerKind& kind);

// Throws Error(kUnsupported) that names what GPUs do not compute of a model. Their layers are those
// of Llama: RMS norms, attention with a product for q, k and v, and an MLP, on either side.
void RequireGpuLayers(const DecoderSpec& spec);

// The attention of such a model on a GPU. Throws Error(kUnsupported) that names what GPUs do not
// compute of it.
ops::AttentionShape GpuAttentionShape(const DecoderSpec& spec);

// Adds attention on the GPU to the shapes: to all keys of contexts, and to near keys. Throws as
// GpuAttentionShape does, and Error(kInput) for a window that is no multiple of a tile.
void AddGpuAttention(const DecoderSpec& spec, bool contexts, const GpuWindow& window,
                     GpuShapes& shapes);

// The shapes that a checkpoint's layers get when it is loaded (storage: as LoadDecoder takes it).
// Throws Error(kUnsupported) for layers of a storage that GPUs do not multiply.
GpuShapes GpuShapesOf(const DecoderSpec& spec, const ModelTensors& tensors,
                      std::optional<DType> storage);

// The plan for a GPU of that name, whose memory of so many bytes may be used. step_rows: the most
// rows of a step. Throws Error(kMemory) with the numbers if not one layer fits.
GpuPlan PlanGpu(const GpuShapes& shapes, int64_t step_rows, const std::string& name,
                int64_t memory_bytes);

}  // namespace godwit
