#include "kv/snapshot.h"

#include <utility>

#include "base/checksum.h"
#include "base/new_file.h"
#include "base/quote.h"
#include "kv/kv_cache.h"

namespace godwit {

using kernels::kTileTokens;

Snapshot::Snapshot(const std::filesystem::path& path)
    : file_(path),
      header_(ParseSnapshotHeader(file_.Span(), QuoteUnlessPlain(path.native()))),
      proved_(header_.checksums.size()) {}

std::byte* Snapshot::Page(int64_t layer, int64_t tile) const {
  return const_cast<std::byte*>(file_.Span().data()) + header_.OffsetOf(layer, tile);
}

std::span<const std::byte> Snapshot::BytesOf(int64_t page) const {
  const int64_t layers = info().layout.layers;
  return {Page(page % layers, page / layers), static_cast<size_t>(info().page_bytes())};
}

void Snapshot::ReadAhead(int64_t page) const {
  const auto bytes = BytesOf(page);
  file_.Advise(static_cast<size_t>(bytes.data() - file_.Span().data()), bytes.size(),
               MappedFile::Advice::kWillNeed);
}

void Snapshot::Check(int64_t page) const {
  if (Checksum(BytesOf(page)) == header_.checksums[static_cast<size_t>(page)]) return;
  const int64_t layers = info().layout.layers;
  throw DamagedSnapshot(
      path(), fmt::format("{}: damaged: the checksum of page {} of layer {} is another one",
                          QuoteUnlessPlain(path()), page / layers, page % layers));
}

void Snapshot::Prove(std::span<const int64_t> pages) const {
  const int64_t layers = info().layout.layers;
  for (const int64_t page : pages) {
    if (IsProved(page)) continue;
    ReadAhead(page);
    if (page % layers + 1 < layers && !IsProved(page + 1)) ReadAhead(page + 1);
  }
  for (const int64_t page : pages) {
    if (IsProved(page)) continue;
    Check(page);
    proved_[static_cast<size_t>(page)].store(true, std::memory_order_relaxed);
  }
}

void Snapshot::ProveAll() const {
  const int64_t layers = info().layout.layers, tiles = info().held_tiles();
  for (int64_t layer = 0; layer < layers; ++layer) {  // in the order of the file
    for (int64_t tile = 0; tile < tiles; ++tile) Check(tile * layers + layer);
  }
}

void WriteSnapshot(NewFile& file, const SnapshotInfo& info, const KvCache& cache) {
  const auto [dropped_begin, dropped_end] = info.dropped;
  std::vector<int64_t> tiles;
  for (int64_t at = info.begin; at < info.end(); at += kTileTokens) {
    if (at < dropped_begin || at >= dropped_end) tiles.push_back(at / kTileTokens);
  }
  const int64_t layers = info.layout.layers;
  const auto page_of = [&](int64_t layer, int64_t tile) {
    return std::span<const std::byte>(cache.Page(layer, tile));
  };
  // Checksums stand before the pages, so that one look at a file's beginning tells all of it.
  const std::vector<std::byte> padding(
      static_cast<size_t>(info.page_bytes() - info.layout.tile_bytes()));
  std::vector<std::byte> padded;
  std::vector<uint64_t> checksums(tiles.size() * static_cast<size_t>(layers));
  for (int64_t layer = 0; layer < layers; ++layer) {
    cache.WillRead(layer, {info.begin, info.end()});
    for (size_t i = 0; i < tiles.size(); ++i) {
      auto page = page_of(layer, tiles[i]);
      if (!padding.empty()) {
        padded.assign(page.begin(), page.end());
        padded.insert(padded.end(), padding.begin(), padding.end());
        page = padded;
      }
      checksums[i * static_cast<size_t>(layers) + static_cast<size_t>(layer)] = Checksum(page);
    }
  }
  file.Write(MakeSnapshotHeader(info, checksums));
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (const int64_t tile : tiles) {
      file.Write(page_of(layer, tile));
      file.Write(padding);
    }
    file.PadTo(SnapshotHeader::kAlignment);
  }
}

}  // namespace godwit
