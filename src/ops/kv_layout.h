// KvLayout: the order of cached keys and values in memory.
//
// A page holds kTileTokens positions of one layer. Where layers have different heads, it may hold
// those of several layers, so that all pages of a model are of one size. A layer has for every KV
// head the keys and the values in the order of the attention kernels (kernel_table.h, KvDepth). For
// int8 it also has the scales of the keys and of the values, [kTileTokens] f32 each. Where values
// are numbers of their keys (ops::AttentionShape::values_from), it has the keys alone, whose scales
// are those of both.
//
// Keys in int8 have one scale each, which a few large numbers would take from all others. A
// Hadamard matrix spreads those over the head (QuaRot, arXiv 2404.00456): H k is stored, and
// queries become H q, so that scores stay. Keys that share a large mean are stored less the centre
// of their tile, as H (k - c). The page has the centre behind the scales: q . c is one number for a
// tile.
//
// Behind the KV heads a page may have index keys, one of a position. By them the model itself
// chooses the keys that a query sees (select_keys.h). They lie as the keys of one more head, whose
// values are in its keys. Where few layers have some, they may lie in pages of their own, those of
// several layers in one.
//
// Keys and values of 4 bits (kernel_table.h, WidenedType) are quantized as normal numbers are,
// which such a rotation makes of either. Values lie as H v, too, and the sums of attention are
// rotated back (hadamard_heads.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/kernel_table.h"
#include "ops/state_layout.h"
#include "tensor/dtype.h"

