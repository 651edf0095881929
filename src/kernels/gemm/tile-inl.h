// The register tile: R rows of `a` times N vectors of neighbouring columns of `w`, one chain of
// additions per element, steps in ascending order. Matrix products and attention are loops of it.
//
// Include after one of vec/*.h. A tile is a tree of named members and not an array, since GCC 12
// keeps arrays of vectors in memory. The factors of a step are an operand type:
//   W             elements of `w`
//   Source, A     elements of the activations and of `a`, and how the one becomes the other,
//                 kMaxSteps at a time: RowsInPlace or RowsWidened
//   kDepth        elements of one column, side by side, that a step consumes
//   kPhases       multiply-adds of a step per accumulator
//   kFetchLevel   of the cache that takes what is fetched ahead
//   Row, Column   the broadcast of row elements, and kLanes columns, for one phase
//   Accumulate    the multiply-add
#pragma once

namespace godwit::kernels {
namespace {

constexpr int64_t kTileRows = 6;

// Whether a tile reads a panel in the order of memory, or a strip of every step, with other tiles
// side by side.
constexpr bool kInOrder = kTileVecs * kLanes == kPanelColumns;

// Where most processors want what is fetched ahead: two tiles of attention with heads of 128 are
// twice the first-level cache.
struct FetchedFar {
  static constexpr int kFetchLevel = 2;
};

// Where AMD's do: on a Zen 5 tiles of attention come up to 1.4 times as fast as into the second.
template <class Operand>
struct FetchedNear : Operand {
  static constexpr int kFetchLevel = 1;
};

// The rows of activations are read where they are.
template <class T>
struct RowsInPlace : FetchedFar {
  using Source = T;  // elements of the activations
  using A = T;
  static constexpr int64_t kMaxSteps = kInOrder ? int64_t{1} << 30 : 256;  // at a time
  struct Prepared {};  // what they are brought into
  static constexpr int64_t Stride(int64_t source_stride) { return source_stride; }
  static GODWIT_INLINE const T* Prepare(const T* source, int64_t /*stride*/, int64_t /*rows*/,
                                        int64_t /*steps*/, Prepared&) {
    return source;
  }
};

// Rows that are widened first, once for all tiles side by side. kWiden(from, ahead, n, to) does n
// elements of a row. `ahead` is the row that will stand there in the next tile of rows, to be
// fetched.
template <class S, class T, int64_t kStepElements, auto kWiden>
struct RowsWidened : FetchedFar {
  using Source = S;
  using A = T;
  static constexpr int64_t kMaxSteps = 256;  // 12 KiB of rows stay in the first-level cache
  static constexpr int64_t kElements = kMaxSteps * kStepElements;
  struct Prepared {
    alignas(64) T values[kTileRows * kElements];
  };
  static constexpr int64_t Stride(int64_t /*source_stride*/) { return kElements; }
  static GODWIT_INLINE const T* Prepare(const S* source, int64_t stride, int64_t rows,
                                        int64_t steps, Prepared& to) {
    for (int64_t r = 0; r < rows; ++r) {
      kWiden(source + r * stride, source + (r + kTileRows) * stride, steps * kStepElements,
             to.values + r * kElements);
    }
    return to.values;
  }
};

// f32 rows; W is f32, or f16 or bf16 that is widened: exact.
template <class Storage>
struct WidenedOperand : RowsInPlace<float> {
  using W = Storage;
  static constexpr int64_t kDepth = 1;
  static constexpr int kPhases = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const float* a) {
    return Set1(*a);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const Storage* w) {
    return Load(w);
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return MulAdd(a, w, sum); }
};

// The four bytes at `a`, in every lane.
template <class T>
GODWIT_INLINE Vec BroadcastWord(const T* a) {
  float word;
  __builtin_memcpy(&word, a, sizeof(word));
  return Set1(word);
}

// Rows and columns are words of four bytes, whose elements one instruction multiplies and adds up:
// all but Accumulate.
template <class T, class Storage>
struct WordOperand : RowsInPlace<T> {
  using W = Storage;
  static constexpr int64_t kDepth = 4 / sizeof(T);
  static constexpr int kPhases = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const T* a) {
    return BroadcastWord(a);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const Storage* w) {
    return Load(reinterpret_cast<const float*>(w));
  }
};

// N neighbouring vectors.
template <int N>
struct Strip {
  Strip<N / 2> low, high;
};
template <>
struct Strip<1> {
  Vec vec;
};

template <int N>
GODWIT_INLINE void Fill(Strip<N>& strip, Vec x) {
  if constexpr (N == 1) {
    strip.vec = x;
  } else {
    Fill(strip.low, x);
    Fill(strip.high, x);
  }
}

template <int N>
GODWIT_INLINE void LoadStrip(Strip<N>& strip, const float* p) {
  if constexpr (N == 1) {
    strip.vec = Load(p);
  } else {
    LoadStrip(strip.low, p);
    LoadStrip(strip.high, p + N / 2 * kLanes);
  }
}

