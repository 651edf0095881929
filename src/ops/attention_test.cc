#include "ops/attention.h"

#include <numeric>

#include "base/error.h"
#include "ops/test_support.h"
#include "tensor/buffer.h"

namespace godwit::ops {
namespace {

using kernels::kTileTokens;
using kernels::PadToLanes;

constexpr int64_t kStretchTokens = kStretchTiles * kTileTokens;

// The second of two layers of keys and values. What was not written is NaN, padding included.
class Cache {
 public:
  Cache(const AttentionShape& shape, DType dtype, int64_t capacity, uint32_t seed)
      : shape_(shape), dtype_(dtype), random_(seed) {
    for (int64_t page = 0; page * kTileTokens < capacity; ++page) {
      pages_.emplace_back(2 * layer_bytes());
      std::memset(pages_.back().data(), 0xff, static_cast<size_t>(pages_.back().bytes()));
      page_data_.push_back(pages_.back().data());
    }
  }

  void WriteRandom(int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position) {
      for (int64_t head = 0; head < shape_.kv_heads; ++head) {
        for (int64_t d = 0; d < shape_.head_dim; ++d) {
          Store(KeyElement(head, position, d), random_(-2, 2));
          Store(ValueElement(head, position, d), random_(-1, 1));
        }
      }
    }
  }

  double Key(int64_t head, int64_t position, int64_t d) const {
    return Load(KeyElement(head, position, d));
  }
  double Value(int64_t head, int64_t position, int64_t d) const {
    return Load(ValueElement(head, position, d));
  }

  KvView View() const {
    return {.dtype = dtype_,
            .pages = page_data_,
            .layer_offset = layer_bytes(),
            .head_bytes = key_bytes() + value_bytes(),
            .value_offset = key_bytes()};
  }

 private:
  int64_t element() const { return static_cast<int64_t>(SizeOf(dtype_)); }
  int64_t key_bytes() const { return shape_.head_dim * kTileTokens * element(); }
  int64_t value_bytes() const { return kTileTokens * PadToLanes(shape_.head_dim) * element(); }
  int64_t layer_bytes() const { return shape_.kv_heads * (key_bytes() + value_bytes()); }

  std::byte* Head(int64_t head, int64_t position) const {
    return pages_[static_cast<size_t>(position / kTileTokens)].data() + layer_bytes() +
           head * (key_bytes() + value_bytes());
  }
  std::byte* KeyElement(int64_t head, int64_t position, int64_t d) const {
    return Head(head, position) + (d * kTileTokens + position % kTileTokens) * element();
  }
  std::byte* ValueElement(int64_t head, int64_t position, int64_t d) const {
    return Head(head, position) + key_bytes() +
           (position % kTileTokens * PadToLanes(shape_.head_dim) + d) * element();
  }

  void Store(std::byte* to, float x) const {
    if (dtype_ == DType::kF32) *reinterpret_cast<float*>(to) = x;
    if (dtype_ == DType::kF16) *reinterpret_cast<F16*>(to) = ToF16(x);
    if (dtype_ == DType::kBF16) *reinterpret_cast<BF16*>(to) = ToBF16(x);
  }
  float Load(const std::byte* from) const {
    if (dtype_ == DType::kF32) return *reinterpret_cast<const float*>(from);
    if (dtype_ == DType::kF16) return ToFloat(*reinterpret_cast<const F16*>(from));
    return ToFloat(*reinterpret_cast<const BF16*>(from));
  }

  AttentionShape shape_;
  DType dtype_;
  RandomFloats random_;
  std::vector<Buffer> pages_;
  std::vector<const std::byte*> page_data_;
};

AttentionShape MakeShape(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return {.heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(head_dim))};
}

// Random queries of a text, [tokens, heads, head_dim].
class Queries {
 public:
  Queries(const AttentionShape& shape, int64_t tokens, uint32_t seed)
      : shape_(shape), values_(tokens, shape.heads * shape.head_dim, seed, -2, 2) {}

  double At(int64_t token, int64_t head, int64_t d) const {
    return values_.At(token, head * shape_.head_dim + d);
  }

  GappedMatrix HeadMajor(int64_t begin, int64_t end) const {
    GappedMatrix out((end - begin) * shape_.heads, shape_.head_dim);
    for (int64_t token = begin; token < end; ++token) {
      for (int64_t head = 0; head < shape_.heads; ++head) {
        const float* from = values_.view().Row(token) + head * shape_.head_dim;
        std::copy_n(from, shape_.head_dim,
                    out.view().Row(HeadMajorRow(shape_, end - begin, token - begin, head)));
      }
    }
    return out;
  }

