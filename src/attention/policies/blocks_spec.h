// What "blocks:quest,second_block_count=96" says, under the names that the configuration of
// KTransformers' long-context text has for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attention/blocks/block_index.h"

namespace godwit {

// A token sees the first `initial` tokens, the last `local_windows_len` up to itself (both in whole
// blocks), and of the blocks between them the `second_block_count` that matter most to it.
struct BlocksSpec {
  int64_t block_size = 64;           // tokens, whole tiles
  int64_t initial = 64;              // tokens
  int64_t local_windows_len = 1024;  // tokens, at least 1
  int64_t second_block_count = 48;   // at least 1
  int64_t dense_layer_num = 0;       // the first so many layers see everything
  // What a token chose is also seen by those after it, up to a position that is a multiple of
  // token_step, and in the choosing layers after it, up to layer_step of them in all.
  int64_t token_step = 1;
  int64_t layer_step = 1;
  // The share of its attention up to which a token chooses blocks, by their keys; least_block_count
  // at least, and second_block_count at most. 1: as many as there may be.
  double top_p = 1;
  int64_t least_block_count = 1;
  // The last observation_window tokens of a question choose preselect_block_count blocks, by the
  // keys, among which those of the answer choose, and among what has left the window since.
  bool preselect_block = false;
  int64_t preselect_block_count = 96;
  // With DYNAMIC so many of every stretch observe it, too.
  int64_t observation_window = 128;
  // What is neither seen nor chosen counts with the mean key and the mean value of its block.
  bool estimate = false;
  bool separate = true;  // head_select_mode: SEPARATE, for each KV head; or SHARED
  RepresentativeType representative_type = RepresentativeType::kSign;
  // Vectors kept of a block; 0: those of parts of 16 tokens, or of SIGN the one of every token.
  // DYNAMIC has the keys of so many tokens of a block, wherever they lie in it.
  int64_t representative_num = 0;
  // Two levels: of groups of so many blocks, by what stands for a group, the group_count that
  // matter most are opened, and their blocks compared; with QUEST as many as may hold one of those
  // to be chosen. 0: all blocks are compared, as they are while there are no more groups than that.
  int64_t group_blocks = 0;
  int64_t group_count = 192;

  BlockShape Shape() const;
  // With DYNAMIC, tokens of the text of which the last observation_window observe the others: what
  // the window holds, up to 4096, in whole blocks.
  int64_t stretch() const;
  BlockShape GroupShape() const;  // of representatives of groups
  // As --kv spells it: what differs from the preset `blocks`.
  std::string ToString() const;
  // What it means, in sentences for people.
  std::string Explain() const;
};

// arguments: what follows "blocks:", or nothing. Throws Error(kInput) for what makes no sense.
BlocksSpec ParseBlocksSpec(std::string_view arguments);

}  // namespace godwit
