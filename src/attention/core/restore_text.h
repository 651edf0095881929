// RestoreText: a text goes on from what a folder has of it.
#pragma once

#include <cstdint>
#include <span>

#include "attention/core/text_cache.h"
#include "kv/snapshot_folder.h"

namespace godwit {

// Makes a new text, which nothing else shares, go on from a chain of snapshots in a folder, as far
// as they can be opened. The chain's text was read in the same way (PolicyFacts::reading). answer:
// as in SetQuestion. Returns the position reached: less than the chain's end, or 0. That is where
// the policy needs to have seen more than keys, or where no state was saved. A context that ranks
// share comes back whole (TextCache::ForkOfContext) or not at all. Damaged snapshots
// leave the folder. Throws Error(kMemory).
int64_t RestoreText(SnapshotFolder& folder, std::span<const SnapshotFolder::Piece> pieces,
                    int64_t answer, TextCache& text);

}  // namespace godwit