 private:
  AttentionShape shape_;
  GappedMatrix values_;
};

// What ALiBi adds for tokens that see `visible` from `places`.
struct Biased {
  Alibi alibi;
  std::vector<KvRange> visible;
  std::vector<AlibiPlace> places;

  double At(int64_t token, int64_t head, int64_t position) const {
    const auto [query, shift] = places[static_cast<size_t>(token)];
    const double slope = alibi.slopes[static_cast<size_t>(head)];
    return slope * static_cast<double>(position + shift - query);
  }
};

class AttentionTest : public OpsTest {
 protected:
  static std::vector<float> Run(const Exec& exec, const AttentionShape& shape,
                                std::span<const AttentionSource> sources, int64_t tokens,
                                std::span<const float> sink_logits = {}, const Alibi& alibi = {}) {
    GappedMatrix out(tokens, shape.heads * shape.head_dim);
    Attention(exec, shape, alibi, sources, sink_logits, out.view());
    EXPECT_TRUE(out.GapsIntact());
    return out.Values();
  }

  // Tokens [begin, end) of the queries over one cache.
  static std::vector<float> Run(const Exec& exec, const AttentionShape& shape, const Cache& cache,
                                const Queries& queries, const std::vector<KvRange>& visible,
                                int64_t begin, int64_t end,
                                std::span<const float> sink_logits = {}) {
    const GappedMatrix q = queries.HeadMajor(begin, end);
    const AttentionSource source{.kv = cache.View(),
                                 .q = q.view(),
                                 .visible = std::span(visible).subspan(
                                     static_cast<size_t>(begin), static_cast<size_t>(end - begin))};
    return Run(exec, shape, {&source, 1}, end - begin, sink_logits);
  }

  // With ALiBi, each token at its place.
  static std::vector<float> RunBiased(const Exec& exec, const AttentionShape& shape,
                                      const Cache& cache, const Queries& queries,
                                      const Biased& biased, int64_t begin, int64_t end) {
    const GappedMatrix q = queries.HeadMajor(begin, end);
    const auto at = static_cast<size_t>(begin), n = static_cast<size_t>(end - begin);
    const AttentionSource source{.kv = cache.View(),
                                 .q = q.view(),
                                 .visible = std::span(biased.visible).subspan(at, n),
                                 .places = std::span(biased.places).subspan(at, n)};
    return Run(exec, shape, {&source, 1}, end - begin, {}, biased.alibi);
  }

  // Softmax over the keys, in double. The tolerance covers the float scores, whose errors the
  // exponential makes relative ones, and the chains of additions in tiles and stretches.
  static void ExpectSoftmax(const AttentionShape& shape, const Cache& cache, const Queries& queries,
                            const std::vector<KvRange>& visible, const std::vector<float>& out,
                            std::span<const float> sink_logits = {},
                            const Biased* biased = nullptr) {
    for (int64_t token = 0; token < std::ssize(visible); ++token) {
      const KvRange range = visible[static_cast<size_t>(token)];
      for (int64_t head = 0; head < shape.heads; ++head) {
        const int64_t kv_head = head * shape.kv_heads / shape.heads;
        std::vector<double> weights;
        double size = 0;
        double sum =
            sink_logits.empty() ? 0 : std::exp(double{sink_logits[static_cast<size_t>(head)]});
        for (int64_t p = range.begin; p < range.end; ++p) {
          double score = 0, magnitude = 0;
          for (int64_t d = 0; d < shape.head_dim; ++d) {
            const double product = queries.At(token, head, d) * cache.Key(kv_head, p, d);
            score += product;
            magnitude += std::fabs(product);
          }
          const double bias = biased == nullptr ? 0 : biased->At(token, head, p);
          size = std::max(size, magnitude * shape.scale + std::fabs(bias));
          weights.push_back(std::exp(score * shape.scale + bias));
          sum += weights.back();
        }
        const double tolerance =
            kEpsilon * (4 * static_cast<double>(shape.head_dim + 4) * size + 256);
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          double expected = 0;
          for (int64_t p = range.begin; p < range.end; ++p) {
            expected +=
                weights[static_cast<size_t>(p - range.begin)] / sum * cache.Value(kv_head, p, d);
          }
          const auto index = static_cast<size_t>((token * shape.heads + head) * shape.head_dim + d);
          ASSERT_NEAR(out[index], expected, tolerance) << "token " << token << " head " << head;
        }
      }
    }
  }
};

