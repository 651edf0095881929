// Trains draft heads for a model (TokenSwift, arXiv 2502.18890, section 3.1 and appendix): AdamW
// with warm-up and a cosine to nothing, on states that were read once. It can stop after any step
// and go on from what it has then, to the same heads. Prints nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/draft_heads.h"
#include "ops/exec.h"
#include "train/adamw.h"
#include "train/head_gradient.h"
#include "train/hidden_states.h"

namespace godwit::train {

struct HeadTraining {
  int64_t steps = 400;
  int64_t warmup = 40;
  int64_t batch = 4096;  // states of a step
  double rate = 0.005;   // the largest
  uint64_t seed = 0;     // of their order
};

// Where a training stands.
struct HeadProgress {
  HeadParameters parameters;
  AdamW optimizer;                 // optimizer.steps of HeadTraining::steps are done
  std::vector<float> losses = {};  // of these steps, the mean over the heads in nats
};

// At first every head says what the model does: its matrix is zero, its output norm the model's, if
// that is not empty.
HeadProgress NewHeads(int64_t heads, int64_t hidden, int64_t vocab,
                      std::span<const float> final_norm = {});
// A rate that suits such a model; wider ones learn in smaller steps.
double DefaultRate(int64_t hidden);

// As a file, and back. run: tells apart trainings that could not go on from each other. Reading
// throws Error(kIo) and Error(kFormat), and Error(kInput) for one of another run or size.
std::string HeadProgressFile(const HeadProgress& progress, uint64_t run);
HeadProgress ReadHeadProgress(const std::filesystem::path& file, HeadProgress beginning,
                              uint64_t run, int64_t most_steps);
// Of everything on which a training depends.
uint64_t RunDigest(const HeadTraining& training, const HiddenStates& states, const Decoder& model);

// The rate of a step, from 0.
double RateOf(const HeadTraining& training, int64_t step);

// On to the last step; after each of them `after` is called. What that throws ends the training
// with `progress` as it is then, as Error(kCancelled) does.
void TrainHeads(const Exec& exec, HeadGradient& gradient, const HiddenStates& states,
                const HeadTraining& training, HeadProgress& progress,
                const std::function<void()>& after);

// Of all of the states. [heads]
std::vector<HeadScore> ScoreHeads(const Exec& exec, HeadGradient& gradient,
                                  const HiddenStates& states, HeadParameters& parameters);

// The fewest tokens, a multiple of 1024 or all `vocab`, that make up 99 of 100 tokens of the
// pieces, if the tokens of the vocabulary from the first on are taken.
int64_t FrequentTokens(std::span<const std::vector<int32_t>> pieces, int64_t vocab);

}  // namespace godwit::train
