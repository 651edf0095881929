#include "ops/attention.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <memory>

#include "base/error.h"
#include "ops/attention_queries.h"
#include "ops/attention_state.h"
#include "ops/shared_keys.h"
#include "ops/widen_tile.h"

namespace godwit::ops {
namespace {

using kernels::AttendTileArgs;
using kernels::kTileTokens;
using kernels::TileSpan;

// The most scratch memory for states of stretches that wait to be merged. It holds 28 tokens with
// 32 heads of 128 at a million positions, or one token with 128 heads of 512 at two million.
constexpr int64_t kMaxStateBytes = int64_t{512} << 20;

using AttendTile = void (*)(const AttendTileArgs&) noexcept;

AttendTile SelectKernel(const kernels::KernelTable& kernels, DType dtype, bool int8_products) {
  if (int8_products) return kernels.attend_tile_i8_i8;
  switch (dtype) {
    case DType::kF32:
      return kernels.attend_tile_f32;
    case DType::kF16:
      return kernels.attend_tile_f16;
    case DType::kBF16:
      return kernels.attend_tile_bf16;
    case DType::kI8:
      return kernels.attend_tile_i8;
    default:
      Throw(ErrorKind::kUnsupported, "no attention over a KV cache stored as {}", Name(dtype));
  }
}

// Query rows [begin, end) of one KV head of a text, in head-major order.
struct RowBlock {
  int64_t kv_head;
  int64_t begin;
  int64_t end;
  int64_t rows() const { return end - begin; }
};

// The scratch memory of one core.
struct Scratch {
  float* total;    // states [kBlockRows, StateStride]
  float* stretch;  // states [kBlockRows, StateStride]
  float* queries;  // QueryScratchFloats of kBlockRows
  float* keys;     // widened keys of a tile
  float* values;   // widened values of a tile, or values taken from its keys, of any type

  // narrow: some keys or values have 4 bits.
  static int64_t Floats(const AttentionShape& shape, bool narrow) {
    const int64_t values = kTileTokens * kernels::PadToLanes(shape.value_dim());
    return 2 * StateFloats(shape) + QueryFloats(shape) + (narrow ? KeyFloats(shape) : 0) +
           (narrow || shape.values_from ? values : 0);
  }
  static Scratch In(const AttentionShape& shape, bool narrow, float* memory) {
    float* const stretch = memory + StateFloats(shape);
    float* const queries = stretch + StateFloats(shape);
    float* const keys = queries + QueryFloats(shape);
    return {memory, stretch, queries, keys, keys + (narrow ? KeyFloats(shape) : 0)};
  }

 private:
  static int64_t StateFloats(const AttentionShape& shape) {
    return kBlockRows * StateStride(shape.value_dim());
  }
  static int64_t KeyFloats(const AttentionShape& shape) {
    return WidenedKeyBytes(shape.head_dim) / static_cast<int64_t>(sizeof(float));
  }
  static int64_t QueryFloats(const AttentionShape& shape) {
    return QueryScratchFloats(shape.head_dim, kBlockRows);
  }
};

// A run of stretches of one source that some row of a block may see.
struct StretchRun {
  int64_t first;
  int64_t last;  // past the end
  int64_t count() const { return last - first; }
};

class Attender {
 public:
  Attender(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
           std::span<const float> sink_logits)
      : exec_(exec),
        shape_(shape),
        alibi_(alibi),
        sink_logits_(sink_logits),
        group_(shape.heads / shape.kv_heads),
        stride_(StateStride(shape.value_dim())) {}

  int64_t state_stride() const { return stride_; }
  int64_t RowsPerHead(const AttentionRows& text) const { return text.rows * group_; }

  void Clear(int64_t rows, float* states) const { ClearStates(shape_.value_dim(), rows, states); }

  // Sets the states with which the sums of the block's rows begin.
  void Begin(const AttentionRows& text, const RowBlock& block, float* states) const {
    if (text.before == nullptr) return Clear(block.rows(), states);
    std::copy_n(text.before + FirstState(text, block), block.rows() * stride_, states);
  }

