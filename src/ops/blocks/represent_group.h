// The representative of a group of neighbouring blocks. It is made of their representatives, never
// of keys, so that only the index is read for it.
#pragma once

#include <cstdint>

#include "ops/blocks/index_view.h"

namespace godwit::ops {

// QUEST bounds nest: the box around the boxes of its parts is a bound of each part's. Otherwise a
// group has the mean and the spread of its keys, as far as their representatives tell.
constexpr RepresentativeType GroupType(RepresentativeType of_blocks) {
  return of_blocks == RepresentativeType::kQuest ? RepresentativeType::kQuest
                                                 : RepresentativeType::kMeanStd;
}

// Computes the representative of blocks [begin, end) of a head, which `blocks` holds: [2 *
// head_dim] and zeros to kQuad, in int8. Returns the scale. For kSign it comes from means and
// levels, less the centre. For kQuest the box of the group's integers holds those of its parts'
// integers, as they are scored.
float RepresentGroup(const kernels::KernelTable& kernels, const IndexView& blocks, int64_t head,
                     int64_t begin, int64_t end, int8_t* representative);

}  // namespace godwit::ops
