#include "ops/gpu/gpu_layer.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "base/error.h"
#include "ops/copy_rows.h"
#include "ops/gpu/gpu_attention.h"
#include "ops/gpu/gpu_check.h"
#include "ops/gpu/gpu_products.h"

namespace godwit::ops {
namespace {

cuda::ActivationKind KindOf(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return cuda::ActivationKind::kSilu;
    case Activation::kGeluErf:
      return cuda::ActivationKind::kGeluErf;
    case Activation::kGeluTanh:
      return cuda::ActivationKind::kGeluTanh;
    case Activation::kRelu:
      return cuda::ActivationKind::kRelu;
    case Activation::kSquaredRelu:
      return cuda::ActivationKind::kSquaredRelu;
  }
  return cuda::ActivationKind::kNone;
}

struct BuffersBefore {
  GpuRows in;
  cuda::DeviceMatrix<float> qkv;
};
BuffersBefore NewBuffersBefore(GpuScratch& scratch, const GpuLayerShape& shape, int64_t rows) {
  return {.in = NewGpuRows(scratch, shape.qkv, rows),
          .qkv = scratch.Matrix<float>(rows, shape.qkv.outputs)};
}

struct BuffersBehind {
  cuda::DeviceMatrix<float> attended;
  GpuRows attended_in;
  cuda::DeviceMatrix<float> result;  // of attention, then of an MLP that the GPU has all of
};
BuffersBehind NewBuffersBehind(GpuScratch& scratch, const GpuLayerShape& shape, int64_t rows) {
  return {.attended = scratch.Matrix<float>(rows, shape.attention_out.inputs),
          .attended_in = NewGpuRows(scratch, shape.attention_out, rows),
          .result = scratch.Matrix<float>(rows, shape.attention_out.outputs)};
}

struct MlpBuffers {
  GpuRows up_in;
  cuda::DeviceMatrix<float> gate_up;
  GpuRows down_in;
};
MlpBuffers NewMlpBuffers(GpuScratch& scratch, const GpuLayerShape& shape, int64_t rows) {
  return {.up_in = NewGpuRows(scratch, shape.up, rows),
          .gate_up = scratch.Matrix<float>(rows, shape.up.outputs),
          .down_in = NewGpuRows(scratch, shape.down, rows)};
}

// The rows that come from an MLP of the host.
struct HostMlpBuffers {
  cuda::DeviceMatrix<float> results;
  cuda::DeviceMatrix<float> gates = {};
};
HostMlpBuffers NewHostMlpBuffers(GpuScratch& scratch, const GpuLayerShape& shape, int64_t rows) {
  HostMlpBuffers buffers = {.results = scratch.Matrix<float>(rows, shape.qkv.inputs)};
  if (shape.beside_experts) buffers.gates = scratch.Matrix<float>(rows, 1);
  return buffers;
}

std::optional<GpuNorm> NormOn(Gpu& gpu, const NormWeights& norm) {
  if (norm.weight.empty()) return std::nullopt;
  return std::optional<GpuNorm>(std::in_place, gpu, norm);
}

// Fills rows with norm(x), or with x where there is no norm.
void InputInto(const GpuTurn& turn, cuda::DeviceMatrix<float> x, const std::optional<GpuNorm>& norm,
               const GpuWeightShape& w, GpuRows& rows) {
  if (norm) return NormInto(turn, x, *norm, w, rows);
  CopyInto(turn, x, w, rows);
}

// x += norm(result), or the result itself.
void AddResult(const GpuTurn& turn, const std::optional<GpuNorm>& norm,
               cuda::DeviceMatrix<float> result, cuda::DeviceMatrix<float> x) {
  if (norm) {
    cuda::RmsNormRows(turn.stream(), result, norm->gains.As<const float>(), norm->epsilon, result);
  }
  cuda::AddRows(turn.stream(), result, x);
}

bool Quantizes(const GpuLayerShape& shape) {
  return std::ranges::any_of(
      std::initializer_list<const GpuWeightShape*>{&shape.qkv, &shape.attention_out, &shape.up,
                                                   &shape.down},
      [](const GpuWeightShape* w) { return w->outputs > 0 && w->dtype != DType::kBF16; });
}

}  // namespace

