#include "model/gpu_plan.h"

#include <algorithm>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "model/loaded_storage.h"
#include "ops/gpu/gpu_attention.h"
#include "ops/gpu/gpu_tiles.h"
#include "ops/kv_layout.h"
#include "ops/quantize_groups.h"

namespace godwit {
namespace {

// The property of a spec that GPUs do not compute; empty: there is none.
std::string_view BeyondGpus(const DecoderSpec& spec) {
  if (spec.topology != Topology::kSequential) return "attention and MLP beside each other";
  if (spec.norm != ops::NormKind::kRms || spec.norm_bias) return "layer norms";
  if (spec.latent) return "latent attention";
  if (spec.streams) return "several residual streams";
  if (spec.layer_embedding) return "embeddings for each layer";
  if (spec.layer_scales) return "scales behind each layer";
  if (spec.residual_scale != 1 || spec.attention_scale != 1) return "scales of layers' results";
  if (spec.eagle3) return "an EAGLE-3 head";
  if (HasUnequalKeys(spec)) return "layers with unequal keys";
  return {};
}

std::string_view BeyondGpus(const LayerKind& kind) {
  if (kind.mixer != Mixer::kAttention) return "layers without attention";
  if (kind.keys_of >= 0) return "layers that read another's keys";
  if (!HasMlp(kind)) return "layers without an MLP";
  return {};
}

// Why GPUs do not multiply the int8 layers of a checkpoint; empty: they do, or there are none.
std::string_view BeyondGpus(const QuantizationConfig& quantization) {
  for (const LayerQuantization& layer : quantization.Distinct()) {
    if (!layer.packed && !(layer.input == InputQuantization{})) {
      return "int8 inputs without a scale for each token";
    }
  }
  return {};
}

ops::GpuWeightShape ShapeOf(const LinearTensors& linear, std::optional<DType> storage) {
  const auto format = storage ? std::nullopt : FormatAsStored(linear);
  const DType dtype = StoredType(linear, storage);
  ops::GpuWeightShape shape{.dtype = dtype, .outputs = linear.outputs(), .inputs = linear.inputs()};
  if (dtype == DType::kGrouped) shape.groups = format ? *format : ops::kQuantizedGroups;
  return shape;
}

bool IsOnGpu(const ops::GpuWeightShape& w) { return ops::WhyNotOnGpu(w.dtype).empty(); }

}  // namespace

bool GpuComputesMlp(const MlpSpec& mlp) {
  return mlp.experts == 0 && mlp.gated && !mlp.xielu && !mlp.clamped && !mlp.cut_deviations &&
         mlp.gate_scale == 1 && mlp.out_scale == 1;
}

bool GpuComputesShared(const DecoderSpec& spec, const LayerKind& kind) {
  return kind.mlp.experts > 0 && kind.shared_mlp.intermediate > 0 && !spec.branch_norms &&
         GpuComputesMlp(kind.shared_mlp);
}

void RequireGpuLayers(const DecoderSpec& spec) {
  std::string_view beyond = BeyondGpus(spec);
  for (const auto& [first, count] : LayersByKind(spec)) {
    if (beyond.empty()) beyond = BeyondGpus(KindOf(spec, first));
  }
  if (beyond.empty()) beyond = BeyondGpus(spec.quantization);
  if (beyond.empty()) return;
  Throw(ErrorKind::kUnsupported,
        "GPUs compute layers like those of Llama, and this model of the family {} has {}",
        spec.family, beyond);
}

ops::AttentionShape GpuAttentionShape(const DecoderSpec& spec) {
  const AttentionGeometry geometry = Geometry(spec);
  const std::string why = ops::WhyNoGpuAttention(geometry.shape, geometry.alibi, DType::kBF16);
  if (!why.empty()) Throw(ErrorKind::kUnsupported, "{}", why);
  return geometry.shape;
}

void AddGpuAttention(const DecoderSpec& spec, bool contexts, const GpuWindow& window,
                     GpuShapes& shapes) {
  if (!contexts && window.tokens == 0) return;
  if (window.tokens < 0 || window.tokens % kTileTokens != 0 || window.texts < 1) {
    Throw(ErrorKind::kInput,
          "a GPU keeps keys and values of a multiple of {} tokens of each text, found {} tokens of "
          "{} texts",
          kTileTokens, window.tokens, window.texts);
  }
  shapes.attention = ops::GpuAttends{.shape = GpuAttentionShape(spec),
                                     .contexts = contexts,
                                     .near_tiles = window.tokens / kTileTokens};
  const int64_t tiles = CheckedMul(window.tokens / kTileTokens, window.texts).value_or(INT32_MAX);
  shapes.window_bytes = ops::GpuTileBytes(shapes.attention->shape, Geometry(spec).layers,
                                          std::min<int64_t>(tiles, INT32_MAX));
}

GpuShapes GpuShapesOf(const DecoderSpec& spec, const ModelTensors& tensors,
                      std::optional<DType> asked) {
  const std::optional<DType> storage = LoadedStorage(tensors, asked);
  GpuShapes shapes{.tied = spec.tied_head};
  for (const LayerTensors& layer : tensors.layers) {
    const LayerKind& kind = KindOf(spec, std::ssize(shapes.layers));
    ops::GpuLayerShape made{.qkv = ShapeOf(layer.qkv, storage),
                            .attention_out = ShapeOf(layer.attention_out, storage),
                            .norms_before = kind.input_norms,
                            .norms_behind = kind.output_norms};
    const bool shared = GpuComputesShared(spec, kind);
    if (GpuComputesMlp(kind.mlp) || shared) {
      made.up = ShapeOf(layer.mlp.up, storage);
      made.down = ShapeOf(layer.mlp.down, storage);
      made.beside_experts = shared;
    }
    if (shared && !(IsOnGpu(made.up) && IsOnGpu(made.down))) {
      made.up = made.down = {};
      made.beside_experts = false;
    }
    shapes.layers.push_back(made);
    for (const ops::GpuWeightShape* w : {&made.qkv, &made.attention_out, &made.up, &made.down}) {
      if (w->outputs == 0) continue;
      if (const std::string why = ops::WhyNotOnGpu(w->dtype); !why.empty()) {
        Throw(ErrorKind::kUnsupported, "{}", why);
      }
    }
  }
  const ops::GpuWeightShape head = ShapeOf(tensors.head, HeadStorage(storage));
  if (IsOnGpu(head)) shapes.head = head;
  return shapes;
}

GpuPlan PlanGpu(const GpuShapes& shapes, int64_t step_rows, const std::string& name,
                int64_t memory_bytes) {
  GpuPlan plan{.window_bytes = shapes.window_bytes};
  const int64_t all_bytes = memory_bytes;
  memory_bytes -= plan.window_bytes;
  ops::GpuStepMemory step;
  for (const ops::GpuLayerShape& layer : shapes.layers) {
    ops::GpuStepMemory covered = step;
    covered.Cover(ops::GpuStepMemory::Of(layer, shapes.attention, step_rows));
    if (plan.weight_bytes + layer.bytes() + covered.scratch_bytes > memory_bytes) break;
    ++plan.layers;
    plan.host_mlps += layer.host_mlp() ? 1 : 0;
    plan.shared_mlps += layer.beside_experts ? 1 : 0;
    plan.weight_bytes += layer.bytes();
    plan.freed_bytes += layer.panel_bytes();
    step = covered;
  }
  plan.scratch_bytes = step.scratch_bytes;
  plan.host_bytes = step.host_bytes;
  if (plan.layers == 0) {
    const ops::GpuLayerShape& layer = shapes.layers.front();
    Throw(ErrorKind::kMemory,
          "no layer fits into {} of {}: a layer takes {}, and steps of {} tokens{} {}{}; this "
          "machine has {} of memory available",
          FormatBytes(all_bytes), name, FormatBytes(layer.bytes()), step_rows,
          shapes.attention ? " with attention" : "",
          FormatBytes(ops::GpuStepMemory::Of(layer, shapes.attention, step_rows).scratch_bytes),
          plan.window_bytes == 0 ? ""
                                 : fmt::format(", and keys and values that it keeps {}",
                                               FormatBytes(plan.window_bytes)),
          FormatBytes(ReadMachineMemory().available_bytes));
  }
  if (!shapes.head || plan.layers < std::ssize(shapes.layers)) return plan;
  const int64_t scratch = std::max(plan.scratch_bytes, ops::GpuLinearScratchBytes(*shapes.head));
  plan.head = plan.weight_bytes + shapes.head->bytes() + scratch <= memory_bytes;
  if (!plan.head) return plan;
  plan.weight_bytes += shapes.head->bytes();
  if (!shapes.tied) plan.freed_bytes += shapes.head->panel_bytes();
  plan.scratch_bytes = scratch;
  return plan;
}

}  // namespace godwit
