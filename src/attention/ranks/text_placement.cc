#include "attention/ranks/text_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "attention/ranks/spread_blocks.h"
#include "base/error.h"

namespace godwit {
namespace {

// The rounds in which all ranks read the anchor together, cut to whole tiles for each rank. The
// rank with a round's last chunk sees the most; many rounds keep its extra work small.
RingLayout AnchorOf(int64_t anchor, int64_t ranks) {
  constexpr int64_t kRounds = 8, kMaxChunk = 2048;
  const int64_t tiles = anchor / (ranks * kTileTokens);  // for each rank
  return {.ranks = ranks,
          .chunk = std::clamp(tiles / kRounds * kTileTokens, kTileTokens, kMaxChunk),
          .context = ranks > 1 ? tiles * ranks * kTileTokens : 0,
          .kept = true};
}

}  // namespace

TextPlacement TextPlacement::InRing(int rank, int ranks, int64_t chunk) {
  TextPlacement placement(rank, ranks);
  placement.ring_ = {.ranks = ranks, .chunk = chunk};
  placement.tiles_ = std::make_shared<const std::vector<ops::TilePart>>();
  return placement;
}

TextPlacement TextPlacement::InStar(int rank, int ranks, Star star) {
  TextPlacement placement(rank, ranks);
  placement.ring_ = AnchorOf(star.anchor, ranks);
  placement.star_ = std::make_shared<const Star>(std::move(star));
  return placement;
}

std::string TextPlacement::ToString() const {
  if (ranks_ == 1) return "";
  const std::string part = is_star() ? fmt::format("star:{}-{}", blocks_.begin, blocks_.end)
                                     : fmt::format("ring:{}", ring_.chunk);
  return fmt::format("{} of {} tokens", part, question_begin_);
}

void TextPlacement::SetQuestion(int64_t position) {
  if (ranks_ == 1) return;
  question_begin_ = position;
  if (is_star()) return SpreadBlocks();
  // A round has a tile for every rank at least.
  if (position < ranks_ * kTileTokens) question_begin_ = 0;
  ring_.context = question_begin_;
  ListTiles();
}

void TextPlacement::SpreadBlocks() {
  const int64_t block = star_->block, blocks = (question_begin_ + block - 1) / block;
  if (blocks < ranks_) {
    const int64_t unit = star_->chosen;
    Throw(ErrorKind::kInput,
          "a context of {} tokens has {} block{} of {}, too few for {} ranks: use fewer ranks, "
          "or star:block={} at most",
          question_begin_, blocks, blocks == 1 ? "" : "s", block, ranks_,
          std::max(unit, question_begin_ / ranks_ / unit * unit));
  }
  const auto counts = star_->speeds.empty() ? SpreadEvenly(blocks, ranks_)
                                            : SpreadBySpeed(blocks, star_->speeds,
                                                            star_->block_bytes, ring_.context > 0);
  const auto mine = counts.begin() + rank_;
  const int64_t first = std::accumulate(counts.begin(), mine, int64_t{0});
  blocks_ = {first * block, std::min((first + *mine) * block, question_begin_)};
  choosable_ = {blocks_.begin, is_last() ? INT64_MAX : blocks_.end};
}

void TextPlacement::ListTiles() {
  std::vector<ops::TilePart> tiles;
  for (int64_t round = 0; ring_.context > 0 && round < ring_.rounds(); ++round) {
    const auto [begin, end] = ring_.Chunk(round, rank_);
    for (int64_t p = begin; p < end; p += kTileTokens) {
      tiles.push_back({.tile = p / kTileTokens,
                       .begin = 0,
                       .end = static_cast<int32_t>(std::min(kTileTokens, end - p))});
    }
  }
  tiles_ = std::make_shared<const std::vector<ops::TilePart>>(std::move(tiles));
}

// First what all read together, then a star's own blocks, then the question.
ops::KvRange TextPlacement::Reads(int64_t length) const {
  if (AllReadNext(length)) {
    const ops::KvRange chunk = ring_.Next(length, rank_);
    if (chunk.begin < chunk.end) return chunk;
  }
  const std::array<ops::KvRange, 3> parts = {{{0, is_star() && rank_ > 0 ? star_->anchor : 0},
                                              is_star() ? blocks_ : ops::KvRange{0, 0},
                                              {question_begin_, INT64_MAX}}};
  const int64_t from = std::max(length, ring_.context);
  const auto next = std::ranges::upper_bound(parts, from, {}, &ops::KvRange::end);
  return {std::max(from, next->begin), next->end};
}

int64_t TextPlacement::ContextLeft(int64_t length) const {
  int64_t left = 0;
  for (int64_t at = length; ranks_ > 1 && at < question_begin_;) {
    const ops::KvRange next = Reads(at);
    left += std::max<int64_t>(0, std::min(next.end, question_begin_) - next.begin);
    at = next.end;
  }
  return left;
}

Looks TextPlacement::Shown(const Looks& all, int64_t kv_heads, Workspace& workspace) const {
  Looks here;
  here.AddRead(all.read_bytes());
  here.SetBefore(all.before());
  if (is_star()) {
    for (Look look : all.span()) {
      look.visible.begin = std::max(look.visible.begin, choosable_.begin);
      look.visible.end = std::min(look.visible.end, choosable_.end);
      here.Add(look);
    }
    return here;
  }
  const auto lists = workspace.Matrix<std::span<const ops::TilePart>>(1, kv_heads).RowSpan(0);
  std::ranges::fill(lists, std::span(*tiles_));
  for (Look look : all.span()) {
    const int64_t begin = look.visible.begin;
    if (is_last()) {
      look.visible.begin = std::max(begin, question_begin_);
      here.Add(look);
      look.visible.begin = begin;
    }
    look.parts = lists;
    look.visible.end = std::min(look.visible.end, question_begin_);
    here.Add(look);
  }
  return here;
}

}  // namespace godwit
