#include "attention/policies/near_on_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "attention/core/policy_around.h"
#include "base/error.h"
#include "ops/gpu/gpu_attention.h"

namespace godwit {
namespace {

PolicyFacts FactsWithNear(const PolicyFacts& inner, int64_t tokens) {
  PolicyFacts facts = inner;
  facts.name += fmt::format(", {} tokens on a GPU", tokens);
  if (!facts.separates_question) facts.reading = facts.name;
  facts.explanation += fmt::format(
      " A GPU attends to {} of the tokens that {} sees, at the beginning of the text and at its "
      "end, while the CPU attends to the others.",
      tokens, facts.separates_question ? "a token of the question or the answer" : "each token");
  facts.one_rank_reason = "a GPU works for one process";
  return facts;
}

class NearOnGpuPolicy : public PolicyAround {
 public:
  NearOnGpuPolicy(const ops::NearTiles& tiles, std::unique_ptr<AttentionPolicy> inner)
      : PolicyAround(FactsWithNear(inner->facts(), tiles.count() * kTileTokens), std::move(inner)),
        tiles_(tiles) {}

  NearOnGpu near_on_gpu() const override { return {.tiles = tiles_, .from = from_}; }

  void SetQuestion(const Question& question) override {
    if (facts().separates_question) from_ = question.begin;
    inner().SetQuestion(question);
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::unique_ptr<AttentionPolicy>(new NearOnGpuPolicy(*this));
  }

 private:
  NearOnGpuPolicy(const NearOnGpuPolicy&) = default;

  ops::NearTiles tiles_;
  int64_t from_ = 0;
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeNearOnGpu(const AttentionGeometry& geometry, int64_t tokens,
                                               DType kv_type,
                                               std::unique_ptr<AttentionPolicy> inner) {
  if (tokens <= 0 || tokens % kTileTokens != 0) {
    Throw(ErrorKind::kInput, "a GPU attends to a multiple of {} tokens, found {}", kTileTokens,
          tokens);
  }
  const PolicyFacts& facts = inner->facts();
  std::string why;
  if (facts.endless()) {
    why = fmt::format("a policy that keeps every token, found {}", facts.name);
  } else if (geometry.chunked || geometry.key_index || !geometry.layer_shapes.empty() ||
             !geometry.readers.empty()) {
    why =
        "a model whose layers have equal heads and keys of their own, no chunks and no index of "
        "keys";
  }
  if (!why.empty()) {
    Throw(ErrorKind::kUnsupported, "attention to {} tokens on a GPU needs {}", tokens, why);
  }
  why = ops::WhyNoGpuAttention(geometry.shape, geometry.alibi, kv_type);
  if (!why.empty()) Throw(ErrorKind::kUnsupported, "{}", why);
  const int64_t sinks = std::min(facts.seen_sinks, tokens - kTileTokens) / kTileTokens;
  const ops::NearTiles tiles{.sinks = sinks, .window = tokens / kTileTokens - sinks};
  if (tiles.window * kTileTokens > facts.seen_window) {
    Throw(
        ErrorKind::kUnsupported,
        "a GPU can attend to tokens that each token sees, and with the KV policy {} these are the "
        "first {} and the last {}, not {}",
        facts.name, facts.seen_sinks, facts.seen_window, tokens);
  }
  return std::make_unique<NearOnGpuPolicy>(tiles, std::move(inner));
}

}  // namespace godwit
