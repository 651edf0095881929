#include "ops/kv_layout.h"

#include <algorithm>
#include <cassert>

#include "base/checked.h"

namespace godwit {
namespace {

// The bytes in whole lines of memory.
int64_t InLines(int64_t bytes) {
  constexpr int64_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

// Puts layers of so many bytes one behind the other into pages of `page_bytes`. Layers of one size
// share pages with each other alone. Returns the number of pages.
int64_t FillPages(std::span<const int64_t> layer_bytes, int64_t page_bytes,
                  std::vector<KvPlace>& places) {
  struct Open {
    int64_t layer_bytes;
    int64_t page;
    int64_t used_bytes;
  };
  std::vector<Open> open;  // for each size the page that was begun last
  int64_t pages = 0;
  for (size_t layer = 0; layer < layer_bytes.size(); ++layer) {
    const int64_t bytes = layer_bytes[layer];
    auto at = std::ranges::find(open, bytes, &Open::layer_bytes);
    if (at == open.end()) at = open.insert(at, {bytes, 0, page_bytes});
    if (at->used_bytes + bytes > page_bytes) {
      at->page = pages++;
      at->used_bytes = 0;
    }
    places[layer].page = at->page;
    places[layer].offset_bytes = at->used_bytes;
    at->used_bytes += bytes;
  }
  return pages;
}

}  // namespace

KvLayout KvLayout::OfLayer(int64_t layer) const {
  KvLayout one{.layers = 1,
               .kv_heads = kv_heads,
               .head_dim = head_dim,
               .dtype = dtype,
               .values_in_keys = values_in_keys,
               .centred = centred,
               .index_dim = index_dim};
  if (places.empty()) return one;
  one.kv_heads = places[layer].heads.kv_heads;
  one.head_dim = places[layer].heads.head_dim;
  return one;
}

KvLayout KvLayout::Index() const {
  return {.layers = layers,
          .kv_heads = 1,
          .head_dim = index_dim,
          .dtype = dtype,
          .values_in_keys = true};
}

int64_t KvLayout::UsedBytes(int64_t page) const {
  if (!index_places.empty() && page >= layers) {
    const auto here = [&](const KvPlace& place) { return place.page == page; };
    return std::ranges::count_if(index_places, here) * InLines(index_bytes());
  }
  if (places.empty()) return tile_bytes();
  int64_t used = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (PageOf(layer) != page) continue;
    used = std::max(used, OffsetOf(layer) + OfLayer(layer).tile_bytes());
  }
  return used;
}

void KvLayout::PlaceLayers(std::span<const KvHeads> heads) {
  assert(std::ssize(heads) == layers);
  const auto same = [&](const KvHeads& of) { return of == heads.front(); };
  if (std::ranges::all_of(heads, same)) return;
  std::vector<int64_t> bytes;
  places.clear();
  for (const KvHeads& of : heads) {
    places.push_back({.heads = of});
    const KvLayout one = OfLayer(std::ssize(places) - 1);
    bytes.push_back(InLines(one.tile_bytes()));
  }
  // A page is a whole number of layers of some size, and none is smaller than the largest layer.
  const int64_t largest = *std::ranges::max_element(bytes);
  int64_t best = largest;
  for (const int64_t of : bytes) {
    const int64_t page = (largest + of - 1) / of * of;
    const auto total = [&](int64_t size) { return size * FillPages(bytes, size, places); };
    if (total(page) < total(best)) best = page;
  }
  mixed_bytes = best;
  mixed_pages = FillPages(bytes, best, places);
}

void KvLayout::PlaceIndexes(const std::vector<bool>& has_index) {
  assert(index_dim > 0 && places.empty() && std::ssize(has_index) == layers);
  const int64_t keys = InLines(index_offset()), index = InLines(index_bytes());
  const int64_t in_page = keys / index, count = std::ranges::count(has_index, true);
  if (in_page == 0 || count == layers) return;
  const int64_t all_pages = layers + (count + in_page - 1) / in_page;
  if (all_pages * keys >= layers * tile_bytes()) return;
  index_places.assign(static_cast<size_t>(layers), KvPlace{.heads = {}, .page = -1});
  int64_t next = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (!has_index[layer]) continue;
    index_places[layer].page = layers + next / in_page;
    index_places[layer].offset_bytes = next++ % in_page * index;
  }
  mixed_pages = all_pages;
  mixed_bytes = keys;
}

int64_t KvLayout::BytesFor(int64_t tokens) const {
  return CheckedMul(PagesFor(tokens), pages() * page_bytes()).value_or(INT64_MAX);
}

}  // namespace godwit