int64_t GpuLayerShape::bytes() const {
  const int64_t norms = (norms_before ? 1 : 0) + (norms_behind ? 1 : 0);
  const int64_t norm_bytes = norms * qkv.inputs * static_cast<int64_t>(sizeof(float));
  const int64_t mlp = has_mlp() ? norm_bytes + up.bytes() + down.bytes() : 0;
  return norm_bytes + qkv.bytes() + attention_out.bytes() + mlp;
}

int64_t GpuLayerShape::panel_bytes() const {
  const int64_t mlp = has_mlp() ? up.panel_bytes() + down.panel_bytes() : 0;
  return qkv.panel_bytes() + attention_out.panel_bytes() + mlp;
}

int64_t GpuLayerShape::ScratchBytes(int64_t rows) const {
  GpuScratch x;
  x.Matrix<float>(rows, qkv.inputs);
  GpuScratch before = x, behind = x, beside = x;
  NewBuffersBefore(before, *this, rows);
  NewBuffersBehind(behind, *this, rows);
  if (has_mlp() && !beside_experts) NewMlpBuffers(behind, *this, rows);
  if (beside_experts) beside.Matrix<float>(rows, qkv.inputs);  // results of the MLP
  GpuScratch joined = beside;
  if (beside_experts) NewMlpBuffers(beside, *this, rows);
  if (host_mlp()) NewHostMlpBuffers(joined, *this, rows);
  return std::max({before.used(), behind.used(), beside.used(), joined.used()});
}

GpuStepMemory GpuStepMemory::Of(const GpuLayerShape& layer,
                                const std::optional<GpuAttends>& attends, int64_t rows) {
  GpuScratch here, there;
  here.Matrix<float>(rows, layer.qkv.inputs);  // x
  here.Matrix<float>(rows, layer.qkv.outputs);
  here.Matrix<float>(rows, layer.attention_out.inputs);
  if (layer.host_mlp()) here.Matrix<float>(rows, layer.attention_out.outputs);
  if (layer.beside_experts) here.Matrix<float>(rows, 1);
  there.Matrix<float>(rows, layer.qkv.inputs);  // x
  GpuStepMemory memory{.scratch_bytes = layer.ScratchBytes(rows), .host_bytes = here.used()};
  // One after the other.
  const auto add = [&](const GpuAttentionMemory& attention) {
    memory.Cover({.scratch_bytes = there.used() + attention.scratch_bytes,
                  .host_bytes = here.used() + attention.host_bytes});
  };
  if (attends && attends->contexts) add(GpuAttentionMemoryOf(attends->shape, rows));
  if (attends && attends->near_tiles > 0) {
    add(GpuNearMemoryOf(attends->shape, attends->near_tiles, rows));
  }
  return memory;
}

void GpuStepMemory::Cover(const GpuStepMemory& other) {
  scratch_bytes = std::max(scratch_bytes, other.scratch_bytes);
  host_bytes = std::max(host_bytes, other.host_bytes);
}

struct GpuLayer::Memory {
  struct Mlp {
    std::optional<GpuNorm> norm, out_norm;
    GpuWeight up, down;
    cuda::ActivationKind activation;
    bool beside_experts;
  };

  std::optional<GpuNorm> attention_norm, attention_out_norm;
  GpuWeight qkv, attention_out;
  std::unique_ptr<const Mlp> mlp;  // null: the host has it
};

GpuLayer::GpuLayer(Gpu& gpu, const GatedLayer& layer)
    : memory_(new Memory{.attention_norm = NormOn(gpu, layer.attention_norm),
                         .attention_out_norm = NormOn(gpu, layer.attention_out_norm),
                         .qkv = GpuWeight(gpu, layer.qkv),
                         .attention_out = GpuWeight(gpu, layer.attention_out),
                         .mlp = nullptr}) {
  if (!layer.has_mlp) return;
  memory_->mlp.reset(new Memory::Mlp{.norm = NormOn(gpu, layer.mlp_norm),
                                     .out_norm = NormOn(gpu, layer.mlp_out_norm),
                                     .up = GpuWeight(gpu, layer.up),
                                     .down = GpuWeight(gpu, layer.down),
                                     .activation = KindOf(layer.activation),
                                     .beside_experts = layer.beside_experts});
}

GpuLayer::~GpuLayer() = default;
GpuLayer::GpuLayer(GpuLayer&& other) noexcept = default;
GpuLayer& GpuLayer::operator=(GpuLayer&& other) noexcept = default;

