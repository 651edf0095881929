// The shared tools of this room's tests. Only *_test.cc files include it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "model/model_test_support.h"
#include "quant/calibrate.h"

namespace godwit::quant {

// Threads, kernels and memory for one test.
class TestExec {
 public:
  explicit TestExec(int threads = 2) : pool_(threads) {}
  const Exec& operator*() const { return exec_; }

 private:
  ThreadPool pool_;
  Workspace workspace_;
  Exec exec_{.pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
};

// A small model with its weights: 16 channels wide, 4 heads on 2 KV heads of 4.
struct TestModel {
  explicit TestModel(DecoderSpec of = SmallLlama(), DType dtype = DType::kF32)
      : spec(std::move(of)), weights(spec, dtype), tensors(ResolveTensors(spec, weights)) {}

  DecoderSpec spec;
  FakeWeights weights;
  ModelTensors tensors;
};

// `count` texts of `length` tokens, all different.
inline std::vector<std::vector<int32_t>> TestPieces(int count, int length, int vocabulary = 11) {
  std::vector<std::vector<int32_t>> pieces(count);
  int32_t next = 1;
  for (auto& piece : pieces) {
    for (int i = 0; i < length; ++i) piece.push_back(next = (next * 7 + i) % vocabulary);
  }
  return pieces;
}

}  // namespace godwit::quant
