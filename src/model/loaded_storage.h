// What becomes of the tensors of a checkpoint in memory (loader.h, LoadDecoder): of which type, and
// how large. loader.h declares what the rest of the engine asks.
#pragma once

#include <optional>

#include "model/model_tensors.h"
#include "tensor/dtype.h"
#include "tensor/group_format.h"

namespace godwit {

// Of what is asked for, what is done. What an int8 checkpoint holds as floats is there because int8
// would harm it.
std::optional<DType> LoadedStorage(const ModelTensors& tensors, std::optional<DType> asked);

// Of the output head, which is the embedding where that is tied.
std::optional<DType> HeadStorage(std::optional<DType> storage);

// Of what makes the keys and values of a head of latent vectors: small, and in every score, so it
// is not quantized.
std::optional<DType> LatentStorage(std::optional<DType> storage);

// The format that holds the rows of all parts as they are stored, of blocks or packed; nullopt if
// there is none.
std::optional<GroupFormat> FormatAsStored(const LinearTensors& linear);

// Whether some rows are blocks, or packed.
bool HoldsGroups(const LinearTensors& linear);

// What the rows of its parts are packed from: those of groups, whichever they are, from f32.
DType SourceType(const LinearTensors& linear);

// What they are stored as: as they are where `storage` asks for nothing.
DType StoredType(const LinearTensors& linear, std::optional<DType> storage);

// A table that is looked up stays as it is, whatever is asked for; of blocks it is made bf16, or
// f32 for who wants nothing rounded.
DType TableType(const TensorInfo& table, std::optional<DType> asked);
int64_t TableBytes(const TensorInfo& table, std::optional<DType> asked);

}  // namespace godwit
