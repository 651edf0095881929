// Layers on a GPU: x += out(attention(qkv(norm(x)))), then x += down(activation(gate) * up), with
// gate and up of norm(x). Norms may stand before both, behind both, or in both places. The residual
// stream x stays on the GPU from layer to layer. Keys and values lie on the host: q, k and v come
// from the GPU, and attention's results go there. The host computes those, or the GPU does
// (gpu_attention.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/exec.h"
#include "ops/gpu/gpu.h"
#include "ops/gpu/gpu_near.h"
#include "ops/gpu/gpu_weight.h"
#include "ops/norm.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

struct GpuLayerShape {
  GpuWeightShape qkv, attention_out;
  GpuWeightShape up;  // gate, then up; no outputs: the host computes the MLP
  GpuWeightShape down;
  // Whether that MLP is one of all tokens, and the host computes experts beside it.
  bool beside_experts = false;
  // Whether norms stand before attention and the MLP, and behind them.
  bool norms_before = true;
  bool norms_behind = false;

  bool has_mlp() const { return up.outputs > 0; }
  // Whether the host computes an MLP, or the experts of one.
  bool host_mlp() const { return !has_mlp() || beside_experts; }
  // The bytes of the copies, with those of the norms.
  int64_t bytes() const;
  // The bytes of the panels alone.
  int64_t panel_bytes() const;
  // The bytes of scratch memory of a step of so many rows.
  int64_t ScratchBytes(int64_t rows) const;
};

// The attention that a GPU computes beside layers.
struct GpuAttends {
  AttentionShape shape;
  bool contexts = false;   // GpuStep::Attend
  int64_t near_tiles = 0;  // GpuStep::BeginNear, for so many near tiles of a row at most
};

// The memory of a step of so many rows through one such layer: scratch memory of the GPU, and
// page-locked memory of the host. attends: none, the host computes all attention.
struct GpuStepMemory {
  int64_t scratch_bytes = 0;
  int64_t host_bytes = 0;

  static GpuStepMemory Of(const GpuLayerShape& layer, const std::optional<GpuAttends>& attends,
                          int64_t rows);
  // Makes it enough for the other, too.
  void Cover(const GpuStepMemory& other);
};

// The weights on the host, borrowed. Norms are RMS norms without biases, or empty.
struct GatedLayer {
  const NormWeights& attention_norm;
  const Weight& qkv;
  const Weight& attention_out;
  const NormWeights& attention_out_norm;
  // The rest is for the MLP of a GPU. Without it, the host computes one, such as a mixture of
  // experts. beside_experts: GpuLayerShape's.
  bool has_mlp = true;
  bool beside_experts = false;
  const NormWeights& mlp_norm;
  const Weight& up;
  const Weight& down;
  const NormWeights& mlp_out_norm;
  Activation activation;
};

class GpuLayer {
 public:
  // Copies the weights. Throws Error(kMemory) if they do not fit.
  GpuLayer(Gpu& gpu, const GatedLayer& layer);
  ~GpuLayer();
  GpuLayer(GpuLayer&& other) noexcept;
  GpuLayer& operator=(GpuLayer&& other) noexcept;

  GpuLayerShape shape() const;

  struct Memory;
  const Memory& memory() const { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

// A step of some rows through layers, one after the other. It has the GPU alone while it lives.
// Matrices are the host's, and stay as they are until the step ends or a function that waits has
// returned. Rows have the same bits in any company. Every function throws what devices throw, and
// Error(kCancelled). A step that threw did nothing but to x on the GPU.
class GpuStep {
 public:
  // memory: GpuStepMemory that covers all layers. attends: for which memory was planned. tiles: of
  // near keys, with attends->near_tiles; else null.
  GpuStep(const Exec& exec, Gpu& gpu, const GpuStepMemory& memory,
          const std::optional<GpuAttends>& attends = {}, GpuTiles* tiles = nullptr);
  ~GpuStep();
  GpuStep(const GpuStep&) = delete;
  GpuStep& operator=(const GpuStep&) = delete;

  // x [rows, hidden]: the residual stream before the first layer. It crosses the bus through
  // page-locked memory, and so it does on all ways back.
  void Put(MatrixView<const float> x);
  // A matrix of the host for a step's rows of q, k and v, or of attention's results. Or for the
  // results and the gates [rows, 1] of the host's MLPs. One of each is planned. They are
  // page-locked, and there as long as the step.
  MatrixView<float> HostMatrix(int64_t rows, int64_t cols);
  // Computes attention as AttendOnGpu does (gpu_attention.h), between the halves of a layer or for
  // one that lies on the host. Memory was planned for it.
  void Attend(const AttentionShape& shape, std::span<const AttentionRows> texts,
              std::span<const float> sink_logits, MatrixView<float> out);
  bool attends_to_contexts() const;
  // Begins to attend to near keys (gpu_near.h) in a layer, counted among those with keys. The host
  // may attend to the others until FinishNear, which waits and merges the states of both.
  void BeginNear(const AttentionShape& shape, int64_t layer, std::span<NearRows> texts);
  void FinishNear(const AttentionShape& shape, std::span<const AttentionRows> far,
                  std::span<const NearRows> texts, std::span<const float> sink_logits,
                  MatrixView<float> out);
  bool keeps_near_keys() const;
  // Computes qkv [rows, outputs] = product(norm(x)), and waits.
  void BeforeAttention(const GpuLayer& layer, MatrixView<float> qkv);
  // Adds what the layer makes of attention's results [rows, inputs], and its MLP if the GPU has
  // all of that.
  void BehindAttention(const GpuLayer& layer, MatrixView<const float> attended);
  // Returns the residual stream [rows, hidden] before an MLP of the host, which stays as it is
  // until the next one. Waits for that alone: meanwhile the GPU computes the layer's MLP beside
  // experts, if it has one. Throws as Get does.
  MatrixView<const float> BeforeHostMlp(const GpuLayer& layer);
  // Adds the results of an MLP of the host. Beside experts, those of the GPU's MLP are added to
  // them first, and the norm behind both is the GPU's. gates: [rows, 1], whose sigmoids are factors
  // on the rows of the GPU's MLP; empty: there are none.
  void BehindHostMlp(const GpuLayer& layer, MatrixView<const float> results,
                     MatrixView<const float> gates);
  // x: the residual stream behind the last layer. Waits. Throws Error(kUnsupported) if a row that
  // was quantized held NaN or infinity.
  void Get(MatrixView<float> x);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::ops
