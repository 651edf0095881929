#include "attention/policies/shard.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "attention/core/policy_around.h"
#include "attention/policies/prefill_spec.h"
#include "attention/ranks/ring_layout.h"
#include "attention/ranks/spread_blocks.h"
#include "base/error.h"

namespace godwit {
namespace {

// The rounds in which all ranks read the anchor together, cut to whole tiles for each rank. The
// rank with a round's last chunk sees the most; many rounds keep its extra work small.
RingLayout AnchorOf(const PrefillSpec& spec, int64_t ranks) {
  constexpr int64_t kRounds = 8, kMaxChunk = 2048;
  const int64_t tiles = spec.anchor / (ranks * kTileTokens);  // for each rank
  return {.ranks = ranks,
          .chunk = std::clamp(tiles / kRounds * kTileTokens, kTileTokens, kMaxChunk),
          .context = ranks > 1 ? tiles * ranks * kTileTokens : 0,
          .kept = true};
}

PolicyFacts FactsOfShard(int ranks, PolicyFacts alone) {
  alone.explanation += fmt::format(
      " The blocks are spread over {} ranks.{}", ranks,
      alone.chosen_tokens > 1
          ? " Each rank chooses among its own blocks, in proportion to its share of the context."
          : "");
  alone.separates_question = true;
  return alone;
}

class ShardPolicy : public PolicyAround {
 public:
  // speeds: ranks read blocks in proportion to their speed. Empty: all read equal numbers.
  ShardPolicy(int rank, int ranks, const PrefillSpec& spec, std::vector<RankSpeed> speeds,
              int64_t block_bytes, std::unique_ptr<AttentionPolicy> alone)
      : PolicyAround(FactsOfShard(ranks, alone->facts()), std::move(alone)),
        rank_(rank),
        ranks_(ranks),
        spec_(spec),
        speeds_(std::move(speeds)),
        block_bytes_(block_bytes),
        anchor_(AnchorOf(spec, ranks)) {}

  void SetQuestion(int64_t position, int64_t answer) override {
    question_begin_ = position;
    const int64_t blocks = (position + spec_.block - 1) / spec_.block;
    if (blocks < ranks_) {
      const int64_t unit = facts().chosen_tokens;
      Throw(ErrorKind::kInput,
            "a context of {} tokens has {} block{} of {}, too few for {} ranks: use fewer ranks, "
            "or star:block={} at most",
            position, blocks, blocks == 1 ? "" : "s", spec_.block, ranks_,
            std::max(unit, position / ranks_ / unit * unit));
    }
    const auto counts = speeds_.empty()
                            ? SpreadEvenly(blocks, ranks_)
                            : SpreadBySpeed(blocks, speeds_, block_bytes_, anchor_.context > 0);
    const auto mine = counts.begin() + rank_;
    const int64_t first = std::accumulate(counts.begin(), mine, int64_t{0});
    mine_ = {first * spec_.block, std::min((first + *mine) * spec_.block, position)};
    inner().LimitKeysTo(Shown());
    inner().SetQuestion(position, answer);
  }

  // First the anchor, then the rank's blocks, then the question.
  ops::KvRange Reads(int64_t length) const override {
    const ops::KvRange chunk = anchor_.Next(length, rank_);
    if (chunk.begin < chunk.end) return chunk;
    const std::array<ops::KvRange, 3> parts = {
        {{0, rank_ == 0 ? 0 : spec_.anchor}, mine_, {question_begin_, INT64_MAX}}};
    const int64_t from = std::max(length, anchor_.context);
    const auto next = std::ranges::upper_bound(parts, from, {}, &ops::KvRange::end);
    return {std::max(from, next->begin), next->end};
  }
  const RingLayout* ring() const override { return &anchor_; }
  int64_t merged_from() const override { return question_begin_; }

  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    const Looks all = inner().Select(run, layer, queries);
    if (run.position < question_begin_) return all;
    Looks here;
    here.AddRead(all.read_bytes());
    here.SetBefore(all.before());
    const auto [begin, end] = Shown();
    for (Look look : all.span()) {
      look.visible.begin = std::max(look.visible.begin, begin);
      look.visible.end = std::min(look.visible.end, end);
      here.Add(look);
    }
    return here;
  }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    return std::unique_ptr<AttentionPolicy>(new ShardPolicy(*this));
  }

 private:
  ShardPolicy(const ShardPolicy&) = default;

  // The positions that this rank shows to question and answer.
  ops::KvRange Shown() const { return {mine_.begin, rank_ + 1 < ranks_ ? mine_.end : INT64_MAX}; }

  int64_t rank_;
  int64_t ranks_;
  PrefillSpec spec_;
  std::vector<RankSpeed> speeds_;
  int64_t block_bytes_;  // keys and values of a block
  RingLayout anchor_;
  int64_t question_begin_ = 0;
  ops::KvRange mine_{0, 0};  // in the context
};

}  // namespace

std::unique_ptr<AttentionPolicy> MakeShardPolicy(const AttentionGeometry& geometry,
                                                 const PolicyOptions& options,
                                                 std::unique_ptr<AttentionPolicy> alone) {
  const int ranks = options.ranks->size();
  const PrefillSpec spec = options.prefill.empty() ? PrefillSpec() : ParsePrefill(options.prefill);
  if (!spec.star()) {
    Throw(ErrorKind::kInput,
          "{} ranks share a context only with prefill ring, star or auto, not {}", ranks,
          options.prefill.empty() ? "as one text" : "by " + spec.ToString());
  }
  if (spec.overlap > 0) {
    Throw(ErrorKind::kUnsupported,
          "star with an overlap of {} tokens: a rank's first block would see keys that another "
          "rank has not computed yet; leave the overlap out on {} ranks",
          spec.overlap, ranks);
  }
  if (spec.tail > 0) {
    Throw(ErrorKind::kUnsupported,
          "star with a tail of {} tokens: they would see all of the context, and each of {} ranks "
          "has a part of it; leave the tail out",
          spec.tail, ranks);
  }
  const PolicyFacts& facts = alone->facts();
  if (!facts.one_rank_reason.empty()) {
    Throw(ErrorKind::kUnsupported, "{} ranks cannot share a text with the KV policy \"{}\": {}",
          ranks, options.spec, facts.one_rank_reason);
  }
  if (spec.block % facts.chosen_tokens != 0) {
    Throw(ErrorKind::kInput,
          "star has blocks of {} tokens on {} ranks, which is no multiple of the {} tokens of "
          "block_size: make it one",
          spec.block, ranks, facts.chosen_tokens);
  }
  if (geometry.learned_positions != 0) {
    Throw(ErrorKind::kUnsupported,
          "a model with learned positions for {} tokens cannot be run on {} ranks",
          geometry.learned_positions, ranks);
  }
  if (std::ranges::any_of(geometry.windows, [](int64_t window) { return window != 0; })) {
    Throw(ErrorKind::kUnsupported,
          "this model has a sliding window or chunks, which see across the blocks of {} ranks: use "
          "prefill ring",
          ranks);
  }
  return std::make_unique<ShardPolicy>(
      options.ranks->rank(), ranks, spec,
      spec.by_speed ? options.rank_speeds : std::vector<RankSpeed>(),
      LayoutOf(geometry, options.kv_type).BytesFor(spec.block), std::move(alone));
}

}  // namespace godwit