TEST_P(AttentionTest, IsASoftmaxOverWhatATokenSees) {
  for (const AttentionShape& shape :
       {MakeShape(1, 1, 8), MakeShape(2, 2, 9), MakeShape(4, 2, 16), MakeShape(6, 2, 20),
        MakeShape(3, 3, 24), MakeShape(8, 1, 33), MakeShape(71, 1, 8), MakeShape(5, 5, 63),
        MakeShape(4, 4, 64), MakeShape(2, 1, 100), MakeShape(2, 2, 127), MakeShape(2, 2, 128)}) {
    for (const DType dtype : kFloatTypes) {
      // Whatever lies outside [37, 290) is NaN and may not show.
      Cache cache(shape, dtype, 320, 1);
      cache.WriteRandom(37, 290);
      const Queries queries(shape, 6, 2);
      const std::vector<KvRange> visible = {{37, 38},   {37, 290},  {64, 128},
                                            {100, 100}, {127, 129}, {63, 257}};
      SCOPED_TRACE(fmt::format("{} heads, {} KV heads, {} dimensions, {}", shape.heads,
                               shape.kv_heads, shape.head_dim, Name(dtype)));
      const auto out = Run(On(three_), shape, cache, queries, visible, 0, 6);
      ExpectSoftmax(shape, cache, queries, visible, out);
      for (int64_t token = 0; token < 6; ++token) {
        const auto begin = out.begin() + token * shape.heads * shape.head_dim;
        ASSERT_EQ(Run(On(one_), shape, cache, queries, visible, token, token + 1),
                  std::vector<float>(begin, begin + shape.heads * shape.head_dim));
      }
    }
  }
}

TEST_P(AttentionTest, TokensThatSeeNothingGetZeros) {
  const AttentionShape shape = MakeShape(4, 2, 20);
  Cache cache(shape, DType::kBF16, 2 * kStretchTokens, 3);
  cache.WriteRandom(0, 2 * kStretchTokens);
  const Queries queries(shape, 50, 4);
  std::vector<KvRange> visible(50, {0, 2 * kStretchTokens});
  for (const int64_t token : {0, 7, 49}) visible[static_cast<size_t>(token)] = {700, 700};
  visible[8] = {900, 300};
  const std::vector<float> zeros(80, 0.0f);
  for (const int64_t tokens : {10, 50}) {  // deep, wide
    const auto out = Run(On(three_), shape, cache, queries, visible, 0, tokens);
    for (const int64_t token : {0, 7, 8}) {
      EXPECT_EQ(std::vector<float>(out.begin() + token * 80, out.begin() + (token + 1) * 80),
                zeros);
    }
    EXPECT_NE(std::vector<float>(out.begin() + 80, out.begin() + 160), zeros);
  }
  EXPECT_EQ(Run(On(one_), shape, cache, queries, visible, 0, 1), zeros);
  EXPECT_EQ(Run(On(one_), shape, {}, 1), zeros);
}

TEST_P(AttentionTest, ASinkLogitIsOneMoreTermOfTheDenominator) {
  constexpr int64_t kKeys = 2 * kStretchTokens + 100;
  const AttentionShape shape = MakeShape(4, 2, 24);
  const std::vector<float> logits = {0, -3, 2.5, 60};
  for (const DType dtype : kFloatTypes) {
    Cache cache(shape, dtype, kKeys, 16);
    cache.WriteRandom(0, kKeys);
    const Queries queries(shape, 40, 17);
    std::vector<KvRange> visible;
    for (int64_t token = 0; token < 40; ++token) visible.push_back({5 * token, 5 * token + 3});
    visible[1] = visible[39] = {0, kKeys};
    visible[2] = {9, 9};
    const auto wide = Run(On(three_), shape, cache, queries, visible, 0, 40, logits);
    ExpectSoftmax(shape, cache, queries, visible, wide, logits);
    // Deep, and on its own: the same bits.
    for (const int64_t token : {0, 1, 2, 39}) {
      const auto begin = wide.begin() + token * shape.heads * shape.head_dim;
      EXPECT_EQ(Run(On(three_), shape, cache, queries, visible, token, token + 1, logits),
                std::vector<float>(begin, begin + shape.heads * shape.head_dim));
    }
    const std::vector<float> none(4, -std::numeric_limits<float>::infinity());
    const auto without = Run(On(one_), shape, cache, queries, visible, 0, 40, none);
    EXPECT_EQ(without, Run(On(one_), shape, cache, queries, visible, 0, 40));
  }
}