  void Merge(const float* from, int64_t rows, float* into) const {
    MergeStates(exec_.kernels, shape_.value_dim(), rows, from, into);
  }

  StretchRun Stretches(const AttentionRows& text, const AttentionSource& source,
                       const RowBlock& block) const {
    const int64_t first = std::max(text.position + block.begin / group_, source.visible.from);
    const int64_t last =
        std::min(text.position + (block.end - 1) / group_, source.visible.until - 1);
    if (first > last) return {0, 0};
    if (!source.parts.empty()) {
      const int64_t parts = std::ssize(source.parts[block.kv_head]);
      return {0, (parts + kStretchTiles - 1) / kStretchTiles};
    }
    const int64_t begin = source.visible.At(first).begin;
    const int64_t end = source.visible.At(last).end;
    if (begin >= end) return {0, 0};
    return {begin / kStretchTokens, (end - 1) / kStretchTokens + 1};
  }

  // The most stretches that one head has, over all sources and rows.
  int64_t MaxStretches(const AttentionRows& text) const {
    int64_t most = 0;
    for (int64_t head = 0; head < shape_.kv_heads; ++head) {
      int64_t stretches = 0;
      bool lists = false;
      for (const AttentionSource& source : text.sources) {
        stretches += Stretches(text, source, {head, 0, RowsPerHead(text)}).count();
        lists |= !source.parts.empty();
      }
      most = std::max(most, stretches);
      if (!lists) break;  // all heads see the same
    }
    return most;
  }

  // The block's queries in the kernel's form.
  KernelQueries Queries(const AttentionRows& text, const AttentionSource& source,
                        const RowBlock& block, float* scratch) const {
    const int64_t first = block.kv_head * RowsPerHead(text);
    return PrepareQueries(exec_.kernels, source.kv, source.int8_products,
                          source.q.Rows(first + block.begin, first + block.end), scratch);
  }

  // Prefetches the first tile of a stretch, which no earlier tile of this core prefetches. Caches
  // drop requests that they cannot take without a wait.
  void FetchFirstTile(const AttentionSource& source, int64_t kv_head, int64_t stretch) const {
    int64_t tile = stretch * kStretchTiles;
    if (!source.parts.empty()) {
      tile = source.parts[kv_head][tile].tile;
    }
    if (!source.kv.Holds(tile)) return;
    constexpr int64_t kLine = 64;
    const std::byte* const memory = source.kv.Keys(kv_head, tile);
    for (int64_t byte = 0; byte < source.kv.head_bytes; byte += kLine) {
      __builtin_prefetch(memory + byte, /*for writing=*/0, /*second-level cache*/ 2);
    }
  }

  // Folds one stretch into fresh states of the block's rows. goes_on: this core folds the next
  // stretch afterwards.
  void FoldStretch(const AttentionRows& text, const AttentionSource& source,
                   const KernelQueries& queries, const RowBlock& block, int64_t stretch,
                   bool goes_on, const Scratch& scratch, float* states) const {
    Clear(block.rows(), states);
    const int64_t begin = stretch * kStretchTiles;
    if (source.parts.empty()) {
      const int64_t end = begin + kStretchTiles;
      for (int64_t tile = begin; tile < end; ++tile) {
        const bool more = (goes_on || tile + 1 < end) && source.kv.Holds(tile + 1);
        FoldTile(text, source, queries, block, {tile, 0, kTileTokens}, more ? tile + 1 : -1,
                 scratch, states);
      }
      return;
    }
    auto parts = source.parts[block.kv_head].subspan(begin);
    const size_t count = std::min<size_t>(kStretchTiles, parts.size());
    if (!goes_on) parts = parts.first(count);
    for (size_t i = 0; i < count; ++i) {
      FoldTile(text, source, queries, block, parts[i],
               i + 1 < parts.size() ? parts[i + 1].tile : -1, scratch, states);
    }
  }

