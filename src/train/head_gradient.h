// The loss of draft heads and its gradient: cross-entropy through the model's output head, summed
// over the heads (TokenSwift, arXiv 2502.18890, section 3.1). The output head stays as it is.
//
// The products are those of ops/linear.h, so that all cores and instruction sets help. The same
// rows give the same bits for any number of threads.
#pragma once

#include <span>
#include <vector>

#include "model/draft_heads.h"
#include "ops/exec.h"
#include "train/hidden_states.h"

namespace godwit::train {

// The score of a head on the rows with a token to guess.
struct HeadScore {
  double loss = 0;  // the sum, in nats
  int64_t rows = 0;
  int64_t first = 0;      // rows whose token the head found likeliest
  int64_t among_ten = 0;  // rows whose token was among its ten likeliest
};

class HeadGradient {
 public:
  // storage: the type of the matrices in products. f32 is exact; bf16 takes half the time.
  HeadGradient(const Exec& exec, const LanguageModel& model, int64_t vocab, DType storage);

  // Takes these parameters, which stay where they are until the next call.
  void Prepare(const Exec& exec, HeadParameters& parameters);

  // Adds the gradient of the summed loss of these rows, times scale, to `gradient` (in the order of
  // HeadParameters::values). Adds losses and rows to the scores [heads].
  void Add(const Exec& exec, const HiddenStates& states, std::span<const int64_t> rows, float scale,
           HeadParameters& gradient, std::span<HeadScore> scores) const;
  // Adds to every field of the scores, without a gradient.
  void Score(const Exec& exec, const HiddenStates& states, std::span<const int64_t> rows,
             std::span<HeadScore> scores) const;

 private:
  struct Head {
    ops::NormWeights input_norm, output_norm;
    Weight matrix, transposed;  // [hidden, hidden]
  };
  // The values of a head for the backward pass, each [rows, hidden].
  struct Trace {
    MatrixView<float> in, normed, out;
  };

  template <typename See>
  void Forward(const Exec& exec, const HiddenStates& states, std::span<const int64_t> rows,
               const See& see) const;
  void Backward(const Exec& exec, const Head& head, const Trace& trace, MatrixView<float> d_out,
                HeadParameters& gradient, int64_t index) const;

  const LanguageModel& model_;
  int64_t vocab_;
  DType storage_;
  Weight projection_;  // [hidden, vocab]: the output head, transposed
  std::vector<Head> heads_;
  bool independent_ = false;
};

}  // namespace godwit::train
