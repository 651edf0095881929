#include "kv/snapshot.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <utility>

#include "base/checksum.h"
#include "base/new_file.h"
#include "base/quote.h"
#include "kv/kv_cache.h"
#include "kv/state_cache.h"

namespace godwit {

namespace {

constexpr size_t kBatchBytes = size_t{2} << 20;

}  // namespace

Snapshot::Snapshot(const std::filesystem::path& path)
    : file_(path),
      header_(ParseSnapshotHeader(file_.Span(), QuoteUnlessPlain(path.native()))),
      verified_(header_.checksums.size()) {}

PageData Snapshot::Page(int64_t layer, int64_t tile) const {
  return PageData(const_cast<std::byte*>(file_.Span().data()) + header_.OffsetOf(layer, tile));
}

std::span<const std::byte> Snapshot::BytesOf(int64_t page) const {
  const int64_t layers = info().layout.pages();
  return HostBytes(Page(page % layers, page / layers), info().page_bytes());
}

void Snapshot::Refuse(int64_t page, const char* what) const {
  const int64_t layers = info().layout.pages();
  throw DamagedSnapshot(path(),
                        fmt::format("{}: damaged: page {} of layer {} {}", QuoteUnlessPlain(path()),
                                    page / layers, page % layers, what));
}

// The number of pages from the first on that are neighbours in the file.
size_t Snapshot::RunOf(std::span<const int64_t> pages) const {
  size_t count = 1;
  while (count < pages.size() && pages[count] == pages[count - 1] + info().layout.pages()) ++count;
  return count;
}

template <typename Action>
void Snapshot::ForEachRun(std::span<const int64_t> pages, const Action& action) const {
  while (!pages.empty()) {
    const auto run = pages.first(RunOf(pages));
    const auto first = BytesOf(run.front());
    action(run, static_cast<size_t>(first.data() - file_.Span().data()), first.size() * run.size());
    pages = pages.subspan(run.size());
  }
}

// Pages that lie apart come as fast as the disk serves many requests at once.
void Snapshot::Announce(std::span<const int64_t> pages) const {
  ForEachRun(pages, [&](auto run, size_t offset, size_t bytes) {
    if (run.size() == pages.size() || bytes >= kBatchBytes) return;
    file_.Advise(offset, bytes, MappedFile::Advice::kWillNeed);
  });
}

void Snapshot::LoadIntoMemory(std::span<const int64_t> pages) const {
  ForEachRun(pages, [&](auto run, size_t offset, size_t bytes) {
    if (!file_.LoadIntoMemory(offset, bytes)) Refuse(run.front(), "cannot be read");
  });
}

void Snapshot::Check(std::span<const int64_t> pages) const {
  for (const int64_t page : pages) {
    const auto at = static_cast<size_t>(page);
    if (Checksum(BytesOf(page)) != header_.checksums[at]) Refuse(page, "has another checksum");
    verified_[at].store(true, std::memory_order_relaxed);
  }
}

// One system call brings pages in as fast as an ordered read of the file. Several calls at once, or
// announced pages, reach half of that. Meanwhile a thread verifies earlier pages.
void Snapshot::Verify(std::span<const int64_t> pages) const {
  std::vector<int64_t> unverified;
  std::ranges::copy_if(pages, std::back_inserter(unverified),
                       [&](int64_t page) { return !IsVerified(page); });
  Announce(unverified);
  const auto most = std::max<size_t>(1, kBatchBytes / static_cast<size_t>(info().page_bytes()));
  std::future<void> checked;
  for (std::span<const int64_t> rest = unverified; !rest.empty();) {
    const auto batch = rest.first(std::min(most, rest.size()));
    rest = rest.subspan(batch.size());
    LoadIntoMemory(batch);
    if (checked.valid()) checked.get();
    if (rest.empty()) return Check(batch);
    checked = std::async(std::launch::async, [this, batch] { Check(batch); });
  }
}

void Snapshot::VerifyAll() const {
  const int64_t layers = info().layout.pages(), tiles = info().held_tiles();
  std::vector<int64_t> pages;
  for (int64_t layer = 0; layer < layers; ++layer) {  // in the file's order
    for (int64_t tile = 0; tile < tiles; ++tile) pages.push_back(tile * layers + layer);
  }
  Verify(pages);
  for (int64_t i = 0; i < std::ssize(info().states); ++i) State(i);
}

std::span<const std::byte> Snapshot::State(int64_t index) const {
  const auto offset = static_cast<size_t>(header_.OffsetOfState(index));
  const auto bytes = static_cast<size_t>(info().state_bytes());
  const auto refuse = [&](const char* what) {
    throw DamagedSnapshot(
        path(), fmt::format("{}: damaged: the state of position {} {}", QuoteUnlessPlain(path()),
                            info().states[index], what));
  };
  if (!file_.LoadIntoMemory(offset, bytes)) refuse("cannot be read");
  const auto state = file_.Span().subspan(offset, bytes);
  const auto at = static_cast<size_t>(index + info().held_tiles() * info().layout.pages());
  if (!verified_[at].load(std::memory_order_relaxed)) {
    if (Checksum(state) != header_.checksums[at]) refuse("has another checksum");
    verified_[at].store(true, std::memory_order_relaxed);
  }
  return state;
}

namespace {

// A state as it lies in the file.
std::vector<float> StateOf(const SnapshotInfo& info, const StateCache& states, int64_t position) {
  std::vector<float> all;
  for (int64_t layer = 0; layer < info.layout.states.layers; ++layer) {
    const auto state = states.StateAt(position, layer);
    all.insert(all.end(), state.begin(), state.end());
  }
  return all;
}

}  // namespace

void WriteSnapshot(NewFile& file, const SnapshotInfo& info, const KvCache& cache,
                   const StateCache* states) {
  std::vector<int64_t> tiles;
  for (const auto& [begin, end] : info.held()) {
    for (int64_t at = begin; at < end; at += kTileTokens) tiles.push_back(at / kTileTokens);
  }
  const int64_t columns = info.layout.pages();  // pages of a tile
  const auto page_of = [&](int64_t column, int64_t tile) {
    return std::span<const std::byte>(
        HostBytes(cache.PageAt(column, tile), info.layout.UsedBytes(column)));
  };
  const auto padding_of = [&](int64_t column) {
    return std::vector<std::byte>(info.page_bytes() - info.layout.UsedBytes(column));
  };
  // Checksums stand before the pages, so that a file's beginning describes all of it.
  std::vector<std::byte> padded;
  std::vector<uint64_t> checksums(tiles.size() * static_cast<size_t>(columns));
  cache.WillReadAll({info.begin, info.end()});
  for (int64_t column = 0; column < columns; ++column) {
    const std::vector<std::byte> padding = padding_of(column);
    for (size_t i = 0; i < tiles.size(); ++i) {
      auto page = page_of(column, tiles[i]);
      if (!padding.empty()) {
        padded.assign(page.begin(), page.end());
        padded.insert(padded.end(), padding.begin(), padding.end());
        page = padded;
      }
      checksums[i * static_cast<size_t>(columns) + static_cast<size_t>(column)] = Checksum(page);
    }
  }
  for (const int64_t position : info.states) {
    const std::vector<float> state = StateOf(info, *states, position);
    checksums.push_back(Checksum(std::as_bytes(std::span(state))));
  }
  file.Write(MakeSnapshotHeader(info, checksums));
  for (int64_t column = 0; column < columns; ++column) {
    const std::vector<std::byte> padding = padding_of(column);
    for (const int64_t tile : tiles) {
      file.Write(page_of(column, tile));
      file.Write(padding);
    }
    file.PadTo(SnapshotHeader::kAlignment);
  }
  for (const int64_t position : info.states) {
    const std::vector<float> state = StateOf(info, *states, position);
    file.Write(std::as_bytes(std::span(state)));
    file.PadTo(SnapshotHeader::kAlignment);
  }
}

}  // namespace godwit
