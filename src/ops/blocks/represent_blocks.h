// The representatives of blocks, computed from keys or from the representatives of finer blocks.
#pragma once

#include <cstdint>
#include <span>

#include "ops/blocks/index_view.h"
#include "ops/exec.h"
#include "ops/kv_view.h"

namespace godwit::ops {

// The tokens of blocks whose keys stand for these with kDynamic, for every KV head, by their places
// in the block. They are as many as a block has parts, in ascending order.
struct ImportantTokens {
  // Neighbouring stretches of `stretch_blocks` blocks from block `first` on. Each has [blocks,
  // kv_heads, parts] places, or none: tokens at equal distances are then taken.
  std::span<const std::span<const uint16_t>> stretches = {};
  int64_t first = 0;
  int64_t stretch_blocks = 1;
};

// Learns the levels of signs from the first learnt_blocks. On all cores.
void LearnLevels(const Exec& exec, const KvView& kv, const IndexView& index);

// Computes the representatives of `blocks`, whose keys kv holds, each a function of its block's
// keys alone. For kSign the levels are learnt. important: for kDynamic. On all cores.
void RepresentBlocks(const Exec& exec, const KvView& kv, const IndexView& index, KvRange blocks,
                     const ImportantTokens& important = {});

// Computes those of `groups`, blocks of whole blocks of `finer`, from the representatives of these
// (represent_group.h). On all cores.
void RepresentGroups(const Exec& exec, const IndexView& finer, const IndexView& index,
                     KvRange groups);

}  // namespace godwit::ops
