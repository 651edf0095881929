// Weighted sums of rows and products of a vector with rows, over Vec. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

// Adds rows [begin, end) of `from` to kRows rows, in kVecs vectors from `column` on. With kPartial
// the last vector has `lanes` lanes.
template <int kRows, int kVecs, bool kPartial = false>
GODWIT_INLINE void AddWeightedTile(const AddWeightedRowsArgs& args, int64_t row, int64_t column,
                                   int64_t begin, int64_t end, int64_t lanes = kLanes) {
  static_assert(!kPartial || kVecs == 1);
  const float* weights[kRows];
  Vec sums[kRows][kVecs];
  for (int r = 0; r < kRows; ++r) {
    weights[r] = args.weights[row + r];
    const float* const out = args.out[row + r] + column;
    for (int v = 0; v < kVecs; ++v) {
      sums[r][v] = kPartial ? LoadFirst(out, lanes) : Load(out + v * kLanes);
    }
  }
  for (int64_t j = begin; j < end; ++j) {
    const float* const from = args.from[j] + column;
    Vec parts[kVecs];
    for (int v = 0; v < kVecs; ++v) {
      parts[v] = kPartial ? LoadFirst(from, lanes) : Load(from + v * kLanes);
    }
    for (int r = 0; r < kRows; ++r) {
      const Vec weight = Set1(weights[r][j]);
      for (int v = 0; v < kVecs; ++v) sums[r][v] = MulAdd(weight, parts[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* const out = args.out[row + r] + column;
    for (int v = 0; v < kVecs; ++v) {
      if constexpr (kPartial) {
        StoreFirst(out, sums[r][v], lanes);
      } else {
        Store(out + v * kLanes, sums[r][v]);
      }
    }
  }
}

// All columns of kRows rows.
template <int kRows, int kVecs>
GODWIT_INLINE void AddWeightedTiles(const AddWeightedRowsArgs& args, int64_t row, int64_t begin,
                                    int64_t end) {
  int64_t c = 0;
  for (; c + kVecs * kLanes <= args.columns; c += kVecs * kLanes) {
    AddWeightedTile<kRows, kVecs>(args, row, c, begin, end);
  }
  for (; c + kLanes <= args.columns; c += kLanes) {
    AddWeightedTile<kRows, 1>(args, row, c, begin, end);
  }
  if (c < args.columns) {
    AddWeightedTile<kRows, 1, /*kPartial=*/true>(args, row, c, begin, end, args.columns - c);
  }
}

// Rows of `from` are read in blocks that stay in the first cache for all rows of `out`. A block of
// them is one stream of memory where rows follow one another.
void AddWeightedRows(const AddWeightedRowsArgs& args) noexcept {
  constexpr int64_t kBlock = 32;
  for (int64_t begin = 0; begin < args.count; begin += kBlock) {
    const int64_t end = begin + kBlock < args.count ? begin + kBlock : args.count;
    int64_t row = 0;
    for (; row + 4 <= args.rows; row += 4) AddWeightedTiles<4, 2>(args, row, begin, end);
    for (; row + 2 <= args.rows; row += 2) AddWeightedTiles<2, 4>(args, row, begin, end);
    if (row < args.rows) AddWeightedTiles<1, 4>(args, row, begin, end);
  }
}

// One chain of vectors for each row, which depends on n alone.
template <int kRows>
GODWIT_INLINE void DotTile(const float* x, const float* const* rows, int64_t n, float* out) {
  Vec sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = Zero();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec part = Load(x + i);
    for (int r = 0; r < kRows; ++r) sums[r] = MulAdd(part, Load(rows[r] + i), sums[r]);
  }
  if (i < n) {
    const Vec part = LoadFirst(x + i, n - i);
    for (int r = 0; r < kRows; ++r) sums[r] = MulAdd(part, LoadFirst(rows[r] + i, n - i), sums[r]);
  }
  for (int r = 0; r < kRows; ++r) out[r] = ReduceAdd(sums[r]);
}

void DotRows(const float* x, const float* const* rows, int64_t count, int64_t n,
             float* out) noexcept {
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) DotTile<4>(x, rows + j, n, out + j);
  for (; j < count; ++j) DotTile<1>(x, rows + j, n, out + j);
}

// Columns [begin, begin + n) of kVecs vectors, which stay in registers. With kPartial the one
// vector has n lanes. Sums of the first columns begin at 0.
template <int kVecs, bool kPartial = false>
GODWIT_INLINE void DotDecayedTile(const DotDecayedRowsArgs& args, int64_t begin, int64_t n) {
  static_assert(!kPartial || kVecs == 1);
  const auto load = [&](const float* from, int v) {
    return kPartial ? LoadFirst(from + begin, n) : Load(from + begin + v * kLanes);
  };
  Vec x[kVecs], y[kVecs];
  for (int v = 0; v < kVecs; ++v) {
    x[v] = load(args.x, v);
    y[v] = load(args.y, v);
  }
  for (int64_t j = args.count - 1; j >= 0; --j) {
    Vec x_sum = Zero(), y_sum = Zero();
    for (int v = 0; v < kVecs; ++v) {
      const Vec row = load(args.rows[j], v), decay = load(args.decays[j], v);
      x_sum = MulAdd(x[v], row, x_sum);
      y_sum = MulAdd(y[v], row, y_sum);
      x[v] = Mul(x[v], decay);
      y[v] = Mul(y[v], decay);
    }
    const float x_dot = ReduceAdd(x_sum), y_dot = ReduceAdd(y_sum);
    args.x_dots[j] = begin == 0 ? x_dot : args.x_dots[j] + x_dot;
    args.y_dots[j] = begin == 0 ? y_dot : args.y_dots[j] + y_dot;
  }
  for (int v = 0; v < kVecs; ++v) {
    if constexpr (kPartial) {
      StoreFirst(args.x + begin, x[v], n);
      StoreFirst(args.y + begin, y[v], n);
    } else {
      Store(args.x + begin + v * kLanes, x[v]);
      Store(args.y + begin + v * kLanes, y[v]);
    }
  }
}

void DotDecayedRows(const DotDecayedRowsArgs& args) noexcept {
  constexpr int kVecs = kLanes == 16 ? 8 : 4;  // both vectors fit in the registers
  int64_t i = 0;
  for (; i + kVecs * kLanes <= args.n; i += kVecs * kLanes) {
    DotDecayedTile<kVecs>(args, i, kVecs * kLanes);
  }
  for (; i + kLanes <= args.n; i += kLanes) DotDecayedTile<1>(args, i, kLanes);
  // Products of no columns are 0.
  if (i < args.n || i == 0) DotDecayedTile<1, /*kPartial=*/true>(args, i, args.n - i);
}

}  // namespace
}  // namespace godwit::kernels