GpuLayerShape GpuLayer::shape() const {
  GpuLayerShape shape = {.qkv = memory_->qkv.shape(),
                         .attention_out = memory_->attention_out.shape(),
                         .norms_before = memory_->attention_norm.has_value(),
                         .norms_behind = memory_->attention_out_norm.has_value()};
  if (memory_->mlp == nullptr) return shape;
  shape.up = memory_->mlp->up.shape();
  shape.down = memory_->mlp->down.shape();
  shape.beside_experts = memory_->mlp->beside_experts;
  return shape;
}

namespace {

// out = the layer's MLP of x, without the norm behind it.
void MlpInto(GpuTurn& turn, const GpuLayerShape& shape, const GpuLayer::Memory::Mlp& mlp,
             cuda::DeviceMatrix<float> x, cuda::DeviceMatrix<float> out) {
  MlpBuffers buffers = NewMlpBuffers(turn.scratch(), shape, x.rows);
  InputInto(turn, x, mlp.norm, shape.up, buffers.up_in);
  MultiplyRows(turn, buffers.up_in, mlp.up, buffers.gate_up);
  GateInto(turn, mlp.activation, buffers.gate_up, shape.down, buffers.down_in);
  MultiplyRows(turn, buffers.down_in, mlp.down, out);
}

}  // namespace

struct GpuStep::Impl {
  Impl(const Exec& exec, Gpu& gpu, const GpuStepMemory& memory,
       const std::optional<GpuAttends>& attends, GpuTiles* near)
      : contexts(attends && attends->contexts),
        near_tiles(attends ? attends->near_tiles : 0),
        tiles(near),
        turn(exec, gpu, memory.scratch_bytes, memory.host_bytes) {}

  void RequireNumbersIn(MatrixView<const float> rows) const {
    if (quantizes) RequireNumbers(turn.exec(), rows);
  }

  const bool contexts;
  const int64_t near_tiles;
  GpuTiles* const tiles;
  GpuTurn turn;
  cuda::Event copied{turn.stream().device()};  // x, to the host
  int64_t used_before_near = 0;                // of page-locked memory
  cuda::DeviceMatrix<float> x;
  MatrixView<float> x_here;  // on its way in either direction
  int64_t used_for_x = 0;    // of scratch memory
  // The results of an MLP beside experts, until the host has computed those.
  cuda::DeviceMatrix<float> beside;
  bool quantizes = false;
};

GpuStep::GpuStep(const Exec& exec, Gpu& gpu, const GpuStepMemory& memory,
                 const std::optional<GpuAttends>& attends, GpuTiles* tiles)
    : impl_(std::make_unique<Impl>(exec, gpu, memory, attends, tiles)) {}
GpuStep::~GpuStep() = default;

void GpuStep::Put(MatrixView<const float> x) {
  impl_->x = impl_->turn.scratch().Matrix<float>(x.rows, x.cols);
  impl_->used_for_x = impl_->turn.scratch().used();
  impl_->x_here = HostMatrix(x.rows, x.cols);
  CopyRows(impl_->turn.exec(), x, impl_->x_here);
  impl_->turn.CopyIn(impl_->x_here, impl_->x);
}

MatrixView<float> GpuStep::HostMatrix(int64_t rows, int64_t cols) {
  const cuda::DeviceMatrix<float> made = impl_->turn.host().Matrix<float>(rows, cols);
  return {made.data, made.rows, made.cols, made.stride};
}

void GpuStep::Attend(const AttentionShape& shape, std::span<const AttentionRows> texts,
                     std::span<const float> sink_logits, MatrixView<float> out) {
  AttendOnGpu(impl_->turn, shape, texts, sink_logits, out);
}

bool GpuStep::attends_to_contexts() const { return impl_->contexts; }

void GpuStep::BeginNear(const AttentionShape& shape, int64_t layer, std::span<NearRows> texts) {
  for (const NearRows& text : texts) {
    if (text.tiles.count() <= impl_->near_tiles) continue;
    Throw(ErrorKind::kMemory,
          "the GPU keeps the keys and values of {} tokens of a text, and {} are near",
          impl_->near_tiles * kernels::kTileTokens, text.tiles.count() * kernels::kTileTokens);
  }
  impl_->used_before_near = impl_->turn.host().used();
  BeginNearOnGpu(impl_->turn, *impl_->tiles, shape, layer, texts);
}

