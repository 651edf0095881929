// The exchange of ranks that share the weights of a model, inside a step.
//
// Results are the same bits on all ranks, and for a given number of ranks always. With another
// number, sums are added in another order.
#pragma once

#include "dist/communicator.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// x [rows, cols] becomes the sum of all ranks' x, added in the order of ranks. A row's bits do not
// depend on the number of rows. Few numbers go from each rank to each other one. Many are summed by
// one rank each, and then told to all: fewer bytes, and a message more.
void SumOverRanks(const Exec& exec, Communicator& ranks, MatrixView<float> x);

// Tells all ranks the logits of each. logits [rows, vocabulary], or the first tokens alone: a rank
// has computed those of its tokens (TokensOf).
void GatherLogits(const Exec& exec, Communicator& ranks, int64_t vocab_size,
                  MatrixView<float> logits);

// The cost of SumOverRanks, and of GatherLogits.
struct ExchangeCost {
  int64_t bytes = 0;     // that a rank sends, to all others together
  int64_t messages = 0;  // one after another
};
ExchangeCost CostOfSum(int64_t rows, int64_t cols, int ranks);
ExchangeCost CostOfLogits(int64_t rows, int64_t vocab_size, int ranks);

}  // namespace godwit
