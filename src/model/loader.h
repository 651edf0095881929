// The loader: from named tensors to a Decoder. It checks everything first, then packs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/thread_pool.h"
#include "dist/communicator.h"
#include "model/decoder.h"
#include "model/model_tensors.h"
#include "model/spec.h"
#include "weights/weight_source.h"

namespace godwit {

class PackedFile;
class PackedWriter;

struct LoadHooks {
  // The callback for the stage that begins, on the loading thread: "packing the weights".
  std::function<void(std::string_view)> stage = {};
  // The callback after every packed tensor, on the loading thread, with bytes of the checkpoint.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> progress;
  // The callback for warnings: what the user should know although loading goes on, such as a tensor
  // that holds NaN.
  std::function<void(const std::string&)> warn;
  const CancelToken* cancel = nullptr;
};

// The storages that the weights of the linear layers can be loaded in, as --weights spells them.
struct WeightType {
  std::string_view name;
  DType dtype;
};
inline constexpr WeightType kWeightTypes[] = {
    {"f32", DType::kF32}, {"bf16", DType::kBF16}, {"int8", DType::kI8}, {"int4", DType::kGrouped}};

// Bytes of the loaded weights. storage: as LoadDecoder takes it.
int64_t LoadedBytes(const ModelTensors& tensors, std::optional<DType> storage);

// The bytes of the loaded weights that a decode step reads (Decoder::step_bytes).
int64_t StepBytes(const DecoderSpec& spec, const ModelTensors& tensors,
                  std::optional<DType> storage);

// The types of the loaded weights. storage: as LoadDecoder takes it. A router, which is f32 always,
// does not count.
WeightTypes LoadedTypes(const ModelTensors& tensors, std::optional<DType> storage);

// Loads a model. storage: of the linear layers, the output head among them; none: as in the
// checkpoint. Rows of blocks (GGUF) stay, too, but become bf16 where fused layers have blocks
// without a common format (model/block_weights.h).
//
// With another storage, blocks are widened a row at a time. To bf16 they are rounded. To int8, each
// output gets the scale of its largest weight, and layers then quantize each row of their input,
// too. To groups, each 32 inputs of an output get a scale (ops/quantize_groups.h). The head, whose
// errors are those of every token, then becomes int8. A checkpoint that has int8 layers already
// stays as it is where int8 is asked for; as f32 or bf16, all its layers are floats.
//
// A tied embedding is the head, so its rows are widened from the head's storage. An embedding of
// its own, which is looked up and not multiplied, stays as it is. One of blocks is made bf16, or
// f32 where that is asked for.
//
// Throws Error(kFormat) that lists every missing, unexpected, misshapen or mistyped tensor, each
// with what was expected and found. It also throws Error(kFormat) that names a scale that is none.
// Throws Error(kMemory) for weights that this machine cannot hold, before any memory is taken.
// Memory while loading: the packed weights, and of the checkpoint one tensor at a time; twice,
// where it is transposed.
//
// ranks: those that share the weights; null: none. Each loads its part alone, and the decoder's
// spec is that of the part. Throws as TakeShare does (model/weight_share.h).
std::unique_ptr<Decoder> LoadDecoder(const DecoderSpec& spec, const WeightSource& source,
                                     ThreadPool& pool, const LoadHooks& hooks,
                                     std::optional<DType> storage = std::nullopt,
                                     std::shared_ptr<Communicator> ranks = nullptr);

// Writes the weights as LoadDecoder would have them in memory into a packed copy. No more than one
// tensor is in memory at a time. Finish and Commit are up to the caller. Throws as LoadDecoder, and
// Error(kIo).
void PackDecoder(const DecoderSpec& spec, const WeightSource& source, ThreadPool& pool,
                 const LoadHooks& hooks, std::optional<DType> storage, PackedWriter& writer);

// Makes the decoder that LoadDecoder would make, to the bit, with weights that stay in the copy.
// The caller must know that the copy has the same source in the same storage. Every number is
// checked to have its place: throws Error(kFormat), and as LoadDecoder and
// PackedFile::LoadIntoMemory do.
std::unique_ptr<Decoder> LoadPackedDecoder(const DecoderSpec& spec, const WeightSource& source,
                                           ThreadPool& pool, std::optional<DType> storage,
                                           const PackedFile& file);

}  // namespace godwit
