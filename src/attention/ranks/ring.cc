#include "attention/ranks/ring.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <future>
#include <memory>

#include "ops/attention_state.h"

namespace godwit {
namespace {

// The limit for one rank's frame. MPI copies what it sends and receives.
constexpr int64_t kMaxFrame = int64_t{4} << 20;

// Memory for the pages of a group of rounds.
struct ReceiveBuffer {
  std::span<std::byte> pages;  // of all ranks: frame after frame, in each rank after rank
  std::span<PageData> tiles;   // of the group, in order
  std::span<std::byte> frame;  // to send
  int64_t first_tile = 0;
  int64_t count = 0;
};

class Ring {
 public:
  Ring(const Exec& exec, Communicator& ranks, const RingLayout& layout, const KvCache& cache,
       int64_t layer, int64_t round)
      : exec_(exec),
        ranks_(ranks),
        layout_(layout),
        view_(cache.View(layer)),
        round_(round),
        page_bytes_(cache.layout().tile_bytes()),
        frame_pages_(std::max<int64_t>(1, kMaxFrame / page_bytes_)) {}

  int64_t groups() const { return round_ / layout_.rounds_in_group() + 1; }

  ReceiveBuffer NewReceiveBuffer() const {
    const int64_t tiles = Tiles(FirstRound(0), LastRound(0)) + layout_.ranks;  // for the last chunk
    const int64_t pages = layout_.ranks * PagesOfRank(FirstRound(0), LastRound(0));
    return {.pages = exec_.workspace.Matrix<std::byte>(1, pages * page_bytes_).RowSpan(0),
            .tiles = exec_.workspace.Matrix<PageData>(1, tiles).RowSpan(0),
            .frame = exec_.workspace.Matrix<std::byte>(1, frame_pages_ * page_bytes_).RowSpan(0)};
  }

  // Sends this rank's pages of a group, and lists the pages of all ranks.
  void Fetch(int64_t group, ReceiveBuffer& buffer) const {
    const int64_t first = FirstRound(group), last = LastRound(group);
    buffer.first_tile = layout_.Begin(first) / kTileTokens;
    buffer.count = Tiles(first, last);
    std::ranges::fill(buffer.tiles, PageData());
    const int64_t pages = PagesOfRank(first, last);
    int64_t round = first, tile = 0;  // of the rank's next page
    for (int64_t begin = 0; begin < pages; begin += frame_pages_) {
      const int64_t count = std::min(frame_pages_, pages - begin);
      const auto frame = buffer.pages.subspan(begin * layout_.ranks * page_bytes_,
                                              layout_.ranks * count * page_bytes_);
      for (int64_t i = 0; i < count; ++i, ++tile) {
        if (tile == layout_.SharedBy(round) / kTileTokens) {
          ++round;
          tile = 0;
        }
        for (int64_t rank = 0; rank < layout_.ranks; ++rank) {
          const int64_t at = layout_.Chunk(round, rank).begin / kTileTokens + tile;
          buffer.tiles[at - buffer.first_tile] =
              PageData(frame.subspan((rank * count + i) * page_bytes_).data());
          if (rank == ranks_.rank()) {
            std::ranges::copy(HostBytes(view_.Page(at), page_bytes_),
                              buffer.frame.subspan(i * page_bytes_).begin());
          }
        }
      }
      ranks_.AllGather(buffer.frame.first(count * page_bytes_), frame, exec_.cancel);
    }
    // No rank receives the end of the last rank's last chunk.
    const ops::KvRange mine = layout_.Chunk(last, ranks_.rank());
    for (int64_t at = (mine.begin + layout_.SharedBy(last)) / kTileTokens;
         at * kTileTokens < mine.end; ++at) {
      buffer.tiles[at - buffer.first_tile] = view_.Page(at);
    }
  }

  ops::KvView View(const ReceiveBuffer& buffer) const {
    ops::KvView view = view_;
    view.pages = buffer.tiles.data();
    view.page_stride = 1;
    view.slots = buffer.count;
    view.dropped_begin = 0;
    view.dropped_end = buffer.first_tile;
    return view;
  }

 private:
  int64_t FirstRound(int64_t group) const { return group * layout_.rounds_in_group(); }
  int64_t LastRound(int64_t group) const { return std::min(FirstRound(group + 1) - 1, round_); }
  // The number of the text's tiles in these rounds, and of pages that a rank sends.
  int64_t Tiles(int64_t first, int64_t last) const {
    return PagesFor(layout_.Chunk(last, layout_.ranks - 1).end - layout_.Begin(first));
  }
  int64_t PagesOfRank(int64_t first, int64_t last) const {
    int64_t tokens = 0;
    for (int64_t round = first; round <= last; ++round) tokens += layout_.SharedBy(round);
    return tokens / kTileTokens;
  }