  // Turns the final states of the block's rows into output, or into the text's states. Sink logits
  // enter here, once for a query, however its keys were split.
  void Finish(const AttentionRows& text, const RowBlock& block, float* states,
              MatrixView<float> out) const {
    if (text.states != nullptr) {
      std::copy_n(states, block.rows() * stride_, text.states + FirstState(text, block));
      return;
    }
    for (int64_t row = block.begin; row < block.end; ++row) {
      const int64_t head = block.kv_head * group_ + row % group_;
      FinishState(exec_.kernels, shape_.value_dim(),
                  sink_logits_.empty() ? nullptr : &sink_logits_[head],
                  states + (row - block.begin) * stride_,
                  out.Row(text.first_row + row / group_) + head * shape_.value_dim());
    }
  }

 private:
  // The index of the block's first float among the text's states.
  int64_t FirstState(const AttentionRows& text, const RowBlock& block) const {
    return (block.kv_head * RowsPerHead(text) + block.begin) * stride_;
  }

  // Folds one part of a tile into the states. next_tile: the tile to prefetch meanwhile; -1: none.
  void FoldTile(const AttentionRows& text, const AttentionSource& source,
                const KernelQueries& queries, const RowBlock& block, const TilePart& part,
                int64_t next_tile, const Scratch& scratch, float* states) const {
    TileSpan spans[kBlockRows];
    if (!Spans(text, source, block, part, spans)) return;
    const KvView& kv = source.kv;
    const BF16* const centre = kv.Centre(block.kv_head, part.tile);
    const bool moved = !alibi_.slopes.empty() || source.biases.rows > 0;
    const bool biased = moved || part.hidden != 0;
    alignas(64) float bias[kBlockRows * kTileTokens];  // left unset without a bias
    if (moved) Biases(text, source, block, part.tile * kTileTokens, spans, bias);
    if (part.hidden != 0) Hide(part.hidden, block.rows(), /*biased=*/moved, bias);
    if (centre != nullptr) {
      if (!biased) std::fill_n(bias, block.rows() * kTileTokens, 0.0f);
      AddCentre(text, source, block, centre, bias);
    }
    const bool scaled = kv.dtype == DType::kI8, in_keys = shape_.values_from.has_value();
    if (in_keys) {  // once for all heads of the block
      exec_.kernels.values_of_keys({.dtype = kv.dtype,
                                    .k = kv.Keys(block.kv_head, part.tile),
                                    .head_dim = shape_.head_dim,
                                    .first = *shape_.values_from,
                                    .v = scratch.values});
    }
    const void* const keys =
        WidenedKeys(exec_.kernels, kv, shape_.head_dim, block.kv_head, part.tile, scratch.keys);
    const void* const values = in_keys ? scratch.values
                                       : WidenedValues(exec_.kernels, kv, shape_.value_dim(),
                                                       block.kv_head, part.tile, scratch.values);
    const float* const scales = scaled ? kv.Scales(block.kv_head, part.tile) : nullptr;
    // Keys and values of 4 bits lie together in the bytes of int8 keys, so there are no values to
    // fetch.
    const bool fetch_values = next_tile >= 0 && !kv.narrow_keys && !in_keys;
    SelectKernel(exec_.kernels, kv.dtype, source.int8_products)(
        {.q = queries.data,
         .q_stride = queries.stride,
         .spans = spans,
         .rows = block.rows(),
         .k = keys,
         .v = values,
         .head_dim = shape_.head_dim,
         .value_dim = shape_.value_dim(),
         .scale = shape_.scale,
         .score_cap = shape_.score_cap,
         .bias = biased || centre != nullptr ? bias : nullptr,
         .state = states,
         .state_stride = stride_,
         .next_k = next_tile < 0 ? nullptr : kv.Keys(block.kv_head, next_tile),
         .next_v = fetch_values ? kv.Values(block.kv_head, next_tile) : nullptr,
         .k_scales = scales,
         .v_scales = !scaled || in_keys ? scales : scales + kTileTokens,
         .q_scales = queries.scales,
         .q_sums = queries.sums});
  }

