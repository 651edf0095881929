#include "ops/gpu/gpu_near.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "cuda/device.h"
#include "cuda/ops/attention.h"
#include "cuda/ops/matrix.h"
#include "ops/attention_state.h"
#include "ops/gpu/gpu_queries.h"
#include "ops/gpu/gpu_turn.h"
#include "ops/kv_layout.h"

namespace godwit::ops {
namespace {

using kernels::kTileTokens;

// The bytes of page-locked memory through which tiles go to the GPU: 16 tiles whose numbers take
// four bytes, or 32 with two.
int64_t StagingBytes(const AttentionShape& shape) {
  constexpr int64_t kTiles = 16;
  const KvLayout layout{
      .layers = 1, .kv_heads = shape.kv_heads, .head_dim = shape.head_dim, .dtype = DType::kF32};
  return kTiles * shape.kv_heads * layout.head_bytes();
}

// Memory of the host for rows of one text. It stays until the turn has waited.
struct NearHere {
  cuda::DeviceMatrix<float> q;  // [rows * heads, head_dim]
  const uint8_t** table;        // [tiles]
  float* states;                // [rows * heads, StateFloats]
};
NearHere NewNearHere(GpuScratch& host, const AttentionShape& shape, int64_t tiles, int64_t rows) {
  return {.q = host.Matrix<float>(rows * shape.heads, shape.head_dim),
          .table = host.New<const uint8_t*>(tiles),
          .states = host.New<float>(rows * shape.heads * cuda::StateFloats(shape.value_dim()))};
}

// Memory of the GPU for rows of one text, one after the other.
struct NearThere {
  cuda::DeviceMatrix<float> q;
  const uint8_t** table;
  float* stretches;  // states [stretches, rows * heads, StateFloats]
  float* states;
};
NearThere NewNearThere(GpuScratch& scratch, const AttentionShape& shape, int64_t tiles,
                       int64_t rows) {
  const int64_t floats = rows * shape.heads * cuda::StateFloats(shape.value_dim());
  const int64_t stretches = (tiles + kStretchTiles - 1) / kStretchTiles;
  return {.q = scratch.Matrix<float>(rows * shape.heads, shape.head_dim),
          .table = scratch.New<const uint8_t*>(tiles),
          .stretches = scratch.New<float>(stretches * floats),
          .states = scratch.New<float>(floats)};
}

class NearOnGpu {
 public:
  NearOnGpu(GpuTurn& turn, GpuTiles& tiles, const AttentionShape& shape, int64_t layer)
      : turn_(turn),
        tiles_(tiles),
        shape_(shape),
        layer_(layer),
        staging_(turn.host().New<uint8_t>(StagingBytes(shape))) {}

  void Begin(NearRows& text) {
    const AttentionRows& rows = text.rows;
    const AttentionSource& source = rows.sources.front();
    const NearCut cut = CutNear(text.tiles, rows);
    const NearHere here = NewNearHere(turn_.host(), shape_, cut.count(), rows.rows);
    const int64_t used = turn_.scratch().used();
    const NearThere there = NewNearThere(turn_.scratch(), shape_, cut.count(), rows.rows);
    PutTiles(source.kv, cut, rows.position + rows.rows - 1, here.table);
    const QueryRows all = {
        .all = rows.rows, .begin = 0, .rows = rows.rows, .group = shape_.heads / shape_.kv_heads};
    PutQueries(turn_.exec(), source, all, here.q);
    turn_.CopyIn({here.q.data, here.q.rows, here.q.cols, here.q.stride}, there.q);
    turn_.CopyIn(here.table, there.table, cut.count());
    Attend(rows, source, cut, there);
    const int64_t count = rows.rows * shape_.heads, stride = StateStride(shape_.value_dim());
    turn_.CopyOut({there.states, count, stride, stride}, {here.states, count, stride, stride});
    turn_.scratch().Release(used);
    text.states = here.states;
  }

 private:
  // Fills the table of copies, and makes those that are missing.
  void PutTiles(const KvView& kv, const NearCut& cut, int64_t last, const uint8_t** table) {
    const int64_t bytes = shape_.kv_heads * kv.head_bytes, fit = StagingBytes(shape_) / bytes;
    assert(fit > 0);
    const auto places = tiles_.Find(kv, shape_.kv_heads, layer_, cut, last);
    std::ranges::transform(places, table, &GpuTiles::Place::copy);
    const auto first_kept = std::partition(
        places.begin(), places.end(), [](const GpuTiles::Place& place) { return place.missing; });
    const auto missing = places.first(static_cast<size_t>(first_kept - places.begin()));
    for (size_t begin = 0; begin < missing.size();) {
      if ((staged_ + 1) * bytes > StagingBytes(shape_)) {
        turn_.Wait();
        staged_ = 0;
      }
      const auto some = missing.subspan(
          begin, std::min(missing.size() - begin, static_cast<size_t>(fit - staged_)));
      CopyTiles(kv, some, bytes);
      begin += some.size();
    }
  }

