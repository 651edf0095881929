#include "ops/gpu/gpu_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "cuda/device.h"
#include "cuda/ops/attention.h"
#include "cuda/ops/matrix.h"
#include "ops/gpu/gpu_queries.h"
#include "ops/gpu/gpu_turn.h"

namespace godwit::ops {
namespace {

static_assert(kStretchTokens == cuda::kStretchTokens && kStretchTiles == cuda::kStretchTiles);

// The stretches of a pass whose numbers take two bytes. A block of threads takes a stretch and a KV
// head, so several stretches keep all of a GPU busy, even for few rows.
constexpr int64_t kPassStretches = 4;
constexpr int64_t kPlaces = 2;  // one is filled while the other is read

// The bytes of a place: a pass of numbers of two bytes. Wider ones come in shorter passes.
int64_t PlaceBytes(const AttentionShape& shape) {
  const int64_t numbers = kernels::kTileTokens *
                          (shape.head_dim + 1 + kernels::PadToLanes(shape.value_dim())) *
                          shape.kv_heads;
  return kPassStretches * kStretchTiles * numbers * static_cast<int64_t>(sizeof(BF16));
}

// The tiles of a pass, a stretch or several. tile_bytes: of the layer's keys and values in a page.
int64_t PassTiles(const AttentionShape& shape, int64_t tile_bytes) {
  const int64_t fitting = PlaceBytes(shape) / (tile_bytes * kStretchTiles);
  return std::min(kPassStretches, fitting) * kStretchTiles;
}

// Memory that is the same on either side, in scratch memory of the GPU and in page-locked memory of
// the host.
struct AttentionBuffers {
  cuda::DeviceMatrix<float> q;  // [tokens * heads, head_dim]
  float* sinks;                 // [heads]
  const uint8_t** table;        // [kPlaces, tiles of a pass]
  uint8_t* places;              // [kPlaces, PlaceBytes]
};
AttentionBuffers NewAttentionBuffers(GpuScratch& scratch, const AttentionShape& shape,
                                     int64_t tokens) {
  return {.q = scratch.Matrix<float>(tokens * shape.heads, shape.head_dim),
          .sinks = scratch.New<float>(shape.heads),
          .table = scratch.New<const uint8_t*>(kPlaces * kPassStretches * kStretchTiles),
          .places = scratch.New<uint8_t>(kPlaces * PlaceBytes(shape))};
}

// Memory of the GPU alone.
struct AttentionSums {
  float* states;  // of the stretches of a pass [stretches, tokens * heads, StateFloats]
  float* sums;    // of the passes so far [tokens * heads, StateFloats]
  cuda::DeviceMatrix<float> out;  // [tokens, heads * value_dim]
};
AttentionSums NewAttentionSums(GpuScratch& scratch, const AttentionShape& shape, int64_t tokens) {
  const int64_t floats = tokens * shape.heads * cuda::StateFloats(shape.value_dim());
  return {.states = scratch.New<float>(kPassStretches * floats),
          .sums = scratch.New<float>(floats),
          .out = scratch.Matrix<float>(tokens, shape.heads * shape.value_dim())};
}

// Rows of a text that lie in one block of Visible.
struct BlockRows {
  int64_t begin;  // of them among the text's rows
  int64_t rows;
};

// Calls each(BlockRows) for the blocks of rows that begin at `position` of a text.
template <class Each>
void ForBlocks(const Visible& visible, int64_t position, int64_t rows, const Each& each) {
  for (int64_t begin = 0; begin < rows;) {
    const int64_t left = visible.block - (position + begin) % visible.block;
    const BlockRows block = {begin, std::min(rows - begin, left)};
    each(block);
    begin += block.rows;
  }
}

// The keys that some of the rows of one block see.
KvRange SeenBy(const Visible& visible, int64_t position, int64_t rows) {
  return {visible.At(position).begin, visible.At(position + rows - 1).end};
}

// The attention of one text's rows in one block, in which keys begin at the same position for all
// but for their windows.
class BlockOnGpu {
 public:
  BlockOnGpu(GpuTurn& turn, const AttentionShape& shape, const AttentionRows& text,
             const BlockRows& block)
      : turn_(turn),
        shape_(shape),
        text_(text),
        block_(block),
        position_(text.position + block.begin),
        source_(text.sources.front()),
        tile_bytes_(shape.kv_heads * source_.kv.head_bytes),
        pass_tiles_(PassTiles(shape, tile_bytes_)),
        seen_(SeenBy(source_.visible, position_, block.rows)),
        here_(NewAttentionBuffers(turn.host(), shape, block.rows)),
        there_(NewAttentionBuffers(turn.scratch(), shape, block.rows)),
        sums_(NewAttentionSums(turn.scratch(), shape, block.rows)) {
    assert(text.sources.size() == 1 && source_.parts.empty() && !source_.query_place);
    assert(text.states == nullptr && text.before == nullptr);
    assert(pass_tiles_ > 0 && seen_.begin < seen_.end);
  }