  // The span of the part that each row sees. False if no row sees any of it.
  bool Spans(const AttentionRows& text, const AttentionSource& source, const RowBlock& block,
             const TilePart& part, TileSpan* spans) const {
    const int64_t position = part.tile * kTileTokens;
    // Both ends rise from row to row. If the outer two rows see the whole part, all rows do, as for
    // most tiles.
    const KvRange first = source.visible.At(text.position + block.begin / group_);
    const KvRange last = source.visible.At(text.position + (block.end - 1) / group_);
    if (last.begin <= position + part.begin && first.end >= position + part.end &&
        last.end >= position + part.end) {
      std::fill_n(spans, block.rows(), TileSpan{part.begin, part.end});
      return part.begin < part.end;
    }
    bool any = false;
    for (int64_t row = block.begin; row < block.end; ++row) {
      const KvRange range = source.visible.At(text.position + row / group_);
      const int64_t begin = std::clamp<int64_t>(range.begin - position, part.begin, part.end);
      const int64_t end = std::clamp<int64_t>(range.end - position, begin, part.end);
      spans[row - block.begin] = {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
      any |= begin < end;
    }
    return any;
  }

  // Fills bias [rows, kTileTokens], which is added to the scores of the tile at `position`. Rows
  // that see nothing are left out.
  void Biases(const AttentionRows& text, const AttentionSource& source, const RowBlock& block,
              int64_t position, const TileSpan* spans, float* bias) const {
    for (int64_t row = block.begin; row < block.end; ++row) {
      const int64_t i = row - block.begin;
      if (spans[i].begin >= spans[i].end) continue;
      const int64_t head = block.kv_head * group_ + row % group_;
      if (source.biases.rows > 0) {
        const float* const biases = source.biases.Row(head * source.biases.rows / shape_.heads);
        std::copy_n(biases + position, kTileTokens, bias + i * kTileTokens);
        continue;
      }
      FillAlibi(alibi_, head, source.PlaceOf(text.position + row / group_), position,
                {bias + i * kTileTokens, static_cast<size_t>(kTileTokens)});
    }
  }

  // Hides tokens of a tile from all rows, by bias [rows, kTileTokens], which is filled if biased.
  static void Hide(uint64_t hidden, int64_t rows, bool biased, float* bias) {
    if (!biased) std::fill_n(bias, rows * kTileTokens, 0.0f);
    for (; hidden != 0; hidden &= hidden - 1) {
      const int token = std::countr_zero(hidden);
      for (int64_t row = 0; row < rows; ++row) {
        bias[row * kTileTokens + token] = -std::numeric_limits<float>::infinity();
      }
    }
  }

  void AddCentre(const AttentionRows& text, const AttentionSource& source, const RowBlock& block,
                 const BF16* centre, float* bias) const {
    exec_.kernels.centre_scores({.q = source.q.Row(block.kv_head * RowsPerHead(text) + block.begin),
                                 .q_stride = source.q.stride,
                                 .rows = block.rows(),
                                 .centre = centre,
                                 .head_dim = shape_.head_dim,
                                 .scale = shape_.scale,
                                 .bias = bias,
                                 .bias_stride = kTileTokens});
  }

  const Exec& exec_;
  const AttentionShape& shape_;
  const Alibi& alibi_;
  std::span<const float> sink_logits_;
  int64_t group_;
  int64_t stride_;
};

// The rows of one text as tasks for the cores. Many rows: a core takes a block of rows through all
// keys that the block sees. Few rows over a long context: the cores share the stretches, too, and
// merge their states afterwards.
struct Job {
  const AttentionRows* text;
  int64_t blocks;  // of each KV head
  int64_t first_task;
  int64_t stretches;  // shared among cores, or 0
  float* states;      // of shared stretches, [kv_heads * stretches, rows * state_stride]
  int64_t first_merge;
};

// The job to which a task belongs.
const Job& JobOf(std::span<const Job> jobs, int64_t task, int64_t Job::*first) {
  const auto next = std::upper_bound(jobs.begin(), jobs.end(), task,
                                     [&](int64_t t, const Job& job) { return t < job.*first; });
  return *(next - 1);
}

void RunBlock(const Exec& exec, const Attender& attender, const AttentionRows& text,
              const RowBlock& block, const Scratch& scratch, MatrixView<float> out) {
  attender.Begin(text, block, scratch.total);
  for (const AttentionSource& source : text.sources) {
    const StretchRun run = attender.Stretches(text, source, block);
    if (run.count() == 0) continue;
    const KernelQueries queries = attender.Queries(text, source, block, scratch.queries);
    for (int64_t stretch = run.first; stretch < run.last; ++stretch) {
      // A block over a million keys is too long to wait for; Parallel throws in the end.
      if (exec.cancel != nullptr && exec.cancel->cancelled()) return;
      const bool goes_on = stretch + 1 < run.last;
      attender.FoldStretch(text, source, queries, block, stretch, goes_on, scratch,
                           scratch.stretch);
      attender.Merge(scratch.stretch, block.rows(), scratch.total);
    }
  }
  attender.Finish(text, block, scratch.total, out);
}

// Folds the stretch with this number, counted over all sources and rows. Without one, the states
// stay empty.
void RunStretch(const Attender& attender, const AttentionRows& text, const RowBlock& block,
                int64_t index, const Scratch& scratch, float* states) {
  for (const AttentionSource& source : text.sources) {
    const StretchRun run =
        attender.Stretches(text, source, {block.kv_head, 0, attender.RowsPerHead(text)});
    if (index < run.count()) {
      attender.FetchFirstTile(source, block.kv_head, run.first + index);
      attender.FoldStretch(text, source, attender.Queries(text, source, block, scratch.queries),
                           block, run.first + index, /*goes_on=*/false, scratch, states);
      return;
    }
    index -= run.count();
  }
  attender.Clear(block.rows(), states);
}

// Whether more than an eighth of the cores' time is idle. Waiting states may take as much.
bool LeavesCoresIdle(int64_t tasks, int64_t cores) {
  const int64_t turns = (tasks + cores - 1) / cores * cores;
  return 8 * (turns - tasks) > turns;
}

void CheckTypes(std::span<const AttentionRows> texts) {
  for (const AttentionRows& text : texts) {
    for (const AttentionSource& source : text.sources) {
      if (source.int8_products && source.kv.dtype != DType::kI8) {
        Throw(ErrorKind::kUnsupported, "int8 attention over a KV cache stored as {}, expected I8",
              Name(source.kv.dtype));
      }
    }
  }
}

bool HasNarrowTiles(std::span<const AttentionRows> texts) {
  return std::ranges::any_of(texts, [](const AttentionRows& text) {
    return std::ranges::any_of(text.sources, [](const AttentionSource& source) {
      return source.kv.narrow_keys || source.kv.narrow_values;
    });
  });
}

// Attention of texts that share no keys, or whose shared keys are folded already.
void AttendEach(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                std::span<const AttentionRows> texts, std::span<const float> sink_logits,
                MatrixView<float> out) {
  if (texts.empty()) return;
  Workspace::Scope scope(exec.workspace);
  const Attender attender(exec, shape, alibi, sink_logits);

  const auto jobs = exec.workspace.Matrix<Job>(1, std::ssize(texts)).RowSpan(0);
  int64_t tasks = 0, merges = 0, state_bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t rows = attender.RowsPerHead(texts[i]);
    assert(rows > 0);
    const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    const bool few = blocks == 1 || (rows <= kMaxSharedRows &&
                                     LeavesCoresIdle(blocks * shape.kv_heads, exec.pool.threads()));
    const int64_t stretches = few ? attender.MaxStretches(texts[i]) : 0;
    const int64_t bytes = shape.kv_heads * stretches * rows * attender.state_stride() *
                          static_cast<int64_t>(sizeof(float));
    Job& job = *std::construct_at(&jobs[i]);
    job = {.text = &texts[i],
           .blocks = blocks,
           .first_task = tasks,
           .stretches = 0,
           .states = nullptr,
           .first_merge = merges};
    if (stretches > 1 && state_bytes + bytes <= kMaxStateBytes) {
      state_bytes += bytes;
      job.stretches = stretches;
      job.states =
          exec.workspace.Matrix<float>(shape.kv_heads * stretches, rows * attender.state_stride())
              .data;
      merges += shape.kv_heads * job.blocks;
    }
    tasks += shape.kv_heads * job.blocks * std::max<int64_t>(1, job.stretches);
  }
  const bool narrow = HasNarrowTiles(texts);
  const auto memory =
      exec.workspace.Matrix<float>(exec.pool.threads(), Scratch::Floats(shape, narrow));