void GpuStep::FinishNear(const AttentionShape& shape, std::span<const AttentionRows> far,
                         std::span<const NearRows> texts, std::span<const float> sink_logits,
                         MatrixView<float> out) {
  impl_->turn.Wait();
  ops::FinishNear(impl_->turn.exec(), shape, far, texts, sink_logits, out);
  impl_->turn.host().Release(impl_->used_before_near);
}

bool GpuStep::keeps_near_keys() const { return impl_->tiles != nullptr; }

void GpuStep::BeforeAttention(const GpuLayer& layer, MatrixView<float> qkv) {
  GpuTurn& turn = impl_->turn;
  const ProfilePart measured(turn.exec().profile, StepPart::kProducts);
  const GpuLayer::Memory& w = layer.memory();
  const int64_t used = turn.scratch().used();
  BuffersBefore buffers = NewBuffersBefore(turn.scratch(), layer.shape(), qkv.rows);
  InputInto(turn, impl_->x, w.attention_norm, w.qkv.shape(), buffers.in);
  MultiplyRows(turn, buffers.in, w.qkv, buffers.qkv);
  turn.CopyOut(buffers.qkv, qkv);
  turn.scratch().Release(used);
  turn.Wait();
}

void GpuStep::BehindAttention(const GpuLayer& layer, MatrixView<const float> attended) {
  GpuTurn& turn = impl_->turn;
  const ProfilePart measured(turn.exec().profile, StepPart::kProducts);
  const GpuLayer::Memory& w = layer.memory();
  const GpuLayerShape shape = layer.shape();
  const int64_t used = turn.scratch().used();
  BuffersBehind buffers = NewBuffersBehind(turn.scratch(), shape, attended.rows);
  turn.CopyIn(attended, buffers.attended);
  CopyInto(turn, buffers.attended, shape.attention_out, buffers.attended_in);
  MultiplyRows(turn, buffers.attended_in, w.attention_out, buffers.result);
  AddResult(turn, w.attention_out_norm, buffers.result, impl_->x);
  if (!shape.host_mlp()) {
    MlpInto(turn, shape, *w.mlp, impl_->x, buffers.result);
    AddResult(turn, w.mlp->out_norm, buffers.result, impl_->x);
  }
  turn.scratch().Release(used);
  impl_->quantizes = impl_->quantizes || Quantizes(shape);
}

MatrixView<const float> GpuStep::BeforeHostMlp(const GpuLayer& layer) {
  const MatrixView<float> x = impl_->x_here;
  GpuTurn& turn = impl_->turn;
  const GpuLayerShape shape = layer.shape();
  turn.CopyOut(impl_->x, x);
  impl_->copied.RecordIn(turn.stream());
  if (shape.beside_experts) {
    impl_->beside = turn.scratch().Matrix<float>(x.rows, x.cols);
    const int64_t used = turn.scratch().used();
    MlpInto(turn, shape, *layer.memory().mlp, impl_->x, impl_->beside);
    turn.scratch().Release(used);
  }
  const ProfilePart measured(turn.exec().profile, StepPart::kProducts);
  turn.Await(impl_->copied);
  impl_->RequireNumbersIn(x);
  return x;
}

void GpuStep::BehindHostMlp(const GpuLayer& layer, MatrixView<const float> results,
                            MatrixView<const float> gates) {
  GpuTurn& turn = impl_->turn;
  const GpuLayerShape shape = layer.shape();
  const HostMlpBuffers buffers = NewHostMlpBuffers(turn.scratch(), shape, results.rows);
  turn.CopyIn(results, buffers.results);
  if (!shape.beside_experts) {
    cuda::AddRows(turn.stream(), buffers.results, impl_->x);
  } else {
    if (gates.rows > 0) {
      turn.CopyIn(gates, buffers.gates);
      cuda::AddGatedRows(turn.stream(), impl_->beside, buffers.gates, buffers.results);
    } else {
      cuda::AddRows(turn.stream(), impl_->beside, buffers.results);
    }
    AddResult(turn, layer.memory().mlp->out_norm, buffers.results, impl_->x);
  }
  turn.scratch().Release(impl_->used_for_x);
}

void GpuStep::Get(MatrixView<float> x) {
  GpuTurn& turn = impl_->turn;
  turn.CopyOut(impl_->x, impl_->x_here);
  turn.Wait();
  CopyRows(turn.exec(), impl_->x_here, x);
  impl_->RequireNumbersIn(x);
}

}  // namespace godwit::ops
