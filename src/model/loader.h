// From named tensors to a Decoder: checks everything first, then packs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/thread_pool.h"
#include "model/decoder.h"
#include "model/spec.h"
#include "weights/weight_source.h"

namespace godwit {

struct LoadHooks {
  // Called from the loading thread after every packed tensor. Bytes of the checkpoint.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> progress;
  // What the user should know although loading goes on, such as a tensor that holds NaN.
  std::function<void(const std::string&)> warn;
  const CancelToken* cancel = nullptr;
};

// Throws Error(kFormat) that lists every missing, unexpected, misshapen or mistyped tensor, each
// with what was expected and found, and Error(kMemory) for weights that this machine cannot hold,
// before any memory is taken. Memory while loading: the packed weights, and of the checkpoint one
// tensor at a time.
std::unique_ptr<Decoder> LoadDecoder(const DecoderSpec& spec, const WeightSource& source,
                                     ThreadPool& pool, const LoadHooks& hooks);

}  // namespace godwit
