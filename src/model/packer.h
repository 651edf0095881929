// The packing of the tensors of a checkpoint into a model's weights.
//
// Internal to src/model. packer.cc packs matrices, tables and numbers, packer_layers.cc the parts
// of a layer.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "model/decoder.h"
#include "model/loader.h"
#include "model/model_tensors.h"
#include "model/packed_file.h"
#include "model/spec.h"
#include "ops/activation.h"
#include "ops/moe.h"
#include "ops/norm.h"
#include "tensor/arena.h"
#include "tensor/weight.h"
#include "weights/packed_rows.h"
#include "weights/weight_source.h"

namespace godwit {

// The numbers of a range.
std::vector<float> Taken(const std::vector<float>& numbers, const IndexRange& range);

// The source or the destination of packed weights. At most one is set.
struct PackedPlaces {
  PackedReader* from = nullptr;
  PackedWriter* to = nullptr;
  Arena* memory = nullptr;
};

// Packs the tensors that the resolver found.
class Packer {
 public:
  // stored: the model that the checkpoint holds, of which `spec` may be a share.
  Packer(const DecoderSpec& spec, const DecoderSpec& stored, const WeightSource& source,
         ThreadPool& pool, const LoadHooks& hooks, std::optional<DType> storage,
         const PackedPlaces& places)
      : spec_(spec),
        stored_(stored),
        source_(source),
        pool_(pool),
        hooks_(hooks),
        storage_(storage),
        places_(places) {}

  DecoderWeights Pack(const ModelTensors& tensors);

 private:
  DecoderLayer Layer(const LayerTensors& tensors);
  void BranchNorms(const LayerTensors& tensors, DecoderLayer& layer);
  void Streams(const LayerTensors& tensors, DecoderLayer& layer);
  PredictionWeights Prediction(const PredictionTensors& tensors);
  LatentWeights Latent(const LatentTensors& tensors);
  ops::NormWeights IndexNorm(const LatentTensors& tensors);
  Weight Linear(const LinearTensors& tensors) { return Linear(tensors, storage_); }
  Weight Linear(const LinearTensors& tensors, std::optional<DType> storage);
  // Reads the layer from the packed copy.
  Weight TakeLinear(const LinearTensors& tensors, std::optional<DType> storage,
                    const std::optional<GroupFormat>& format) const;
  Weight PackFloats(const LinearTensors& tensors, std::optional<DType> storage);
  Weight PackGroups(const LinearTensors& tensors, const GroupFormat& format);
  // Returns no rows unless the parts are packed.
  std::vector<PackedRows> ReadPackedParts(const LinearTensors& tensors);
  // Finishes a layer whose rows are packed: reports NaN and adds biases.
  void FinishRows(const LinearTensors& tensors, std::span<const std::atomic<bool>> nan,
                  Weight& weight);
  // The part and row of a packed output. PlaceOf also prefetches the next tensor.
  struct Place {
    size_t part;
    int64_t row;
  };
  Place PlaceOf(const LinearTensors& tensors, std::span<const int64_t> ends, int64_t output) const;
  // The quantization of the input. Fused layers share one.
  InputQuantization Input(const LinearTensors& tensors);
  std::vector<ops::Expert> Experts(const std::vector<MlpTensors>& experts);
  // Prefetches as large a part of the next tensor as [begin, end) is of `all` of this one, which is
  // about to be packed. The disk reads it meanwhile. Asking for all at once would wait for the
  // disk.
  void PrefetchNext(int64_t begin, int64_t end, int64_t all) const;
  Table MappedRows(const TensorInfo& tensor);
  // rows: of the table; none: all.
  Table Rows(const TensorInfo& tensor, const std::optional<IndexRange>& rows = {});
  Table PackRows(const TensorInfo& tensor, int64_t first, Table table);
  ops::NormWeights Norm(const NormTensors& tensors);
  std::vector<float> Numbers(const TensorInfo& tensor);
  ShortConvolutionWeights Convolution(const LayerTensors& tensors);
  std::vector<float> DecayRates(const TensorInfo& tensor, bool negated);
  GatedDeltaNetWeights Delta(const DeltaTensors& tensors);
  void MambaNumbers(const Mamba2Tensors& tensors, Mamba2Weights& weights);
  ops::NormWeights HeadNorm(const NormTensors& tensors);
  std::vector<float> SinkLogits(const LayerTensors& tensors);
  ops::Xielu Xielu(const LayerTensors& tensors);
  std::vector<float> Floats(const TensorInfo& tensor);
  // Numbers of all parts of `linear`, one for each output, in packed order.
  std::vector<float> Packed(const LinearTensors& linear,
                            const std::vector<std::vector<float>>& parts) const;
  void Done(const TensorInfo& tensor, bool has_nan);
  void BeginToRead(const ModelTensors& tensors) const;
  void WarnIfUntied(const TensorInfo& embedding) const;

  const DecoderSpec& spec_;
  const DecoderSpec& stored_;
  const WeightSource& source_;
  ThreadPool& pool_;
  const LoadHooks& hooks_;
  std::optional<DType> storage_;
  PackedPlaces places_;
  std::vector<const LinearTensors*> next_;  // linear layers to come, the next one last
  int64_t done_bytes_ = 0;
  int64_t total_bytes_ = 0;
};

}  // namespace godwit