  void CopyTiles(const KvView& kv, std::span<const GpuTiles::Place> places, int64_t bytes) {
    turn_.exec().Parallel(std::ssize(places), [&](int64_t i) {
      std::memcpy(staging_ + (staged_ + i) * bytes, HostPointer(kv.Page(places[i].tile)),
                  static_cast<size_t>(bytes));
    });
    for (const GpuTiles::Place& place : places) {
      turn_.CopyIn(staging_ + staged_++ * bytes, place.copy, bytes);
      tiles_.Copied(kv, layer_, place);
    }
  }

  void Attend(const AttentionRows& rows, const AttentionSource& source, const NearCut& cut,
              const NearThere& there) {
    // The place of a key among near ones: the window's tiles follow those of the beginning.
    const int64_t moved = (cut.window - cut.sinks) * kTileTokens;
    cuda::AttendStates(
        turn_.stream(),
        {.heads = shape_.heads,
         .kv_heads = shape_.kv_heads,
         .head_dim = shape_.head_dim,
         .value_dim = shape_.value_dim(),
         .scale = shape_.scale,
         .score_cap = shape_.score_cap},
        {.pages = there.table,
         .head_bytes = source.kv.head_bytes,
         .value_offset = source.kv.value_offset,
         .dtype = source.kv.dtype},
        {.q = there.q,
         .tokens = rows.rows,
         .position = rows.position - moved,
         .begin = cut.sinks > 0 ? 0 : std::max<int64_t>(0, source.visible.begin - moved),
         .window = source.visible.window},
        there.stretches, nullptr, there.states);
  }

  GpuTurn& turn_;
  GpuTiles& tiles_;
  const AttentionShape& shape_;
  const int64_t layer_;
  uint8_t* const staging_;
  int64_t staged_ = 0;  // tiles in it, whose copies may be under way
};

}  // namespace

GpuAttentionMemory GpuNearMemoryOf(const AttentionShape& shape, int64_t tiles, int64_t rows) {
  GpuScratch here, there;
  here.New<uint8_t>(StagingBytes(shape));
  for (int64_t row = 0; row < rows; ++row) NewNearHere(here, shape, tiles, 1);
  NewNearThere(there, shape, tiles, std::min(rows, kTileTokens));
  return {.scratch_bytes = there.used(), .host_bytes = here.used()};
}

GpuBusBytes GpuNearBusBytes(const AttentionShape& shape, int64_t head_bytes, const NearCut& cut) {
  constexpr int64_t kFloat = sizeof(float);
  return {.in = kFloat * shape.heads * shape.head_dim +
                cut.count() * static_cast<int64_t>(sizeof(uint8_t*)) + shape.kv_heads * head_bytes,
          .out = kFloat * shape.heads * StateStride(shape.value_dim())};
}

void BeginNearOnGpu(GpuTurn& turn, GpuTiles& tiles, const AttentionShape& shape, int64_t layer,
                    std::span<NearRows> texts) {
  const ProfilePart measured(turn.exec().profile, StepPart::kAttention);
  NearOnGpu near(turn, tiles, shape, layer);
  for (NearRows& text : texts) near.Begin(text);
}

void FinishNear(const Exec& exec, const AttentionShape& shape, std::span<const AttentionRows> far,
                std::span<const NearRows> texts, std::span<const float> sink_logits,
                MatrixView<float> out) {
  static_assert(StateStride(1) == cuda::StateFloats(1));
  const ProfilePart measured(exec.profile, StepPart::kAttention);
  const int64_t dim = shape.value_dim(), group = shape.heads / shape.kv_heads;
  const int64_t stride = StateStride(dim);
  for (size_t text = 0; text < far.size(); ++text) {
    const AttentionRows& rows = far[text];
    const float* const near = texts[text].states;
    exec.ParallelRows(rows.rows * shape.heads, stride, [&](int64_t place) {
      float* const state = rows.states + place * stride;
      MergeStates(exec.kernels, dim, 1, near + place * stride, state);
      // place: (KV head, token, head of its group)
      const int64_t token = place / group % rows.rows;
      const int64_t head = place / group / rows.rows * group + place % group;
      FinishState(exec.kernels, dim, sink_logits.empty() ? nullptr : &sink_logits[head], state,
                  out.Row(rows.first_row + token) + head * dim);
    });
  }
}

}  // namespace godwit::ops
