// The shared tools of this room's tests. Only *_test.cc files include it.
#pragma once

#include <memory>
#include <vector>

#include "base/rng.h"
#include "kernels/dispatch.h"
#include "model/loader.h"
#include "model/model_test_support.h"
#include "train/train_heads.h"

namespace godwit::train {

// Threads, kernels and memory, and a small model with 11 tokens.
struct Bench {
  explicit Bench(int threads = 2)
      : pool(threads),
        exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace} {
    const DecoderSpec spec = SmallLlama();
    decoder = LoadDecoder(spec, FakeWeights(spec, DType::kF32), pool, {});
  }

  HiddenStates Read(const std::vector<std::vector<int32_t>>& pieces, int64_t heads) const {
    HiddenStates states(decoder->hidden_size(), heads, decoder->vocab_size());
    ReadPieces(exec, *decoder, pieces, {}, states);
    return states;
  }

  ThreadPool pool;
  Workspace workspace;
  Exec exec;
  std::unique_ptr<Decoder> decoder;
};

// Texts that go around in circles, from different places.
inline std::vector<std::vector<int32_t>> Circles(int count, int length) {
  std::vector<std::vector<int32_t>> pieces;
  for (int32_t i = 0; i < count; ++i) {
    pieces.emplace_back();
    for (int32_t place = 0; place < length; ++place) {
      pieces.back().push_back((i + 4 * place) % 11);
    }
  }
  return pieces;
}

}  // namespace godwit::train
