// The layers of a decoder that compute on a GPU.
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/decoder.h"
#include "ops/gpu/gpu.h"
#include "ops/gpu/gpu_layer.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace godwit {
namespace {

// Throws Error(kUnsupported) for a weight that GPUs do not multiply.
ops::GpuWeightShape RequireOnGpu(const Weight& w) {
  if (const std::string why = ops::WhyNotOnGpu(w); !why.empty()) {
    Throw(ErrorKind::kUnsupported, "linear layer {}: {}",
          w.name.empty() ? "without a name" : w.name, why);
  }
  return ops::GpuShapeOf(w);
}

}  // namespace

void Decoder::PlaceOn(std::shared_ptr<ops::Gpu> gpu, int64_t step_rows, bool attends,
                      const GpuWindow& window) {
  if (ranks_ != nullptr) {
    Throw(ErrorKind::kUnsupported,
          "a GPU computes the layers of a whole model, and {} ranks share the weights of this one",
          ranks_->size());
  }
  RequireGpuLayers(spec_);
  GpuShapes shapes{.tied = spec_.tied_head};
  AddGpuAttention(spec_, attends, window, shapes);
  for (int64_t i = 0; i < spec_.layers; ++i) {
    const DecoderLayer& layer = weights_.layers[i];
    ops::GpuLayerShape& shape = shapes.layers.emplace_back();
    shape.qkv = RequireOnGpu(layer.qkv);
    shape.attention_out = RequireOnGpu(layer.attention_out);
    const LayerKind& kind = KindOf(spec_, i);
    shape.norms_before = kind.input_norms;
    shape.norms_behind = kind.output_norms;
    if (GpuComputesMlp(kind.mlp)) {
      shape.up = RequireOnGpu(layer.up);
      shape.down = RequireOnGpu(layer.down);
    } else if (GpuComputesShared(spec_, kind) && ops::WhyNotOnGpu(layer.up).empty() &&
               ops::WhyNotOnGpu(layer.down).empty()) {
      shape.up = ops::GpuShapeOf(layer.up);
      shape.down = ops::GpuShapeOf(layer.down);
      shape.beside_experts = true;
    }
  }
  if (ops::WhyNotOnGpu(weights_.head).empty()) shapes.head = ops::GpuShapeOf(weights_.head);
  auto placed = std::make_unique<OnGpu>();
  placed->plan = PlanGpu(shapes, step_rows, gpu->name(), gpu->limit_bytes() - gpu->taken_bytes());
  placed->attention = shapes.attention;
  if (shapes.window_bytes > 0) {
    placed->tiles =
        std::make_unique<ops::GpuTiles>(*gpu, Geometry(spec_).layers, shapes.window_bytes);
  }
  gpu->ReserveScratch(placed->plan.scratch_bytes);
  gpu->ReserveHost(placed->plan.host_bytes);
  for (int64_t i = 0; i < placed->plan.layers; ++i) {
    const DecoderLayer& layer = weights_.layers[i];
    const LayerKind& kind = KindOf(spec_, i);
    const ops::GpuLayerShape& shape = shapes.layers[i];
    placed->layers.emplace_back(
        *gpu, ops::GatedLayer{
                  .attention_norm = layer.attention_norm,
                  .qkv = layer.qkv,
                  .attention_out = layer.attention_out,
                  .attention_out_norm = layer.attention_out_norm,
                  .has_mlp = shape.has_mlp(),
                  .beside_experts = shape.beside_experts,
                  .mlp_norm = layer.mlp_norm,
                  .up = layer.up,
                  .down = layer.down,
                  .mlp_out_norm = layer.mlp_out_norm,
                  .activation = (shape.beside_experts ? kind.shared_mlp : kind.mlp).activation});
  }
  if (placed->plan.head) placed->head.emplace(*gpu, weights_.head);
  // Nothing here multiplies by them any more. They go together, so that an error before leaves a
  // decoder that is whole.
  for (int64_t i = 0; i < placed->plan.layers; ++i) {
    DecoderLayer& layer = weights_.layers[i];
    layer.qkv.panels.GiveBack();
    layer.attention_out.panels.GiveBack();
    if (!shapes.layers[i].has_mlp()) continue;
    layer.up.panels.GiveBack();
    layer.down.panels.GiveBack();
  }
  if (placed->plan.head && !spec_.tied_head) weights_.head.panels.GiveBack();
  placed->gpu = std::move(gpu);
  on_gpu_ = std::move(placed);
}

ops::GpuStepMemory Decoder::OnGpu::MemoryOf(int64_t rows) const {
  ops::GpuStepMemory memory;
  for (const ops::GpuLayer& layer : layers) {
    memory.Cover(ops::GpuStepMemory::Of(layer.shape(), attention, rows));
  }
  return memory;
}

void Decoder::ExpertsBeside(const Exec& exec, int64_t index, MatrixView<const float> x,
                            MatrixView<float> out, MatrixView<float> gates) const {
  Workspace::Scope scope(exec.workspace);
  const DecoderLayer& layer = weights_.layers[index];
  const auto normed = exec.workspace.Matrix<float>(x.rows, x.cols);
  ops::Norm(exec, x, layer.mlp_norm, normed);
  RoutedExperts(exec, KindOf(spec_, index).mlp, layer, normed, out);
  if (gates.rows > 0) ops::Linear(exec, normed, layer.shared_share, gates);
}

void Decoder::ForwardOnGpu(const Exec& exec, AttentionStep& step, ops::GpuStep& on_gpu,
                           MatrixView<float> x) const {
  // Layers have equal heads.
  const auto qkv = on_gpu.HostMatrix(x.rows, weights_.layers.front().qkv.outputs);
  const auto attended = on_gpu.HostMatrix(x.rows, spec_.heads * spec_.head_dim);
  MatrixView<float> mlp_out, gates;
  if (on_gpu_->plan.host_mlps > 0) mlp_out = on_gpu.HostMatrix(x.rows, x.cols);
  if (on_gpu_->plan.shared_mlps > 0) gates = on_gpu.HostMatrix(x.rows, 1);
  on_gpu.Put(x);
  for (int64_t i = 0; i < std::ssize(on_gpu_->layers); ++i) {
    const ops::GpuLayer& layer = on_gpu_->layers[i];
    const auto attend = [&](AttentionInput input, MatrixView<float> results) {
      input.reader = attention_readers_[i];
      step.Attend(attention_places_[i], input, results);
    };
    on_gpu.BeforeAttention(layer, qkv);
    AttendToHeads(exec, i, attend, qkv, attended);
    on_gpu.BehindAttention(layer, attended);
    const ops::GpuLayerShape shape = layer.shape();
    if (!shape.host_mlp()) continue;
    const MatrixView<const float> mlp_in = on_gpu.BeforeHostMlp(layer);
    const bool gated = shape.beside_experts && KindOf(spec_, i).shared_gated;
    if (shape.beside_experts) {
      ExpertsBeside(exec, i, mlp_in, mlp_out, gated ? gates : MatrixView<float>());
    } else {
      MlpBlock(exec, i, mlp_in, mlp_out);
    }
    on_gpu.BehindHostMlp(layer, mlp_out, gated ? gates : MatrixView<float>());
  }
  on_gpu.Get(x);
}

}  // namespace godwit
