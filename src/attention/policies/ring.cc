#include "attention/policies/ring.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/core/policy_around.h"
#include "attention/ranks/ring_layout.h"
#include "base/error.h"

namespace godwit {
namespace {

PolicyFacts FactsInRing(int ranks, const PrefillSpec& spec, PolicyFacts alone) {
  alone.prefill = spec.ToString();
  alone.name += fmt::format(", read by {}", alone.prefill);
  alone.explanation += fmt::format(
      " The context is read by {} ranks together and spread over them, {} tokens of each rank at a "
      "time.",
      ranks, spec.ring);
  alone.separates_question = true;
  return alone;
}

class RingPolicy : public PolicyAround {
 public:
  RingPolicy(int rank, int ranks, const PrefillSpec& spec, std::unique_ptr<AttentionPolicy> alone)
      : PolicyAround(FactsInRing(ranks, spec, alone->facts()), std::move(alone)),
        rank_(rank),
        layout_{.ranks = ranks, .chunk = spec.ring} {}

  void SetQuestion(int64_t position, int64_t answer) override {
    if (position < layout_.ranks * kTileTokens) {
      Throw(ErrorKind::kInput,
            "a context of {} tokens is too short for {} ranks, which read at least {} each: use "
            "fewer ranks",
            position, layout_.ranks, kTileTokens);
    }
    layout_.context = position;
    mine_.clear();
    for (int64_t round = 0; round < layout_.rounds(); ++round) {
      const auto [begin, end] = layout_.Chunk(round, rank_);
      for (int64_t p = begin; p < end; p += kTileTokens) {
        mine_.push_back({.tile = p / kTileTokens,
                         .begin = 0,
                         .end = static_cast<int32_t>(std::min(kTileTokens, end - p))});
      }
    }
    inner().SetQuestion(position, answer);
  }

  ops::KvRange Reads(int64_t length) const override {
    const ops::KvRange chunk = layout_.Next(length, rank_);
    if (chunk.begin < chunk.end) return chunk;
    return {std::max(length, layout_.context), INT64_MAX};
  }
  int64_t merged_from() const override { return layout_.context; }
  const RingLayout* ring() const override { return &layout_; }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    const Looks all = inner().Select(run, layer, queries);
    if (run.position < layout_.context) return all;
    const auto heads = static_cast<size_t>(run.cache->layout().kv_heads);
    lists_.assign(heads, mine_);
    Looks here;
    here.AddRead(all.read_bytes());
    for (Look look : all.span()) {
      const int64_t begin = look.visible.begin;
      if (rank_ + 1 == layout_.ranks) {
        look.visible.begin = std::max(begin, layout_.context);
        here.Add(look);
        look.visible.begin = begin;
      }
      look.parts = lists_;
      look.visible.end = std::min(look.visible.end, layout_.context);
      here.Add(look);
    }
    return here;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::unique_ptr<AttentionPolicy>(new RingPolicy(*this));
  }

 private:
  RingPolicy(const RingPolicy&) = default;

  int64_t rank_;
  RingLayout layout_;
  std::vector<ops::TilePart> mine_;                    // in the context
  std::vector<std::span<const ops::TilePart>> lists_;  // mine_ for every KV head, by Select
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeRingPolicy(const PolicyOptions& options,
                                                const PrefillSpec& spec,
                                                std::unique_ptr<AttentionPolicy> alone) {
  if (!alone->facts().shows_all) {
    Throw(ErrorKind::kUnsupported,
          "{} ranks that read a context by {} work with the KV policy dense only, not with \"{}\"",
          options.ranks->size(), spec.ToString(), options.spec);
  }
  return std::make_unique<RingPolicy>(options.ranks->rank(), options.ranks->size(), spec,
                                      std::move(alone));
}

}  // namespace godwit