  const Exec& exec_;
  Communicator& ranks_;
  const RingLayout& layout_;
  ops::KvView view_;
  int64_t round_;
  int64_t page_bytes_;
  int64_t frame_pages_;
};

}  // namespace

void AttendInRing(const Exec& exec, Communicator& ranks, const RingLayout& layout,
                  const ops::AttentionShape& shape, const ops::Alibi& alibi, const KvCache& cache,
                  int64_t layer, const ops::AttentionRows& rows, std::span<const float> sink_logits,
                  MatrixView<float> out) {
  Workspace::Scope scope(exec.workspace);
  const Ring ring(exec, ranks, layout, cache, layer, layout.RoundOf(rows.position));
  const int64_t states = rows.rows * shape.heads;
  ops::AttentionRows part = rows;
  part.states = exec.workspace.Matrix<float>(states, ops::StateStride(shape.value_dim())).data;
  ops::ClearStates(shape.value_dim(), states, part.states);
  part.before = part.states;
  const auto sources =
      exec.workspace.Matrix<ops::AttentionSource>(1, std::ssize(rows.sources)).RowSpan(0);
  part.sources = sources;
  std::array<ReceiveBuffer, 2> buffers{ring.NewReceiveBuffer(), ring.NewReceiveBuffer()};
  const auto fetch = [&](int64_t group) {
    ReceiveBuffer& buffer = buffers[group % 2];
    return std::async(std::launch::async, [&ring, &buffer, group] { ring.Fetch(group, buffer); });
  };
  // A fetch that fails still ends before its memory is freed.
  std::future<void> fetched = fetch(0);
  for (int64_t group = 0; group < ring.groups(); ++group) {
    fetched.get();
    const ReceiveBuffer& buffer = buffers[group % 2];
    if (group + 1 < ring.groups()) {
      fetched = fetch(group + 1);
    } else {
      part.states = nullptr;
    }
    const int64_t begin = buffer.first_tile * kTileTokens;
    const int64_t end = begin + buffer.count * kTileTokens;
    for (size_t i = 0; i < sources.size(); ++i) {
      assert(rows.sources[i].parts.empty());
      ops::AttentionSource& source = *std::construct_at(&sources[i], rows.sources[i]);
      source.kv = ring.View(buffer);
      source.visible.begin = std::max(source.visible.begin, begin);
      source.visible.end = std::min(source.visible.end, end);
    }
    ops::Attention(exec, shape, alibi, {&part, 1}, sink_logits, out);
  }
}

void GatherRound(const Exec& exec, Communicator& ranks, const RingLayout& layout,
                 const KvCache& cache, int64_t layer) {
  const int64_t round = layout.RoundOf(cache.length());
  const int64_t pages = layout.SharedBy(round) / kTileTokens;
  const int64_t page_bytes = cache.layout().tile_bytes();
  const ops::KvView view = cache.View(layer);
  const int64_t frame_pages = std::clamp<int64_t>(kMaxFrame / page_bytes, 1, pages);
  Workspace::Scope scope(exec.workspace);
  const auto take = [&](int64_t frames) {
    return exec.workspace.Matrix<std::byte>(1, frames * frame_pages * page_bytes).RowSpan(0);
  };
  const auto mine = take(1), all = take(layout.ranks);
  for (int64_t begin = 0; begin < pages; begin += frame_pages) {
    const int64_t count = std::min(frame_pages, pages - begin);
    const auto bytes = static_cast<size_t>(count * page_bytes);
    // Calls work(page of the cache, its place in a rank's frame) for each page.
    const auto for_pages_of = [&](int64_t rank, const auto& work) {
      const int64_t tile = layout.Chunk(round, rank).begin / kTileTokens + begin;
      for (int64_t i = 0; i < count; ++i) {
        work(HostBytes(view.Page(tile + i), page_bytes), i * page_bytes);
      }
    };
    for_pages_of(ranks.rank(), [&](std::span<std::byte> page, int64_t at) {
      std::ranges::copy(page, mine.begin() + at);
    });
    ranks.AllGather(mine.first(bytes), all.first(bytes * static_cast<size_t>(layout.ranks)),
                    exec.cancel);
    for (int64_t rank = 0; rank < layout.ranks; ++rank) {
      if (rank == ranks.rank()) continue;
      for_pages_of(rank, [&](std::span<std::byte> page, int64_t at) {
        std::copy_n(all.begin() + rank * count * page_bytes + at, page_bytes, page.begin());
      });
    }
  }
}

}  // namespace godwit