  // A job's block, in the order of tasks: the heads of a tile are neighbours. A head's last rows
  // come first: they see the most keys, and short tasks at the end leave few cores idle.
  const auto block_of = [&](const Job& job, int64_t index) -> RowBlock {
    const int64_t begin = (job.blocks - 1 - index % job.blocks) * kBlockRows;
    return {.kv_head = index / job.blocks % shape.kv_heads,
            .begin = begin,
            .end = std::min(attender.RowsPerHead(*job.text), begin + kBlockRows)};
  };
  // A block's states of a shared stretch.
  const auto states_of = [&](const Job& job, const RowBlock& block, int64_t stretch) {
    const int64_t rows = attender.RowsPerHead(*job.text);
    return job.states + ((block.kv_head * job.stretches + stretch) * rows + block.begin) *
                            attender.state_stride();
  };
  exec.Parallel(tasks, [&](int64_t task, int worker) {
    const Job& job = JobOf(jobs, task, &Job::first_task);
    const int64_t index = task - job.first_task;
    const RowBlock block = block_of(job, index);
    const Scratch scratch = Scratch::In(shape, narrow, memory.Row(worker));
    if (job.stretches > 0) {
      const int64_t stretch = index / (job.blocks * shape.kv_heads);
      RunStretch(attender, *job.text, block, stretch, scratch, states_of(job, block, stretch));
    } else {
      RunBlock(exec, attender, *job.text, block, scratch, out);
    }
  });
  exec.Parallel(merges, [&](int64_t merge, int worker) {
    const Job& job = JobOf(jobs, merge, &Job::first_merge);
    const RowBlock block = block_of(job, merge - job.first_merge);
    float* const total = Scratch::In(shape, narrow, memory.Row(worker)).total;
    attender.Begin(*job.text, block, total);
    for (int64_t i = 0; i < job.stretches; ++i) {
      attender.Merge(states_of(job, block, i), block.rows(), total);
    }
    attender.Finish(*job.text, block, total, out);
  });
}

}  // namespace

void Attention(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
               std::span<const AttentionRows> texts, std::span<const float> sink_logits,
               MatrixView<float> out) {
  assert(sink_logits.empty() || static_cast<int64_t>(sink_logits.size()) == shape.heads);
  assert(alibi.slopes.empty() || static_cast<int64_t>(alibi.slopes.size()) == shape.heads);
  assert(out.cols == shape.heads * shape.value_dim() && shape.heads % shape.kv_heads == 0);
  assert(shape.values_from.value_or(0) % kernels::kQuad == 0);
  CheckTypes(texts);
  const ProfilePart measured(exec.profile, StepPart::kAttention);
  Workspace::Scope scope(exec.workspace);
  SharedKeys shared(exec, shape, alibi, texts);
  AttendEach(exec, shape, alibi, shared.groups(), {}, {});
  AttendEach(exec, shape, alibi, shared.Rest(), sink_logits, out);
}

}  // namespace godwit::ops
