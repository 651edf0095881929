#include "model/loader.h"

#include <utility>

#include "model/loaded_storage.h"
#include "model/packed_file.h"
#include "model/packer.h"
#include "model/weight_share.h"
#include "tensor/arena.h"

namespace godwit {
namespace {

std::unique_ptr<Decoder> Load(const DecoderSpec& spec, const WeightSource& source, ThreadPool& pool,
                              const LoadHooks& hooks, std::optional<DType> storage,
                              PackedReader* copy, std::shared_ptr<Communicator> ranks = nullptr) {
  const WeightShare share = TakeShare(spec, ResolveTensors(spec, source), ranks);
  const ModelTensors& tensors = share.tensors;
  const int64_t bytes = LoadedBytes(tensors, storage);
  RequireWeightMemory(tensors, storage);
  Arena memory(copy == nullptr ? bytes : 0);
  const PackedPlaces places{.from = copy, .memory = copy == nullptr ? &memory : nullptr};
  Packer packer(share.spec, spec, source, pool, hooks, LoadedStorage(tensors, storage), places);
  DecoderWeights weights = packer.Pack(tensors);
  weights.types = LoadedTypes(tensors, storage);
  return std::make_unique<Decoder>(share.spec, std::move(weights), std::move(ranks));
}

}  // namespace

std::unique_ptr<Decoder> LoadDecoder(const DecoderSpec& spec, const WeightSource& source,
                                     ThreadPool& pool, const LoadHooks& hooks,
                                     std::optional<DType> storage,
                                     std::shared_ptr<Communicator> ranks) {
  return Load(spec, source, pool, hooks, storage, /*copy=*/nullptr, std::move(ranks));
}

void PackDecoder(const DecoderSpec& spec, const WeightSource& source, ThreadPool& pool,
                 const LoadHooks& hooks, std::optional<DType> storage, PackedWriter& writer) {
  const ModelTensors tensors = ResolveTensors(spec, source);
  Packer(spec, spec, source, pool, hooks, LoadedStorage(tensors, storage), {.to = &writer})
      .Pack(tensors);
}

std::unique_ptr<Decoder> LoadPackedDecoder(const DecoderSpec& spec, const WeightSource& source,
                                           ThreadPool& pool, std::optional<DType> storage,
                                           const PackedFile& file) {
  PackedReader reader(file);
  auto decoder = Load(spec, source, pool, /*hooks=*/{}, storage, &reader);
  reader.Finish();
  file.LoadIntoMemory(pool);
  return decoder;
}

}  // namespace godwit
