// RingLayout: the places of the tokens of a context that several ranks read together, each rank its
// own.
//
// The context is cut into rounds of ranks x chunk tokens, and a round into a chunk for every rank,
// in order. One step of the model reads a round, on all ranks at once. A chunk consists of whole
// tiles. The last round has smaller chunks, and the few tokens that fill no tile for each rank join
// the last rank's last chunk. Every rank therefore has rows in every round. Each keeps its own
// chunks, or those of all, where it is to read on by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "ops/attention.h"
#include "ops/kv_layout.h"

namespace godwit {

struct RingLayout {
  int64_t ranks = 1;
  int64_t chunk = 0;    // of a rank, a multiple of kTileTokens
  int64_t context = 0;  // tokens, at least a tile for every rank
  bool kept = false;    // each rank keeps all of it, which is then whole tiles for every rank

  int64_t rounds() const { return full_rounds() + (last_chunk() > 0 ? 1 : 0); }
  int64_t RoundOf(int64_t position) const {
    return std::min(position / (ranks * chunk), rounds() - 1);
  }
  int64_t Begin(int64_t round) const { return round * ranks * chunk; }
  // The tokens of a rank in that round that are sent to all others, in whole tiles.
  int64_t SharedBy(int64_t round) const { return round < full_rounds() ? chunk : last_chunk(); }
  // The tokens that a rank reads in that round.
  ops::KvRange Chunk(int64_t round, int64_t rank) const {
    const int64_t begin = Begin(round) + rank * SharedBy(round);
    const bool last = round == rounds() - 1 && rank == ranks - 1;
    return {begin, last ? context : begin + SharedBy(round)};
  }
  // The whole round in which a position lies.
  ops::KvRange RoundAround(int64_t position) const {
    const int64_t round = RoundOf(position);
    return {Begin(round), Chunk(round, ranks - 1).end};
  }
  // The tokens that a rank reads next of a text of `length` tokens; nothing: {context, context}.
  ops::KvRange Next(int64_t length, int64_t rank) const {
    if (length >= context) return {context, context};
    const int64_t round = RoundOf(length);
    const ops::KvRange chunk = Chunk(round, rank);
    if (length < chunk.end) return {std::max(length, chunk.begin), chunk.end};
    return round + 1 == rounds() ? ops::KvRange{context, context} : Chunk(round + 1, rank);
  }
  // The number of rounds that together consist of whole stretches. Attention over such groups, one
  // after the other, adds up in the order of attention over all.
  int64_t rounds_in_group() const {
    return ops::kStretchTokens / std::gcd(ops::kStretchTokens, ranks * chunk);
  }

 private:
  int64_t full_rounds() const { return context / (ranks * chunk); }
  int64_t last_chunk() const {
    const int64_t tokens = context % (ranks * chunk);
    return tokens / (ranks * kTileTokens) * kTileTokens;
  }
};

}  // namespace godwit