namespace godwit {

// Facts of the attention kernels that every room may know: the positions of a page, the widest
// head, the types with values of 4 bits.
using kernels::HasNarrowValues;
using kernels::kMaxHeadDim;
using kernels::kTileTokens;

// A type in which keys and values can be stored, as --kv-type spells it.
struct KvType {
  std::string_view name;
  DType dtype;
};
inline constexpr KvType kKvTypes[] = {{"f32", DType::kF32},   {"f16", DType::kF16},
                                      {"bf16", DType::kBF16}, {"int8", DType::kI8},
                                      {"k8v4", DType::kI8I4}, {"int4", DType::kI4}};

// The name as --kv-type spells it, or as a checkpoint does where it is none of these.
constexpr std::string_view KvTypeName(DType dtype) {
  for (const KvType& type : kKvTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return Name(dtype);
}

// Whether keys and values are computed with as int8.
constexpr bool HasIntegers(DType dtype) { return kernels::WidenedType(dtype) == DType::kI8; }

// The keys and values of one layer: how many KV heads, of which size.
struct KvHeads {
  int64_t kv_heads = 0;
  int64_t head_dim = 0;

  bool operator==(const KvHeads&) const = default;
};

// The place of a layer in the pages of a tile, where layers have different heads.
struct KvPlace {
  KvHeads heads;
  int64_t page = 0;          // among the pages of a tile
  int64_t offset_bytes = 0;  // in the page
};

struct KvLayout {
  int64_t layers = 0;  // those with keys of their own
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  DType dtype = DType::kBF16;  // one of kKvTypes
  bool values_in_keys = false;
  bool centred = false;        // keys are stored less a centre of their tile; with hadamard() only
  int64_t index_dim = 0;       // the width of index keys, without `places`; 0: there are none
  int64_t page_alignment = 1;  // a page's bytes are a multiple of it
  StateLayout states = {};     // of layers without keys
  // The places [layers] of layers with different heads, which share pages of one size. Then the
  // number and the bytes of the pages of a tile (PlaceLayers). Empty and 0: each layer has a page,
  // and all have kv_heads and head_dim.
  std::vector<KvPlace> places = {};
  // The places [layers] of index keys in pages of their own (PlaceIndexes); page -1: the layer has
  // none. Empty: they lie behind the keys of each layer.
  std::vector<KvPlace> index_places = {};
  int64_t mixed_pages = 0;
  int64_t mixed_bytes = 0;

  // The bytes of one tile of one head: of its keys, of its values, of the scales of both, of all.
  int64_t key_bytes() const {
    const int64_t depth = kernels::KvDepth(kernels::WidenedType(dtype));
    const int64_t bytes = kernels::KeyElements(depth, head_dim) * Element();
    return kernels::HasNarrowKeys(dtype) ? bytes / 2 : bytes;
  }
  int64_t value_bytes() const {
    if (values_in_keys) return 0;
    const int64_t bytes = kernels::kTileTokens * kernels::PadToLanes(head_dim) * Element();
    return kernels::HasNarrowValues(dtype) ? bytes / 2 : bytes;
  }
  int64_t scale_bytes() const {
    if (!HasIntegers(dtype)) return 0;
    return (values_in_keys ? 1 : 2) * kernels::kTileTokens * int64_t{sizeof(float)};
  }
  // The bytes of a centre: [head_dim] of bf16, in whole lines of memory.
  int64_t centre_bytes() const {
    constexpr int64_t kLine = 64;
    return centred ? (2 * head_dim + kLine - 1) / kLine * kLine : 0;
  }
  int64_t head_bytes() const {
    return key_bytes() + value_bytes() + scale_bytes() + centre_bytes();
  }
  // The bytes from a head's keys to their centre.
  int64_t centre_offset() const { return head_bytes() - centre_bytes(); }
  // Whether keys are multiplied by a Hadamard matrix. They are not where they are values, too.
  bool hadamard() const { return HasIntegers(dtype) && !values_in_keys; }

  // Whether values, and with them the sums of attention, are multiplied by a Hadamard matrix.
  bool rotated_values() const { return kernels::HasNarrowValues(dtype); }

  // The pages of a tile, in all layers.
  int64_t pages() const { return mixed_pages > 0 ? mixed_pages : layers; }
  // The page of a layer among those, and the place of its heads in the page.
  int64_t PageOf(int64_t layer) const { return places.empty() ? layer : places[layer].page; }
  int64_t OffsetOf(int64_t layer) const { return places.empty() ? 0 : places[layer].offset_bytes; }
  // The same of index keys.
  int64_t IndexPageOf(int64_t layer) const {
    return index_places.empty() ? PageOf(layer) : index_places[layer].page;
  }
  int64_t IndexOffsetOf(int64_t layer) const {
    return index_places.empty() ? index_offset() : index_places[layer].offset_bytes;
  }
  // The bytes of a page in which keys and values lie, from its beginning on.
  int64_t UsedBytes(int64_t page) const;
  // The layout of one layer's keys and values.
  KvLayout OfLayer(int64_t layer) const;
  // Gives every layer [layers] its heads and its place. Pages get the size that wastes the fewest
  // bytes of a tile. Called when all else is set. Equal heads take a page for each layer.
  void PlaceLayers(std::span<const KvHeads> heads);
  // Puts index keys into pages of their own, where a tile then takes less. has_index: the layers
  // [layers] that have some. Called when all else is set, without `places`.
  void PlaceIndexes(const std::vector<bool>& has_index);

  // The layout of the index keys alone, and their bytes in a page.
  KvLayout Index() const;
  int64_t index_bytes() const { return index_dim > 0 ? Index().head_bytes() : 0; }
  // The bytes from a page's beginning to its index keys.
  int64_t index_offset() const { return kv_heads * head_bytes(); }

  // The bytes of a page, without and with its alignment. Without places, a page holds the KV heads
  // and the index keys of a layer.
  int64_t tile_bytes() const {
    return mixed_bytes > 0 ? mixed_bytes : index_offset() + index_bytes();
  }

  int64_t page_bytes() const {
    return (tile_bytes() + page_alignment - 1) / page_alignment * page_alignment;
  }
  // The bytes of a token in all layers.
  int64_t bytes_per_token() const { return pages() * page_bytes() / kernels::kTileTokens; }
  // The bytes of the pages that neighbouring positions take in all layers.
  int64_t BytesFor(int64_t tokens) const;

 private:
  // The bytes of a number before its code is narrowed.
  int64_t Element() const { return static_cast<int64_t>(SizeOf(kernels::WidenedType(dtype))); }
};

// The number of pages of a layer that `tokens` neighbouring positions from a page's start take.
constexpr int64_t PagesFor(int64_t tokens) {
  return tokens / kernels::kTileTokens + (tokens % kernels::kTileTokens != 0 ? 1 : 0);
}

}  // namespace godwit
