// The types and sizes of a checkpoint's tensors in memory (loader.h, LoadDecoder). loader.h
// declares the functions for the rest of the engine.
#pragma once

#include <optional>

#include "model/model_tensors.h"
#include "tensor/dtype.h"
#include "tensor/group_format.h"

namespace godwit {

// The storage that is used for the one that is asked for. Layers that an int8 checkpoint holds as
// floats are so because int8 would harm them.
std::optional<DType> LoadedStorage(const ModelTensors& tensors, std::optional<DType> asked);

// The storage of the output head, which is the embedding where that is tied.
std::optional<DType> HeadStorage(std::optional<DType> storage);

// The storage of the matrices that make the keys and values of a head of latent vectors. They are
// small, and in every score, so they are not quantized.
std::optional<DType> LatentStorage(std::optional<DType> storage);

// The format that holds the rows of all parts as they are stored, of blocks or packed; nullopt if
// there is none.
std::optional<GroupFormat> FormatAsStored(const LinearTensors& linear);

// Whether some rows are blocks, or packed.
bool HoldsGroups(const LinearTensors& linear);

// The type from which the rows of a layer's parts are packed; f32 for rows of groups.
DType SourceType(const LinearTensors& linear);

// The type in which the parts are stored: their own where `storage` asks for nothing.
DType StoredType(const LinearTensors& linear, std::optional<DType> storage);

// The type of a table that is looked up. It stays as it is, whatever is asked for. A table of
// blocks becomes bf16, or f32 where f32 is asked for.
DType TableType(const TensorInfo& table, std::optional<DType> asked);
// rows: those that are loaded; none: all.
int64_t TableBytes(const TensorInfo& table, std::optional<DType> asked,
                   const std::optional<IndexRange>& rows = {});

// Throws Error(kMemory) with the numbers if weights of LoadedBytes(tensors, storage) do not fit.
// The error names the widest storage that would.
void RequireWeightMemory(const ModelTensors& tensors, std::optional<DType> storage);

}  // namespace godwit
