#include "model/loaded_storage.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/machine_memory.h"
#include "model/block_weights.h"
#include "model/loader.h"
#include "model/packed_weights.h"
#include "ops/pack_weight.h"

namespace godwit {

std::optional<DType> LoadedStorage(const ModelTensors& tensors, std::optional<DType> asked) {
  if (tensors.int8 && asked == DType::kI8) return std::nullopt;
  if (tensors.packed && asked == DType::kGrouped) return std::nullopt;
  return asked;
}

std::optional<DType> HeadStorage(std::optional<DType> storage) {
  return storage == DType::kGrouped ? DType::kI8 : storage;
}

std::optional<DType> LatentStorage(std::optional<DType> storage) {
  return storage == DType::kGrouped || storage == DType::kI8 ? std::nullopt : storage;
}

std::optional<GroupFormat> FormatAsStored(const LinearTensors& linear) {
  return linear.packed.empty() ? FormatOfBlocks(linear) : FormatOfPacked(linear);
}

bool HoldsGroups(const LinearTensors& linear) {
  return !linear.packed.empty() || std::ranges::any_of(linear.parts, [](const TensorInfo* p) {
    return p->blocks != nullptr;
  });
}

DType SourceType(const LinearTensors& linear) {
  return HoldsGroups(linear) ? DType::kF32 : *linear.parts.front()->dtype;
}

DType StoredType(const LinearTensors& linear, std::optional<DType> storage) {
  if (storage) return *storage;
  if (FormatAsStored(linear)) return DType::kGrouped;
  return HoldsGroups(linear) ? DType::kBF16 : *linear.parts.front()->dtype;
}

DType TableType(const TensorInfo& table, std::optional<DType> asked) {
  if (table.blocks == nullptr) return *table.dtype;
  return asked == DType::kF32 ? DType::kF32 : DType::kBF16;
}

int64_t TableBytes(const TensorInfo& table, std::optional<DType> asked,
                   const std::optional<IndexRange>& rows) {
  if (table.blocks == nullptr && !rows) return std::ssize(table.bytes);
  const int64_t count = rows ? rows->count() : table.shape[0];
  return count * table.shape[1] * static_cast<int64_t>(SizeOf(TableType(table, asked)));
}

namespace {

// A linear layer as it is loaded.
struct LoadedLinear {
  DType dtype;
  std::string_view blocks;  // the type of the first part, if groups stay as they are; else empty
  int64_t elements;
  int64_t bytes;
};

// Calls visit(LoadedLinear).
template <typename Visit>
void VisitLinear(const LinearTensors& linear, std::optional<DType> storage, const Visit& visit) {
  if (linear.parts.empty()) return;
  const int64_t outputs = linear.outputs(), inputs = linear.inputs();
  const DType dtype = StoredType(linear, storage);
  LoadedLinear loaded{.dtype = dtype, .elements = outputs * inputs};
  if (const auto format = storage ? std::nullopt : FormatAsStored(linear)) {
    loaded.blocks = linear.packed.empty() ? linear.parts.front()->blocks->name
                                          : ShortName(linear.packed.front()->format);
    loaded.bytes = ops::PackedBytes(*format, outputs, inputs);
  } else {
    loaded.bytes = ops::PackedBytes(dtype, outputs, inputs);
  }
  visit(loaded);
}

// Visits the linear layers of a decoder layer except the router and other gates, with at most
// `experts` experts.
template <typename Visit>
void VisitLinears(const LayerTensors& layer, std::optional<DType> storage, const Visit& visit,
                  int64_t experts = INT64_MAX) {
  const LatentTensors& latent = layer.latent;
  for (const LinearTensors* linear :
       {&layer.qkv, &latent.query_down, &latent.query, &latent.kv_down, &latent.index_query,
        &latent.index_key, &layer.attention_out, &layer.delta.z_down, &layer.delta.z_up,
        &layer.mamba.in, &layer.mamba.out, &layer.mlp.up, &layer.mlp.down, &layer.embedding_gate,
        &layer.embedding_out, &layer.laurel_down, &layer.laurel_up, &layer.experts_in,
        &layer.experts_out}) {
    VisitLinear(*linear, storage, visit);
  }
  for (const std::vector<LinearTensors>* heads : {&latent.keys, &latent.values}) {
    for (const LinearTensors& head : *heads) VisitLinear(head, LatentStorage(storage), visit);
  }
  const auto count = std::min(experts, std::ssize(layer.experts));
  for (const MlpTensors& expert : std::span(layer.experts).first(count)) {
    VisitLinear(expert.up, storage, visit);
    VisitLinear(expert.down, storage, visit);
  }
}

// The bytes of all matrices, with at most `experts` experts in a layer.
int64_t MatrixBytes(const ModelTensors& tensors, std::optional<DType> asked, int64_t experts) {
  const std::optional<DType> storage = LoadedStorage(tensors, asked);
  int64_t bytes = 0;
  const auto add = [&](const LoadedLinear& linear) { bytes += linear.bytes; };
  VisitLinear(tensors.head, HeadStorage(storage), add);
  for (const LinearTensors* linear :
       {&tensors.project_in, &tensors.project_out, &tensors.layer_model}) {
    VisitLinear(*linear, storage, add);
  }
  for (const auto* linears : {&tensors.streams_in, &tensors.streams_out}) {
    for (const LinearTensors& linear : *linears) VisitLinear(linear, storage, add);
  }
  const auto add_layer = [&](const LayerTensors& layer) {
    VisitLinears(layer, storage, add, experts);
    for (const LinearTensors* gates :
         {&layer.router, &layer.shared_share, &layer.delta.gates, &layer.delta.decay_down,
          &layer.delta.decay_up, &layer.stream_router, &layer.latent.index_weights,
          &layer.stream_predict, &layer.stream_correct}) {
      VisitLinear(*gates, DType::kF32, add);
    }
  };
  for (const LayerTensors& layer : tensors.layers) add_layer(layer);
  if (tensors.prediction && experts == INT64_MAX) {  // no step of the model reads it
    VisitLinear(tensors.prediction->join, storage, add);
    add_layer(tensors.prediction->layer);
  }
  return bytes;
}

}  // namespace

int64_t LoadedBytes(const ModelTensors& tensors, std::optional<DType> storage) {
  int64_t bytes = MatrixBytes(tensors, storage, /*experts=*/INT64_MAX);
  VisitLinear(tensors.embedding_blocks, std::nullopt,
              [&](const LoadedLinear& rows) { bytes += rows.bytes; });
  if (tensors.embedding != nullptr) {
    bytes += TableBytes(*tensors.embedding, storage, tensors.taken_tokens);
  }
  if (tensors.positions != nullptr) bytes += TableBytes(*tensors.positions, storage);
  return bytes;
}

int64_t StepBytes(const DecoderSpec& spec, const ModelTensors& tensors,
                  std::optional<DType> storage) {
  return MatrixBytes(tensors, storage, spec.mlp.experts_per_token);
}

void RequireWeightMemory(const ModelTensors& tensors, std::optional<DType> storage) {
  try {
    RequireMemory(LoadedBytes(tensors, storage), "the weights take");
  } catch (const Error& error) {
    ErrorData data{.code = ErrorCode::kWeightsTooLarge};
    const int64_t available = ReadMachineMemory().available_bytes;
    const auto fits = [&](const WeightType& type) {
      return LoadedBytes(tensors, type.dtype) <= available;
    };
    const auto narrower = std::ranges::find_if(kWeightTypes, fits);
    if (narrower != std::end(kWeightTypes)) data.narrower = narrower->name.data();
    throw Error(error.kind(), error.what(), data);
  }
}

WeightTypes LoadedTypes(const ModelTensors& tensors, std::optional<DType> asked) {
  const std::optional<DType> storage = LoadedStorage(tensors, asked);
  std::map<std::pair<DType, std::string_view>, int64_t> weights;
  for (const LayerTensors& layer : tensors.layers) {
    VisitLinears(layer, storage, [&](const LoadedLinear& linear) {
      weights[{linear.dtype, linear.blocks}] += linear.elements;
    });
  }
  const auto [dtype, blocks] =
      std::ranges::max_element(weights, {}, [](const auto& entry) { return entry.second; })->first;
  WeightTypes types{.layers = dtype, .mixed = weights.size() > 1, .layer_blocks = blocks};
  VisitLinear(tensors.head, HeadStorage(storage), [&](const LoadedLinear& head) {
    types.head = head.dtype;
    types.head_blocks = head.blocks;
  });
  return types;
}

}  // namespace godwit
