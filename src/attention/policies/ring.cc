#include "attention/policies/ring.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/ring_layout.h"
#include "base/error.h"

namespace godwit {
namespace {

class RingPolicy : public AttentionPolicy {
 public:
  RingPolicy(int rank, int ranks, int64_t chunk, std::unique_ptr<AttentionPolicy> alone)
      : rank_(rank), layout_{.ranks = ranks, .chunk = chunk}, alone_(std::move(alone)) {}

  std::string name() const override {
    return fmt::format("{}, read by {}", alone_->name(),
                       PrefillSpec{.ring = layout_.chunk}.ToString());
  }
  std::string Explain() const override {
    return fmt::format(
        "{} The context is read by {} ranks together and spread over them, {} tokens of each rank "
        "at a time.",
        alone_->Explain(), layout_.ranks, layout_.chunk);
  }
  int64_t limit_tokens() const override { return alone_->limit_tokens(); }
  int64_t max_kept_tokens() const override { return alone_->max_kept_tokens(); }
  ops::KvRange Forgotten(int64_t length) const override { return alone_->Forgotten(length); }
  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    return alone_->SeenKeys(layer, position);
  }
  bool separates_question() const override { return true; }

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
    alone_->SetQuestion(position, answer);
  }

  ops::KvRange Reads(int64_t length) const override {
    const ops::KvRange chunk = layout_.Next(length, rank_);
    if (chunk.begin < chunk.end) return chunk;
    return {std::max(length, layout_.context), INT64_MAX};
  }
  int64_t merged_from() const override { return layout_.context; }
  const RingLayout* ring() const override { return &layout_; }

  void Plan(const RowRun& run) override { alone_->Plan(run); }
  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    const Looks all = alone_->Select(run, layer, queries);
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

  void Accept(int64_t length, std::span<const int64_t> path) override {
    alone_->Accept(length, path);
  }
  void Truncate(int64_t length) override { alone_->Truncate(length); }
  // Never back into the context, because other ranks have read parts of it.
  int64_t RestartPoint(int64_t length, int64_t answer) const override {
    const int64_t before = alone_->RestartPoint(length, answer);
    return before < layout_.context ? 0 : before;
  }
  int64_t bytes() const override { return alone_->bytes(); }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    auto fork = std::make_unique<RingPolicy>(rank_, static_cast<int>(layout_.ranks), layout_.chunk,
                                             alone_->Fork());
    fork->layout_ = layout_;
    fork->mine_ = mine_;
    return fork;
  }

 private:
  int64_t rank_;
  RingLayout layout_;
  std::unique_ptr<AttentionPolicy> alone_;
  std::vector<ops::TilePart> mine_;                    // in the context
  std::vector<std::span<const ops::TilePart>> lists_;  // the same for every KV head
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeRingPolicy(const PolicyOptions& options,
                                                const PrefillSpec& spec,
                                                std::unique_ptr<AttentionPolicy> alone) {
  if (options.spec != "dense") {
    Throw(ErrorKind::kUnsupported,
          "{} ranks that read a context by {} work with the KV policy dense only, not with \"{}\"",
          options.ranks->size(), spec.ToString(), options.spec);
  }
  return std::make_unique<RingPolicy>(options.ranks->rank(), options.ranks->size(), spec.ring,
                                      std::move(alone));
}

}  // namespace godwit