// Every head has its slope and every token its place, alone, in company, and whoever adds up. The
// slopes are small, so that far tiles count.
TEST_P(AttentionTest, AlibiBiasesByThePlaceOfATokenAndItsHead) {
  constexpr int64_t kKeys = kStretchTokens + 300, kTokens = 40;
  for (const AttentionShape& shape : {MakeShape(4, 2, 24), MakeShape(5, 1, 16)}) {
    for (const DType dtype : kFloatTypes) {
      Cache cache(shape, dtype, kKeys, 18);
      cache.WriteRandom(0, kKeys);
      const Queries queries(shape, kTokens, 19);
      Biased biased;
      for (int64_t head = 0; head < shape.heads; ++head) {
        biased.alibi.slopes.push_back(0.01f / static_cast<float>(1 + 3 * head));
      }
      for (int64_t token = 0; token < kTokens; ++token) {
        const int64_t end = kKeys - kTokens + token + 1;
        biased.visible.push_back({token % 2 * 500, end});
        biased.places.push_back({.query = end + token, .shift = token % 3});
      }
      biased.visible[7] = {50, 50};
      const auto wide = RunBiased(On(three_), shape, cache, queries, biased, 0, kTokens);
      ExpectSoftmax(shape, cache, queries, biased.visible, wide, {}, &biased);
      ASSERT_EQ(RunBiased(On(one_), shape, cache, queries, biased, 0, kTokens), wide);
      const int64_t cols = shape.heads * shape.head_dim;
      for (const int64_t token : {0, 1, 7, 39}) {
        ASSERT_EQ(
            RunBiased(On(three_), shape, cache, queries, biased, token, token + 1),
            std::vector<float>(wide.begin() + token * cols, wide.begin() + (token + 1) * cols));
      }
      biased.alibi.slopes.clear();
      EXPECT_EQ(RunBiased(On(one_), shape, cache, queries, biased, 0, kTokens),
                Run(On(one_), shape, cache, queries, biased.visible, 0, kTokens));
    }
  }
}

// What stretches and sources rest on: to the bit where they are cut, else within rounding.
TEST_P(AttentionTest, AnyPartitionOfTheKeysMergesToTheSame) {
  constexpr int64_t kTokens = 3;
  constexpr int64_t kKeys = 3 * kStretchTokens + 100;
  const AttentionShape shape = MakeShape(4, 2, 16);
  for (const DType dtype : kFloatTypes) {
    Cache cache(shape, dtype, kKeys, 5);
    cache.WriteRandom(0, kKeys);
    const Queries queries(shape, kTokens, 6);
    const GappedMatrix q = queries.HeadMajor(0, kTokens);
    std::vector<KvRange> visible;
    for (int64_t token = 0; token < kTokens; ++token) {
      visible.push_back({3 * token, kKeys - kTokens + token + 1});
    }
    const auto whole = Run(On(one_), shape, cache, queries, visible, 0, kTokens);
    ExpectSoftmax(shape, cache, queries, visible, whole);

    const auto partitioned = [&](std::vector<int64_t> cuts) {
      cuts.insert(cuts.begin(), 0);
      cuts.push_back(kKeys);
      std::vector<std::vector<KvRange>> parts;
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        parts.emplace_back();
        for (const KvRange& range : visible) {
          parts.back().push_back(
              {std::max(range.begin, cuts[i]), std::min(range.end, cuts[i + 1])});
        }
      }
      std::vector<AttentionSource> sources;
      for (const auto& part : parts) {
        sources.push_back({.kv = cache.View(), .q = q.view(), .visible = part});
      }
      return Run(On(three_), shape, sources, kTokens);
    };

    for (const auto& stretches :
         {std::vector<int64_t>{1}, {1, 2}, {1, 2, 3}, {3}, {2}, {1, 1, 2}}) {
      std::vector<int64_t> cuts;
      for (const int64_t stretch : stretches) cuts.push_back(stretch * kStretchTokens);
      EXPECT_EQ(partitioned(cuts), whole) << "cut at stretches " << fmt::format("{}", cuts[0]);
    }
    RandomFloats random(7);
    for (int round = 0; round < 4; ++round) {
      std::vector<int64_t> cuts(static_cast<size_t>(random.Integer(1, 6)));
      for (int64_t& cut : cuts) cut = random.Integer(0, kKeys);
      std::sort(cuts.begin(), cuts.end());
      ExpectSoftmax(shape, cache, queries, visible, partitioned(cuts));
    }
  }
}

