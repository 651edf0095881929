#include "attention/policies/shard.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "attention/policies/blocks_spec.h"
#include "attention/policies/prefill_spec.h"
#include "attention/policies/spread_blocks.h"
#include "attention/ring_layout.h"
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

class ShardPolicy : public AttentionPolicy {
 public:
  // speeds: ranks read blocks in proportion to their speed. Empty: all read equal numbers.
  ShardPolicy(int rank, int ranks, const PrefillSpec& spec, std::vector<RankSpeed> speeds,
              int64_t block_bytes, int64_t unit, std::unique_ptr<AttentionPolicy> alone)
      : rank_(rank),
        ranks_(ranks),
        spec_(spec),
        speeds_(std::move(speeds)),
        block_bytes_(block_bytes),
        unit_(unit),
        alone_(std::move(alone)),
        anchor_(AnchorOf(spec, ranks)) {}

  std::string name() const override { return alone_->name(); }
  std::string Explain() const override {
    return fmt::format(
        "{} The blocks are spread over {} ranks.{}", alone_->Explain(), ranks_,
        unit_ > 1
            ? " Each rank chooses among its own blocks, in proportion to its share of the context."
            : "");
  }
  int64_t limit_tokens() const override { return alone_->limit_tokens(); }
  int64_t max_kept_tokens() const override { return alone_->max_kept_tokens(); }
  ops::KvRange Forgotten(int64_t length) const override { return alone_->Forgotten(length); }
  int64_t SeenKeys(int64_t layer, int64_t position) const override {
    return alone_->SeenKeys(layer, position);
  }
  IndexSize IndexAt(const KvLayout& layout, int64_t position) const override {
    return alone_->IndexAt(layout, position);
  }
  bool separates_question() const override { return true; }
  int64_t row_by_row_from(int64_t layer) const override { return alone_->row_by_row_from(layer); }

  void SetQuestion(int64_t position, int64_t answer) override {
    question_begin_ = position;
    const int64_t blocks = (position + spec_.block - 1) / spec_.block;
    if (blocks < ranks_) {
      Throw(ErrorKind::kInput,
            "a context of {} tokens has {} block{} of {}, too few for {} ranks: use fewer ranks, "
            "or star:block={} at most",
            position, blocks, blocks == 1 ? "" : "s", spec_.block, ranks_,
            std::max(unit_, position / ranks_ / unit_ * unit_));
    }
    const auto counts = speeds_.empty()
                            ? SpreadEvenly(blocks, ranks_)
                            : SpreadBySpeed(blocks, speeds_, block_bytes_, anchor_.context > 0);
    const auto mine = counts.begin() + rank_;
    const int64_t first = std::accumulate(counts.begin(), mine, int64_t{0});
    mine_ = {first * spec_.block, std::min((first + *mine) * spec_.block, position)};
    alone_->LimitKeysTo(Shown());
    alone_->SetQuestion(position, answer);
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

  void Plan(const RowRun& run) override { alone_->Plan(run); }
  Looks Select(const RowRun& run, int64_t layer, const RunQueries& queries) override {
    const Looks all = alone_->Select(run, layer, queries);
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

  void Accept(int64_t length, std::span<const int64_t> path) override {
    alone_->Accept(length, path);
  }
  void Truncate(int64_t length) override { alone_->Truncate(length); }
  // Never back into the context, because other ranks have read parts of it.
  int64_t RestartPoint(int64_t length, int64_t answer) const override {
    const int64_t before = alone_->RestartPoint(length, answer);
    return before < question_begin_ ? 0 : before;
  }
  int64_t bytes() const override { return alone_->bytes(); }

  std::unique_ptr<AttentionPolicy> Fork() const override {
    auto fork = std::make_unique<ShardPolicy>(rank_, ranks_, spec_, speeds_, block_bytes_, unit_,
                                              alone_->Fork());
    fork->question_begin_ = question_begin_;
    fork->mine_ = mine_;
    return fork;
  }

 private:
  // The positions that this rank shows to question and answer.
  ops::KvRange Shown() const { return {mine_.begin, rank_ + 1 < ranks_ ? mine_.end : INT64_MAX}; }

  int64_t rank_;
  int64_t ranks_;
  PrefillSpec spec_;
  std::vector<RankSpeed> speeds_;
  int64_t block_bytes_;  // keys and values of a block
  int64_t unit_;         // tokens of a block that question and answer choose; 1 without a choice
  std::unique_ptr<AttentionPolicy> alone_;
  RingLayout anchor_;
  int64_t question_begin_ = 0;
  ops::KvRange mine_{0, 0};  // in the context
};

// A rank chooses by the representatives of its own blocks and knows no other rank's.
void CheckBlocks(const BlocksSpec& blocks, const PrefillSpec& star, int ranks) {
  const auto refuse = [&](std::string_view what, std::string_view why) {
    Throw(ErrorKind::kUnsupported, "blocks with {}: {}; leave it out on {} ranks", what, why,
          ranks);
  };
  if (blocks.preselect_block) {
    refuse(
        "preselect_block",
        "the question would choose among all keys of the context, and a rank has a part of them");
  }
  if (blocks.top_p < 1)
    refuse("top_p", "a share of attention refers to all keys, and a rank has a part of them");
  if (blocks.representative_type == ops::RepresentativeType::kDynamic) {
    refuse("representative_type=DYNAMIC", "the observers of a token may be on another rank");
  }
  if (star.block % blocks.block_size != 0) {
    Throw(ErrorKind::kInput,
          "star has blocks of {} tokens on {} ranks, which is no multiple of the {} tokens of "
          "block_size: make it one",
          star.block, ranks, blocks.block_size);
  }
}

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
  const std::string_view kv = options.spec, kind = kv.substr(0, kv.find(':'));
  int64_t unit = 1;
  if (kind == "blocks") {
    const auto blocks = ParseBlocksSpec(kv.substr(std::min(kv.size(), kind.size() + 1)));
    CheckBlocks(blocks, spec, ranks);
    unit = blocks.block_size;
  } else if (kind != "dense") {
    Throw(ErrorKind::kUnsupported,
          "{} ranks cannot share a text with the KV policy \"{}\": only dense and blocks work on "
          "several ranks",
          ranks, kv);
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
      LayoutOf(geometry, options.kv_type).BytesFor(spec.block), unit, std::move(alone));
}

}  // namespace godwit
