// BlocksSpec: the meaning of "blocks:quest,second_block_count=96". The names are those of the
// configuration of KTransformers' long-context text (blocks_presets.h has its other spellings).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attention/blocks/block_index.h"

namespace godwit {

// A token sees the first `initial` tokens and the last `local_windows_len` up to itself, both in
// whole blocks. Between them it sees the `second_block_count` blocks that matter most to it.
struct BlocksSpec {
  int64_t block_size = 64;           // tokens: whole tiles, or 1, 2, 4, 8, 16 or 32
  int64_t initial = 64;              // tokens
  int64_t local_windows_len = 1024;  // tokens, at least 1
  int64_t second_block_count = 48;   // at least 1
  int64_t dense_layer_num = 0;       // the first so many layers see everything
  // The sharing of choices. Tokens after the one that chose share its choice, up to a position that
  // is a multiple of token_step. Choosing layers after it share it, too, layer_step of them in all.
  int64_t token_step = 1;
  int64_t layer_step = 1;
  // Whether a token that shares a choice sees one chosen block less for each block that has left
  // the window since. The least important ones go first (TokenSwift, section 3.3).
  bool gradual = false;
  // Whether heads that choose together add their scores up (ops::BlockChoice).
  bool sum_scores = false;
  // The share of its attention up to which a token chooses blocks, by their keys: at least
  // least_block_count and at most second_block_count. 1: as many as there may be.
  double top_p = 1;
  int64_t least_block_count = 1;
  // Whether the last observation_window tokens of a question choose preselect_block_count blocks,
  // by the keys. The tokens of the answer then choose among these, and among blocks that have left
  // the window since.
  bool preselect_block = false;
  int64_t preselect_block_count = 96;
  // Whether they choose by votes (ops/blocks/choose_by_votes.h), as SnapKV and KTransformers do,
  // not by the largest share. The observing tokens are then the last ones of the prompt, question
  // or not. A block also gets the votes of pool_tokens tokens on either side; -1: a quarter of it.
  bool preselect_votes = false;
  int64_t pool_tokens = -1;
  // Whether the question is read like the context, and only the answer chooses.
  bool dense_question = false;
  // The number of observing tokens at the end of a question; with DYNAMIC also at the end of every
  // stretch.
  int64_t observation_window = 128;
  // Whether blocks that are neither seen nor chosen count with their mean key and mean value.
  bool estimate = false;
  bool separate = true;  // head_select_mode: SEPARATE, for each KV head; or SHARED
  // With blocks below a tile, of which signs know nothing apart, MEAN unless another one is asked
  // for.
  ops::RepresentativeType representative_type = ops::RepresentativeType::kSign;
  // The number of vectors kept of a block. 0: one for each part of 16 tokens, or with SIGN one for
  // each token. With DYNAMIC they are the keys of so many tokens, wherever they lie in the block.
  int64_t representative_num = 0;
  // The two levels of a choice: groups of group_blocks blocks, of which the group_count that matter
  // most are opened, by their representatives. Their blocks are then compared. With QUEST as many
  // groups are opened as may hold a block to be chosen. 0: all blocks are compared, as they are
  // while there are no more groups than that.
  int64_t group_blocks = 0;
  int64_t group_count = 192;

  ops::BlockShape Shape() const;
  int64_t PoolTokens() const { return pool_tokens < 0 ? block_size / 4 : pool_tokens; }
  // The tokens of a stretch with DYNAMIC: the length of the window, up to 4096, in whole blocks and
  // tiles.
  // The last observation_window of them observe the others.
  int64_t stretch() const;
  ops::BlockShape GroupShape() const;  // of the index of groups
  // The spec as --kv spells it: the differences from the preset `blocks`.
  std::string ToString() const;
  // An explanation in sentences for people.
  std::string Explain() const;
};

// Parses the text after "blocks:", or nothing. Throws Error(kInput) for senseless arguments.
BlocksSpec ParseBlocksSpec(std::string_view arguments);

}  // namespace godwit