template <int N>
GODWIT_INLINE void StoreStrip(const Strip<N>& strip, float* p) {
  if constexpr (N == 1) {
    Store(p, strip.vec);
  } else {
    StoreStrip(strip.low, p);
    StoreStrip(strip.high, p + N / 2 * kLanes);
  }
}

template <class Operand, int kPhase, int N>
GODWIT_INLINE void LoadColumns(Strip<N>& strip, const typename Operand::W* w) {
  if constexpr (N == 1) {
    strip.vec = Operand::template Column<kPhase>(w);
  } else {
    LoadColumns<Operand, kPhase>(strip.low, w);
    LoadColumns<Operand, kPhase>(strip.high, w + N / 2 * kLanes * Operand::kDepth);
  }
}

template <class Operand, int N>
GODWIT_INLINE void AccumulateStrip(Strip<N>& sum, Vec a, const Strip<N>& columns) {
  if constexpr (N == 1) {
    sum.vec = Operand::Accumulate(a, columns.vec, sum.vec);
  } else {
    AccumulateStrip<Operand>(sum.low, a, columns.low);
    AccumulateStrip<Operand>(sum.high, a, columns.high);
  }
}

// The memory that a step fetches ahead: 1 / share of its reads of `w`.
struct Fetch {
  int share = 1;
  int level = 0;        // of the cache; 0: the operand's
  bool places = false;  // of TileArgs::places, or else in order from `ahead`
};

// Memory that is fetched in several places side by side. A processor follows every page of 4 KiB by
// itself, and waits at the beginning of one. A round has four lines, two of each of two halves.
struct Places {
  const char* halves[2] = {};
  int64_t gap = 0;   // bytes between the lines of a half
  int64_t pace = 0;  // bytes from round to round
  uint64_t at = 0;   // bytes of the round that were fetched

  static constexpr int64_t kLine = 64, kRound = 4 * kLine;

  GODWIT_INLINE void Skip(int64_t bytes) {
    at += static_cast<uint64_t>(bytes);
    const int64_t rounds = static_cast<int64_t>(at / kRound);
    for (const char*& half : halves) half += rounds * pace;
    at %= kRound;
  }
  template <int64_t kBytes, int kLevel>
  GODWIT_INLINE void Fetch() {
    if constexpr (kBytes % kRound == 0) {
      for (int64_t round = 0; round < kBytes; round += kRound) {
        for (const char*& half : halves) {
          __builtin_prefetch(half, /*for writing=*/0, 4 - kLevel);
          __builtin_prefetch(half + gap, /*for writing=*/0, 4 - kLevel);
          half += pace;
        }
      }
    } else {
      for (int64_t byte = 0; byte < kBytes; byte += kLine) {
        const uint64_t line = at / kLine;
        __builtin_prefetch(halves[line / 2] + (line % 2 == 0 ? 0 : gap), /*for writing=*/0,
                           4 - kLevel);
        Skip(kBytes < kLine ? kBytes : kLine);
      }
    }
  }
};

template <class Operand>
struct TileArgs {
  const typename Operand::A* a = nullptr;  // [R, steps * kDepth]
  int64_t a_stride = 0;                    // elements between rows
  const typename Operand::W* w;            // [steps, columns, kDepth]
  int64_t w_stride;                        // elements between steps
  int64_t steps;
  bool resume = false;  // the chains go on from the values in `out`; else they start at zero
  float* out;           // [R, columns]
  int64_t out_stride;
  // Memory that will be read later, fetched in order by all steps: one of the two.
  const typename Operand::W* ahead = nullptr;  // [columns * steps * kDepth / share]
  Places places = {};
};

template <int R, int N>
struct Rows {
  Rows<R - 1, N> above;
  Strip<N> row;
};
template <int N>
struct Rows<0, N> {};

template <class Operand, int R, int N>
GODWIT_INLINE void StartRows(Rows<R, N>& rows, const TileArgs<Operand>& tile) {
  if constexpr (R > 0) {
    StartRows(rows.above, tile);
    if (tile.resume) {
      LoadStrip(rows.row, tile.out + (R - 1) * tile.out_stride);
    } else {
      Fill(rows.row, Zero());
    }
  }
}

template <class Operand, int kPhase, int R, int N>
GODWIT_INLINE void AccumulateRows(Rows<R, N>& rows, const typename Operand::A* a, int64_t a_stride,
                                  const Strip<N>& columns) {
  if constexpr (R > 0) {
    AccumulateRows<Operand, kPhase>(rows.above, a, a_stride, columns);
    const Vec x = Operand::template Row<kPhase>(a + (R - 1) * a_stride);
    AccumulateStrip<Operand>(rows.row, x, columns);
  }
}

template <class Operand, int R, int N>
GODWIT_INLINE void FinishRows(Rows<R, N>& rows, const TileArgs<Operand>& tile) {
  if constexpr (R > 0) {
    FinishRows(rows.above, tile);
    StoreStrip(rows.row, tile.out + (R - 1) * tile.out_stride);
  }
}

