// Trains draft heads for a model (TokenSwift, arXiv 2502.18890, section 3.1 and appendix). AdamW
// runs with warm-up and a cosine to zero, on states that were read once. Training can stop after
// any step and go on from it, to the same heads. Prints nothing.
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
  double rate = 0.005;   // the largest learning rate
  uint64_t seed = 0;     // of the order of states
};

// The state of a training.
struct HeadProgress {
  HeadParameters parameters;
  AdamW optimizer;                 // optimizer.steps of HeadTraining::steps are done
  std::vector<float> losses = {};  // of each step: the mean over the heads, in nats
};

// New heads, which predict what the model predicts. Their matrix is zero, their output norm the
// model's, if final_norm is not empty.
HeadProgress NewHeads(int64_t heads, int64_t hidden, int64_t vocab,
                      std::span<const float> final_norm = {}, bool independent = false);
// A learning rate for models of this hidden size; wider ones learn in smaller steps.
double DefaultRate(int64_t hidden);

// A training as the bytes of a file, and back. run: tells apart trainings that could not go on from
// each other. Reading throws Error(kIo) and Error(kFormat), and Error(kInput) for a file of another
// run or size.
std::string HeadProgressFile(const HeadProgress& progress, uint64_t run);
HeadProgress ReadHeadProgress(const std::filesystem::path& file, HeadProgress beginning,
                              uint64_t run, int64_t max_steps);
// The digest of everything on which a training of such heads depends.
uint64_t RunDigest(const HeadTraining& training, const HiddenStates& states, const Decoder& model,
                   const HeadParameters& heads);

// The learning rate of a step, counted from 0.
double RateOf(const HeadTraining& training, int64_t step);

// Trains to the last step and calls `after` after each. An exception of `after` ends the training
// with `progress` as it is then, and so does Error(kCancelled).
void TrainHeads(const Exec& exec, HeadGradient& gradient, const HiddenStates& states,
                const HeadTraining& training, HeadProgress& progress,
                const std::function<void()>& after);

// The scores [heads] over all states.
std::vector<HeadScore> ScoreHeads(const Exec& exec, HeadGradient& gradient,
                                  const HiddenStates& states, HeadParameters& parameters);

// The fewest tokens, counted from the first of the vocabulary, that make up 99 of 100 tokens of the
// pieces. A multiple of 1024, or all `vocab`.
int64_t FrequentTokens(std::span<const std::vector<int32_t>> pieces, int64_t vocab);

}  // namespace godwit::train
