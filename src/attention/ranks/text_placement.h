// TextPlacement: where the tokens of a text lie. It says which positions this rank reads, keeps and
// shows to the question and the answer.
//
// It is a plain value, which the policy does not know. A policy says what a row sees, as if one
// rank had all. The rank then shows the part that lies with it, and the results of all ranks are
// merged (merge_ranks.h). Ranks share the context of a text in one of two ways. The question and
// the answer go through all ranks.
//
// In a ring all ranks read every round together, a chunk each (ring_layout.h, ring.h). Every token
// sees and gets the same as on one rank. Each rank shows its chunks. (Ring Attention, arXiv
// 2310.01889; passing keys and values, arXiv 2411.01783.)
//
// In a star the blocks of the context go to the ranks in order, equally many to each or by their
// speeds (spread_blocks.h). All ranks read the anchor together and keep it, as far as it has a tile
// for each. Each reads its blocks behind it and shows them. Question and answer may choose what
// they see (policies/blocks.h). Each rank then chooses for them among its own blocks. Its share of
// the choice is its share of the blocks. (Star Attention, arXiv 2411.17116, section 2.)
//
// The last rank also keeps and shows the keys of question and answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/core/policy.h"
#include "attention/ranks/rank_speed.h"
#include "attention/ranks/ring_layout.h"
#include "ops/attention.h"
#include "ops/kv_layout.h"
#include "tensor/workspace.h"

namespace godwit {

class TextPlacement {
 public:
  // One rank has the whole text.
  TextPlacement() = default;

  // chunk: the tokens of a rank in a round, a multiple of kTileTokens.
  static TextPlacement InRing(int rank, int ranks, int64_t chunk);

  struct Star {
    int64_t block;   // tokens
    int64_t anchor;  // tokens
    int64_t chosen;  // tokens of a unit of choice (PolicyFacts::chosen_tokens)
    // Ranks read blocks in proportion to their speeds; empty: all read equal numbers.
    std::vector<RankSpeed> speeds = {};
    int64_t block_bytes = 0;  // keys and values of a block
  };
  static TextPlacement InStar(int rank, int ranks, Star star);

  int ranks() const { return ranks_; }
  // The part of the context that this rank has, by which its keys are told from those of others:
  // "ring:2048 of 10000 tokens"; empty for one rank.
  std::string ToString() const;

  // Sets where the question begins, behind the context that ranks share. Throws Error(kInput) for a
  // star of fewer blocks than ranks. A context that is too short for a ring goes through all ranks,
  // as a question does.
  void SetQuestion(int64_t position);

  // The positions that this rank reads next in a text of `length` tokens. Positions before `begin`
  // are skipped, because other ranks read them. No step goes beyond `end`.
  ops::KvRange Reads(int64_t length) const;
  // The tokens of the context that this rank has yet to read in a text of `length` tokens.
  int64_t ContextLeft(int64_t length) const;
  // The position from which a row sees only the keys of this rank. The results of all ranks are
  // then merged. INT64_MAX: there are no others.
  int64_t merged_from() const { return ranks_ == 1 ? INT64_MAX : question_begin_; }
  // The layout of the tokens at the text's beginning that all ranks read together, a chunk each at
  // once. Each rank's rows also see the keys of the others.
  const RingLayout& ring() const { return ring_; }
  // Whether all ranks read the next token of a text of `length` tokens together, and whether each
  // then keeps the tokens of all.
  bool AllReadNext(int64_t length) const { return length < ring_.context; }
  bool AllKeepNext(int64_t length) const { return AllReadNext(length) && ring_.kept; }
  // The number of tokens at the text's beginning that are read together and kept by every rank.
  int64_t kept_by_all() const { return ring_.kept ? ring_.context : 0; }

  // The positions among which this rank may choose keys for the question and the answer.
  ops::KvRange choosable() const { return choosable_; }
  // The looks of rows behind the context, cut to the keys that this rank shows. In the workspace.
  Looks Shown(const Looks& all, int64_t kv_heads, Workspace& workspace) const;

 private:
  TextPlacement(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  bool is_star() const { return star_ != nullptr; }
  bool is_last() const { return rank_ + 1 == ranks_; }
  void SpreadBlocks();
  void ListTiles();

  int rank_ = 0;
  int ranks_ = 1;
  std::shared_ptr<const Star> star_;  // null: a ring, or one rank
  RingLayout ring_ = {.chunk = kTileTokens};
  int64_t question_begin_ = 0;
  ops::KvRange blocks_ = {0, 0};  // of this rank in a star
  ops::KvRange choosable_ = {0, INT64_MAX};
  std::shared_ptr<const std::vector<ops::TilePart>> tiles_;  // of this rank in a ring
};

}  // namespace godwit