template <int64_t kElements, int kLevel, class W>
GODWIT_INLINE void FetchAhead(const W* ahead) {
  constexpr int64_t kLine = 64;
  for (int64_t byte = 0; byte < kElements * int64_t{sizeof(W)}; byte += kLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(ahead) + byte, /*for writing=*/0, 4 - kLevel);
  }
}

// The same by an instruction that multiplies several rows at once (gemm/matrices-inl.h).
template <class Operand, Fetch kFetch, int R, int N>
void RunMatrixTile(const TileArgs<Operand>& tile);

// Not inlined: in a large function GCC keeps some of the sums in memory.
template <class Operand, Fetch kFetch, int R, int N>
__attribute__((noinline)) void RunTile(const TileArgs<Operand>& tile) {
  if constexpr (R > 1 && requires { Operand::kMatrices; }) {
    return RunMatrixTile<Operand, kFetch, R, N>(tile);
  }
  Rows<R, N> sums;
  StartRows(sums, tile);
  constexpr int64_t kElementsAhead = N * kLanes * Operand::kDepth / kFetch.share;
  constexpr int kLevel = kFetch.level != 0 ? kFetch.level : Operand::kFetchLevel;
  const auto* a = tile.a;
  const auto* w = tile.w;
  const auto* ahead = tile.ahead;
  Places places = tile.places;
  const int64_t a_stride = tile.a_stride, w_stride = tile.w_stride;
  for (int64_t steps = tile.steps; steps > 0; --steps) {
    if constexpr (kFetch.places) {
      places.Fetch<kElementsAhead * int64_t{sizeof(*w)}, kLevel>();
    } else {
      FetchAhead<kElementsAhead, kLevel>(ahead);
      ahead += kElementsAhead;
    }
    Strip<N> columns;
    LoadColumns<Operand, 0>(columns, w);
    AccumulateRows<Operand, 0>(sums, a, a_stride, columns);
    if constexpr (Operand::kPhases == 2) {
      // The pairs are loaded again: kept from the first phase, they would push sums out of the
      // registers.
      __asm__ volatile("" ::: "memory");
      LoadColumns<Operand, 1>(columns, w);
      AccumulateRows<Operand, 1>(sums, a, a_stride, columns);
    }
    a += Operand::kDepth;
    w += w_stride;
  }
  FinishRows(sums, tile);
}

template <class Operand, Fetch kFetch, int N>
void RunTile(int64_t rows, const TileArgs<Operand>& tile) {
  switch (rows) {
    case 1:
      return RunTile<Operand, kFetch, 1, N>(tile);
    case 2:
      return RunTile<Operand, kFetch, 2, N>(tile);
    case 3:
      return RunTile<Operand, kFetch, 3, N>(tile);
    case 4:
      return RunTile<Operand, kFetch, 4, N>(tile);
    case 5:
      return RunTile<Operand, kFetch, 5, N>(tile);
    default:
      return RunTile<Operand, kFetch, kTileRows, N>(tile);
  }
}

template <Fetch kFetch, class Operand>
GODWIT_INLINE void SkipColumns(TileArgs<Operand>& tile, int64_t columns) {
  tile.w += columns * Operand::kDepth;
  tile.out += columns;
  const int64_t ahead = columns * tile.steps * Operand::kDepth / kFetch.share;
  if constexpr (kFetch.places) {
    tile.places.Skip(ahead * int64_t{sizeof(*tile.w)});
  } else {
    tile.ahead += ahead;
  }
}

// Tiles side by side. rows <= kTileRows; columns is a multiple of kLaneFloats.
template <class Operand, Fetch kFetch = Fetch{}>
GODWIT_INLINE void RunColumns(int64_t rows, int64_t columns, TileArgs<Operand> tile) {
  if (rows == 1) {
    // The whole panel in one pass: memory is read in order.
    for (; columns >= kPanelColumns; columns -= kPanelColumns) {
      RunTile<Operand, kFetch, 1, kPanelColumns / kLanes>(tile);
      SkipColumns<kFetch>(tile, kPanelColumns);
    }
  }
  constexpr int64_t kWideColumns = 2 * kTileVecs * kLanes;
  if constexpr (kWideColumns <= kPanelColumns) {
    // Two rows of a tile are too few sums to keep the multipliers busy.
    for (; rows == 2 && columns >= kWideColumns; columns -= kWideColumns) {
      RunTile<Operand, kFetch, 2, 2 * kTileVecs>(tile);
      SkipColumns<kFetch>(tile, kWideColumns);
    }
  }
  constexpr int64_t kTileColumns = kTileVecs * kLanes;
  for (; columns >= kTileColumns; columns -= kTileColumns) {
    RunTile<Operand, kFetch, kTileVecs>(rows, tile);
    SkipColumns<kFetch>(tile, kTileColumns);
  }
  if constexpr (kTileColumns > kLaneFloats) {
    for (; columns > 0; columns -= kLaneFloats) {
      RunTile<Operand, kFetch, kLaneFloats / kLanes>(rows, tile);
      SkipColumns<kFetch>(tile, kLaneFloats);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