  void Attend(std::span<const float> sink_logits, MatrixView<float> out) {
    PutQueries(sink_logits);
    // Places may hold what earlier work of this stream still reads.
    began_.RecordIn(turn_.stream());
    began_.LetWait(turn_.copies());
    const int64_t first = seen_.begin / kStretchTokens * kStretchTiles, end = TileEnd();
    for (int64_t tile = first, pass = 0; tile < end; tile += pass_tiles_, ++pass) {
      const auto place = static_cast<size_t>(pass % kPlaces);
      PutKeys(tile, place, /*used=*/pass >= kPlaces);
      AttendPass(tile, place, /*is_first=*/pass == 0, /*is_last=*/tile + pass_tiles_ >= end,
                 sink_logits.empty() ? nullptr : there_.sinks);
      read_[place].RecordIn(turn_.stream());
    }
    const int64_t first_row = text_.first_row + block_.begin;
    turn_.CopyOut(sums_.out, out.Rows(first_row, first_row + block_.rows));
    turn_.Wait();
  }

 private:
  int64_t TileEnd() const { return PagesFor(seen_.end); }

  void PutQueries(std::span<const float> sink_logits) {
    const QueryRows rows = {.all = text_.rows,
                            .begin = block_.begin,
                            .rows = block_.rows,
                            .group = shape_.heads / shape_.kv_heads};
    ops::PutQueries(turn_.exec(), source_, rows, here_.q);
    for (int64_t place = 0; place < kPlaces; ++place) {
      for (int64_t tile = 0; tile < pass_tiles_; ++tile) {
        here_.table[place * pass_tiles_ + tile] =
            there_.places + place * PlaceBytes(shape_) + tile * tile_bytes_;
      }
    }
    std::ranges::copy(sink_logits, here_.sinks);
    turn_.CopyIn({here_.q.data, here_.q.rows, here_.q.cols, here_.q.stride}, there_.q);
    turn_.CopyIn(here_.table, there_.table, kPlaces * pass_tiles_);
    if (!sink_logits.empty()) turn_.CopyIn(here_.sinks, there_.sinks, std::ssize(sink_logits));
  }

  // Brings the tiles of the pass from `first` on that some row sees to a place of the GPU.
  void PutKeys(int64_t first, size_t place, bool used) {
    const int64_t begin = std::max(first, seen_.begin / kernels::kTileTokens);
    const int64_t end = std::min(first + pass_tiles_, TileEnd());
    const int64_t offset = static_cast<int64_t>(place) * PlaceBytes(shape_);
    if (used) copied_[place].Await();
    turn_.exec().Parallel(end - begin, [&](int64_t i) {
      std::memcpy(here_.places + offset + (begin - first + i) * tile_bytes_,
                  HostPointer(source_.kv.Page(begin + i)), static_cast<size_t>(tile_bytes_));
    });
    if (used) read_[place].LetWait(turn_.copies());
    const int64_t at = offset + (begin - first) * tile_bytes_;
    turn_.CopyInBeside(here_.places + at, there_.places + at, (end - begin) * tile_bytes_);
    copied_[place].RecordIn(turn_.copies());
    copied_[place].LetWait(turn_.stream());
  }

  void AttendPass(int64_t first, size_t place, bool is_first, bool is_last, const float* sinks) {
    const cuda::DeviceAttentionShape shape = {.heads = shape_.heads,
                                              .kv_heads = shape_.kv_heads,
                                              .head_dim = shape_.head_dim,
                                              .value_dim = shape_.value_dim(),
                                              .scale = shape_.scale,
                                              .score_cap = shape_.score_cap};
    // Kernels count tiles from the text's beginning on.
    const auto* const table = there_.table + static_cast<int64_t>(place) * pass_tiles_;
    const auto address =
        reinterpret_cast<uintptr_t>(table) - static_cast<uintptr_t>(first) * sizeof(const uint8_t*);
    const cuda::DevicePages pages = {.pages = reinterpret_cast<const uint8_t* const*>(address),
                                     .head_bytes = source_.kv.head_bytes,
                                     .value_offset = source_.kv.value_offset,
                                     .dtype = source_.kv.dtype};
    const Visible& visible = source_.visible;
    const int64_t of_block = position_ - position_ % visible.block - visible.overlap;
    const cuda::DeviceQueries queries = {
        .q = there_.q,
        .tokens = block_.rows,
        .position = position_,
        .begin = std::max({visible.begin, of_block, first * kernels::kTileTokens}),
        .end = std::min(visible.end, (first + pass_tiles_) * kernels::kTileTokens),
        .window = visible.window};
    const float* const before = is_first ? nullptr : sums_.sums;
    if (is_last) {
      cuda::Attend(turn_.stream(), shape, pages, queries, sums_.states, sinks, before, sums_.out);
    } else {
      cuda::AttendStates(turn_.stream(), shape, pages, queries, sums_.states, before, sums_.sums);
    }
  }

