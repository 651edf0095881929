// Exact attention of a context that several ranks read together: every rank attends with its own
// rows to the keys of all.
//
// The keys and values of all ranks come by as they are stored, in the order of the text, in groups
// of rounds (ring_layout.h). While the cores attend to one group, a thread fetches the next. Groups
// consist of whole stretches, and the rows' states go from one to the next. A row thus gets the
// bits that it gets where one machine holds all (ops::AttentionRows::before).
#pragma once

#include <cstdint>
#include <span>

#include "attention/ranks/ring_layout.h"
#include "dist/communicator.h"
#include "kv/kv_cache.h"
#include "ops/alibi.h"
#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// Attends with the rows of one whole chunk of this rank, whose keys lie in `cache`. The rows'
// sources are ranges of positions over `cache`, each replaced by the keys of a group in turn. Every
// rank calls this for its chunk of the same round. out, sink_logits: as ops::Attention has them. A
// token's key and value go to all other ranks once in its own round and once in every later one.
// Throws what the communicator does, and Error(kCancelled).
void AttendInRing(const Exec& exec, Communicator& ranks, const RingLayout& layout,
                  const ops::AttentionShape& shape, const ops::Alibi& alibi, const KvCache& cache,
                  int64_t layer, const ops::AttentionRows& rows, std::span<const float> sink_logits,
                  MatrixView<float> out);

// Gathers a round of a layout that is kept. Every rank sends the keys and values that it has
// written in the layer for its chunk to all others. They lie in all caches as in one host's. It is
// the round that begins or goes on where `cache` ends. Every rank calls this after
// TextCache::ReserveNext for all of it. Throws as AttendInRing does.
void GatherRound(const Exec& exec, Communicator& ranks, const RingLayout& layout,
                 const KvCache& cache, int64_t layer);

}  // namespace godwit
