// Mixture of experts: every token goes through the few MLPs that its router prefers.
#pragma once

#include <optional>
#include <vector>

#include "ops/activation.h"
#include "ops/exec.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

// A gated unit, down(activation(gate(x)) * up(x)), or down(activation(up(x))), with whatever biases
// its weights have.
struct Expert {
  Weight up;    // gated: [2 * intermediate, hidden], gate, then up; else [intermediate, hidden]
  Weight down;  // [hidden, intermediate]
};

struct MoeWeights {
  Weight router;  // [all experts, hidden], F32: a rounded score may send a token elsewhere
  // From number `first_expert` on. Results of others, which other ranks add, are left out.
  std::vector<Expert> experts;
  int64_t first_expert = 0;
  std::vector<float> choice_bias;  // [all experts], or empty: ExpertChoice
  std::vector<float> scales;       // [all experts], factors on their shares, or empty
};

inline constexpr int64_t kMaxGroups = 64;

// The number by which an expert is chosen. MoeWeights::choice_bias is added to it, and so groups
// are chosen, but shares are made of the number alone.
enum class ExpertScore {
  kLogit,    // the router's number, of which shares are a softmax
  kSigmoid,  // its sigmoid; shares are parts of a sum, or the sigmoids themselves
  kPart,     // its part of the softmax over all experts; shares likewise
};

// The choice of experts and their shares, where it is not by the softmax of scores alone.
struct ExpertChoice {
  ExpertScore score = ExpertScore::kLogit;
  // Whether experts are chosen by the scores themselves (Llama 4). The sigmoid of each is then a
  // factor on its expert's input instead of a share of its result.
  bool scales_input = false;
  // Groups of experts, of equal size and one after another. Experts are chosen in groups_chosen of
  // them, those whose best_of_group best experts score most together.
  int64_t groups = 1;
  int64_t groups_chosen = 1;
  int64_t best_of_group = 1;  // or 2
  float share_scale = 1;      // a factor on all shares
  float share_epsilon = 0;    // added to the sum of numbers of which shares are parts
  // SparseMixer-v2 (arXiv 2409.12136) without its noise: experts are chosen one after another, and
  // each has its part of the softmax over those left. Out of this are scores that lie below its own
  // by more than this part of the larger magnitude of both. 0: shares are as above.
  float near_scores = 0;

  bool operator==(const ExpertChoice&) const = default;
};

struct MoeOptions {
  int64_t per_token;  // 1 or more, at most the experts in chosen groups
  bool shares_among_chosen = true;
  ExpertChoice choice = {};
  bool gated = true;
  Activation activation = Activation::kSilu;
  std::optional<ClampedSwiglu> clamped = {};  // in the place of the activation, if gated
  MatrixView<const float> router_input = {};  // the rows that the router reads; none: those of x
};

// Computes out = the sum of share * expert(x) over the experts that score highest for the token (of
// equal ones the first). Shares are the softmax of the scores of these, or without
// shares_among_chosen their parts of that of all scores. ExpertChoice has other ways. x, out
// [tokens, hidden]; they may not overlap.
//
// Tokens are grouped by expert, so a weight is read once however many tokens need it. A row of
// `out` is the same, to the bit, whatever other rows are computed with it. Linear promises that of
// the experts, and a token adds its own up in the order of their numbers.
void MixtureOfExperts(const Exec& exec, MatrixView<const float> x, const MoeWeights& w,
                      const MoeOptions& options, MatrixView<float> out);

}  // namespace godwit::ops