// Many rows take another path through the code than one row over a long context.
TEST_P(AttentionTest, ATokenDoesNotDependOnItsCompany) {
  constexpr int64_t kTokens = 100;
  for (const AttentionShape& shape : {MakeShape(4, 2, 16), MakeShape(5, 1, 24)}) {
    for (const DType dtype : kFloatTypes) {
      for (const int64_t context : {int64_t{130}, 2 * kStretchTokens + 77}) {
        Cache cache(shape, dtype, context, 8);
        cache.WriteRandom(0, context);
        const Queries queries(shape, kTokens, 9);
        std::vector<KvRange> visible;
        for (int64_t token = 0; token < kTokens; ++token) {
          visible.push_back({token % 3 == 0 ? token : 0, context - kTokens + token + 1});
        }
        const auto all = Run(On(three_), shape, cache, queries, visible, 0, kTokens);
        ASSERT_EQ(Run(On(one_), shape, cache, queries, visible, 0, kTokens), all);
        const int64_t cols = shape.heads * shape.head_dim;
        for (const int64_t tokens : {1, 2, 12, 33}) {
          for (int64_t begin = 0; begin + tokens <= kTokens; begin += 29) {
            ASSERT_EQ(Run(On(three_), shape, cache, queries, visible, begin, begin + tokens),
                      std::vector<float>(all.begin() + begin * cols,
                                         all.begin() + (begin + tokens) * cols))
                << tokens << " tokens from " << begin << " of a context of " << context;
          }
        }
      }
    }
  }
}

TEST_P(AttentionTest, StopsWhenCancelledOrUnsupported) {
  AttentionShape shape = MakeShape(2, 2, 8);
  Cache cache(shape, DType::kF32, 2 * kStretchTokens, 10);
  const Queries queries(shape, 64, 11);
  const std::vector<KvRange> visible(64, {0, 2 * kStretchTokens});
  const auto kind = [&](const CancelToken* cancel, DType dtype, int64_t tokens) {
    const GappedMatrix q = queries.HeadMajor(0, tokens);
    AttentionSource source{.kv = cache.View(), .q = q.view(), .visible = visible};
    source.kv.dtype = dtype;
    try {
      Run(On(three_, cancel), shape, {&source, 1}, tokens);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kIo;
  };
  CancelToken cancel;
  cancel.Cancel();
  for (const int64_t tokens : {1, 64}) {
    EXPECT_EQ(kind(&cancel, DType::kF32, tokens), ErrorKind::kCancelled);
    EXPECT_EQ(kind(nullptr, DType::kI64, tokens), ErrorKind::kUnsupported);
  }
  shape.int8_products = true;
  EXPECT_EQ(kind(nullptr, DType::kF32, 64), ErrorKind::kUnsupported);
}

TEST_P(AttentionTest, ACancelledBlockOfRowsStopsAtTheNextStretch) {
  static CancelToken cancel;  // a kernel is a plain function
  static int64_t tiles;
  cancel.Reset();
  tiles = 0;
  kernels::KernelTable cancelling = table();
  cancelling.attend_tile_f32 = [](const kernels::AttendTileArgs&) noexcept {
    ++tiles;
    cancel.Cancel();
  };
  const AttentionShape shape = MakeShape(1, 1, 8);
  const Cache cache(shape, DType::kF32, kTileTokens, 12);
  const Queries queries(shape, 65, 13);
  const std::vector<KvRange> visible(65, {0, 3 * kStretchTokens});
  const Exec exec{.pool = one_, .kernels = cancelling, .workspace = workspace_, .cancel = &cancel};
  EXPECT_THROW(Run(exec, shape, cache, queries, visible, 0, 65), Error);
  EXPECT_EQ(tiles, kStretchTiles);
}

// As many rows as the cores share, over so long a context that their states would not fit.
TEST_P(AttentionTest, ScratchMemoryIsBounded) {
  constexpr int64_t kTokens = 64, kContext = 1 << 20;
  kernels::KernelTable idle = table();
  idle.attend_tile_f32 = [](const kernels::AttendTileArgs&) noexcept {};
  const AttentionShape shape = MakeShape(4, 4, 128);
  const Cache cache(shape, DType::kF32, kTileTokens, 14);
  const Queries queries(shape, kTokens, 15);
  const std::vector<KvRange> visible(kTokens, {0, kContext});
  Workspace workspace;
  const Exec exec{.pool = three_, .kernels = idle, .workspace = workspace};
  Run(exec, shape, cache, queries, visible, 0, kTokens);
  EXPECT_LE(workspace.capacity_bytes(), int64_t{128} << 20);
}

GODWIT_FOR_EVERY_ISA(AttentionTest);

}  // namespace
}  // namespace godwit::ops