  GpuTurn& turn_;
  const AttentionShape& shape_;
  const AttentionRows& text_;
  const BlockRows block_;
  const int64_t position_;  // of the first row, in the text
  const AttentionSource& source_;
  const int64_t tile_bytes_;
  const int64_t pass_tiles_;
  const KvRange seen_;  // by some row
  const AttentionBuffers here_, there_;
  const AttentionSums sums_;
  cuda::Event began_{turn_.stream().device()};
  // Events of each place: the copy to it is done, and so are the kernels that read it.
  std::array<cuda::Event, kPlaces> copied_ = {cuda::Event(turn_.stream().device()),
                                              cuda::Event(turn_.stream().device())};
  std::array<cuda::Event, kPlaces> read_ = {cuda::Event(turn_.stream().device()),
                                            cuda::Event(turn_.stream().device())};
};

}  // namespace

GpuAttentionMemory GpuAttentionMemoryOf(const AttentionShape& shape, int64_t rows) {
  GpuScratch here, there;
  NewAttentionBuffers(here, shape, rows);
  NewAttentionBuffers(there, shape, rows);
  NewAttentionSums(there, shape, rows);
  return {.scratch_bytes = there.used(), .host_bytes = here.used()};
}

GpuBusBytes& GpuBusBytes::operator+=(const GpuBusBytes& other) {
  in += other.in;
  out += other.out;
  return *this;
}

GpuBusBytes GpuAttentionBusBytes(const AttentionShape& shape, int64_t head_bytes,
                                 const Visible& visible, int64_t position, int64_t rows) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t tile_bytes = shape.kv_heads * head_bytes;
  GpuBusBytes bytes = {.in = kFloat * rows * shape.heads * shape.head_dim,
                       .out = kFloat * rows * shape.heads * shape.value_dim()};
  ForBlocks(visible, position, rows, [&](const BlockRows& block) {
    const KvRange seen = SeenBy(visible, position + block.begin, block.rows);
    bytes.in += (PagesFor(seen.end) - seen.begin / kernels::kTileTokens) * tile_bytes;
    bytes.in += kPlaces * PassTiles(shape, tile_bytes) * static_cast<int64_t>(sizeof(uint8_t*));
  });
  return bytes;
}

std::string WhyNoGpuAttention(const AttentionShape& shape, const Alibi& alibi, DType kv_type) {
  if (kv_type != DType::kF32 && kv_type != DType::kF16 && kv_type != DType::kBF16) {
    return fmt::format("GPUs attend to keys and values stored as f32, f16 or bf16, found {}",
                       KvTypeName(kv_type));
  }
  if (!alibi.slopes.empty()) return "GPUs attend without ALiBi's biases, which this model has";
  if (shape.values_from) return "GPUs attend to values beside their keys, found values in keys";
  if (shape.value_dim() > cuda::kMaxValueDim) {
    return fmt::format("GPUs attend to heads of up to {} numbers, found {}", cuda::kMaxValueDim,
                       shape.value_dim());
  }
  return "";
}

void AttendOnGpu(GpuTurn& turn, const AttentionShape& shape, std::span<const AttentionRows> texts,
                 std::span<const float> sink_logits, MatrixView<float> out) {
  const ProfilePart measured(turn.exec().profile, StepPart::kAttention);
  const int64_t used_there = turn.scratch().used(), used_here = turn.host().used();
  for (const AttentionRows& text : texts) {
    const auto attend = [&](const BlockRows& block) {
      BlockOnGpu(turn, shape, text, block).Attend(sink_logits, out);
      turn.scratch().Release(used_there);
      turn.host().Release(used_here);
    };
    ForBlocks(text.sources.front().visible, text.position, text.rows, attend);
  }
}

}  // namespace godwit::ops
