// SnapshotHeader: the beginning of a snapshot (snapshot.h), and the places of its pages.
//
//   "godwitkv", version u32, bytes of JSON u32, tokens u64, pages u64, checksum u64 of all of the
//   header but itself; JSON; tokens i32 each; a checksum u64 for each page and for each state;
//   zeros to a multiple of kAlignment; for every layer its pages, in order, and zeros likewise;
//   each state of recurrent layers [layers, floats] f32, and zeros likewise. Little-endian.
//
// The JSON has the facts on which the numbers depend besides the tokens. It also has the parent,
// the place in it, the layout of a page, and the positions of states with their sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/attention.h"
#include "ops/kv_layout.h"

namespace godwit {

// Names and values, in an order of their maker.
using SnapshotFacts = std::vector<std::pair<std::string, std::string>>;
// The value of a name; empty: there is none.
std::string FactNamed(const SnapshotFacts& facts, std::string_view name);

struct SnapshotInfo {
  std::string label;  // for people
  SnapshotFacts facts;
  // The name of the snapshot from whose first `begin` tokens this one goes on; empty: it begins a
  // text.
  std::string parent;
  int64_t begin = 0;            // whole tiles, as all positions here
  std::vector<int32_t> tokens;  // from `begin` on
  // Positions without pages, in a snapshot without a parent of a text that has forgotten them.
  ops::KvRange dropped{0, 0};
  // Positions without pages, ascending, in a text that hosts share: other hosts hold them.
  std::vector<ops::KvRange> skipped;
  KvLayout layout;  // its states without rows, of which a snapshot has none
  // The positions behind `begin`, ascending, at which it has states of recurrent layers. The last
  // one is end(), so that a text can go on from there. None in a model without such layers.
  std::vector<int64_t> states;

  int64_t end() const { return begin + std::ssize(tokens); }
  // Positions with pages, ascending.
  std::vector<ops::KvRange> held() const;
  int64_t held_tiles() const;
  // The bytes of a state in the file.
  int64_t state_bytes() const {
    return layout.states.layers * layout.states.floats * int64_t{sizeof(float)};
  }
  // The bytes of a page in the file.
  int64_t page_bytes() const { return (layout.tile_bytes() + 63) / 64 * 64; }
  // A name made from the content, so that a snapshot that is saved twice exists once.
  std::string Name() const;
};

struct SnapshotHeader {
  static constexpr int64_t kAlignment = 4096;

  SnapshotInfo info;
  std::vector<uint64_t> checksums;  // of pages [held_tiles, layers], then of states
  int64_t data_begin = 0;           // of the first layer, in the file

  // The place of a page in the file. tile: among those that are held.
  int64_t OffsetOf(int64_t layer, int64_t tile) const;
  // The place of a state, by its index in SnapshotInfo::states.
  int64_t OffsetOfState(int64_t index) const;
  int64_t file_bytes() const { return OffsetOfState(std::ssize(info.states)); }
};

// The bytes of the header, with SnapshotHeader::checksums.
std::vector<std::byte> MakeSnapshotHeader(const SnapshotInfo& info,
                                          std::span<const uint64_t> checksums);

// Parses the header of a whole file. Throws Error(kFormat) that begins with file_name and says what
// is wrong; Error(kUnsupported) for another version.
SnapshotHeader ParseSnapshotHeader(std::span<const std::byte> file, const std::string& file_name);

}  // namespace godwit
