#include "ops/attention.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "ops/attention_state.h"
#include "ops/attention_test_support.h"
#include "ops/test_support.h"

namespace godwit::ops::attention_test {
namespace {

class AttentionTest : public OpsTest {
 protected:
  // Rows [begin, end) of the queries.
  struct Slice {
    const TextRows* text;
    int64_t begin, end;
  };

  // Runs all slices in one call, each text's rows after those of the text before.
  static std::vector<float> Run(const Exec& exec, const AttentionShape& shape,
                                const std::vector<Slice>& slices,
                                std::span<const float> sink_logits = {}, const Alibi& alibi = {}) {
    std::vector<GappedMatrix> queries;
    std::vector<std::vector<std::span<const TilePart>>> parts(slices.size());
    std::vector<AttentionSource> sources;
    std::vector<AttentionRows> texts;
    int64_t rows = 0;
    for (size_t i = 0; i < slices.size(); ++i) {
      const auto& [text, begin, end] = slices[i];
      queries.push_back(text->queries->HeadMajor(begin, end));
      parts[i].assign(text->parts.begin(), text->parts.end());
      sources.push_back({.kv = text->cache->View(),
                         .q = queries.back().view(),
                         .visible = text->visible,
                         .parts = parts[i],
                         .query_place = text->query_place,
                         .keys_move = text->keys_move});
      texts.push_back({.first_row = rows, .rows = end - begin, .position = text->position + begin});
      rows += end - begin;
    }
    for (size_t i = 0; i < slices.size(); ++i) texts[i].sources = {&sources[i], 1};
    return Run(exec, shape, texts, rows, sink_logits, alibi);
  }

  static std::vector<float> Run(const Exec& exec, const AttentionShape& shape,
                                std::span<const AttentionRows> texts, int64_t rows,
                                std::span<const float> sink_logits = {}, const Alibi& alibi = {}) {
    GappedMatrix out(rows, shape.heads * shape.value_dim());
    Attention(exec, shape, alibi, texts, sink_logits, out.view());
    EXPECT_TRUE(out.GapsIntact());
    return out.Values();
  }

  static std::vector<float> Run(const Exec& exec, const AttentionShape& shape, const TextRows& text,
                                int64_t begin, int64_t end, std::span<const float> sink_logits = {},
                                const Alibi& alibi = {}) {
    return Run(exec, shape, {{&text, begin, end}}, sink_logits, alibi);
  }

  static std::vector<float> RowsOf(const AttentionShape& shape, const std::vector<float>& out,
                                   int64_t begin, int64_t end) {
    const int64_t cols = shape.heads * shape.head_dim;
    return {out.begin() + begin * cols, out.begin() + end * cols};
  }

  // Expects the softmax over the keys, in double. The tolerance covers the float scores, whose
  // errors the exponential makes relative ones, and the chains of additions in tiles and stretches.
  static void ExpectSoftmax(const AttentionShape& shape, const TextRows& text, int64_t tokens,
                            const std::vector<float>& out, std::span<const float> sink_logits = {},
                            const Alibi& alibi = {}) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t kv_head = head * shape.kv_heads / shape.heads;
      const auto keys = text.cache->Keys(kv_head, text.position + tokens);
      const auto values = text.cache->Values(kv_head, text.position + tokens);
      for (int64_t token = 0; token < tokens; ++token) {
        const int64_t p = text.position + token;
        const KvRange range = text.visible.At(p);
        std::vector<double> query;
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          query.push_back(text.cache->Query(text.queries->At(token, head, d)));
        }
        double size = 0;
        double sum = sink_logits.empty() ? 0 : std::exp(double{sink_logits[head]});
        std::vector<double> expected(query.size());
        for (int64_t k = range.begin; k < range.end; ++k) {
          if (!text.Sees(p, kv_head, k)) continue;
          const auto first = static_cast<size_t>(k * shape.head_dim);
          double score = 0, magnitude = 0;
          for (size_t d = 0; d < query.size(); ++d) {
            const double product = query[d] * keys[first + d];
            score += product;
            magnitude += std::fabs(product);
          }
          const double bias = BiasOf(text, alibi, p, head, k);
          size = std::max(size, magnitude * shape.scale + std::fabs(bias));
          const double weight = std::exp(score * shape.scale + bias);
          sum += weight;
          for (size_t d = 0; d < query.size(); ++d) expected[d] += weight * values[first + d];
        }
        const double tolerance =
            kEpsilon * (4 * static_cast<double>(shape.head_dim + 4) * size + 256) +
            2 * text.cache->rounding();
        const float* got = &out[(token * shape.heads + head) * shape.head_dim];
        for (const double x : expected) {
          ASSERT_NEAR(*got++, sum == 0 ? 0 : x / sum, tolerance)
              << "token " << token << " head " << head;
        }
      }
    }
  }

  static double BiasOf(const TextRows& text, const Alibi& alibi, int64_t p, int64_t head,
                       int64_t k) {
    if (alibi.slopes.empty()) return 0;
    const int64_t query = text.query_place.value_or(p);
    const int64_t key = text.keys_move ? k + query - p : k;
    return double{alibi.slopes[head]} * static_cast<double>(key - query);
  }
};

TEST_P(AttentionTest, IsASoftmaxOverWhatATokenSees) {
  constexpr int64_t kPosition = 284;
  constexpr Visible kVisible[] = {{.begin = 37},
                                  {.begin = 64, .end = 128},
                                  {.begin = 37, .end = 38},
                                  {.begin = 37, .window = 1},
                                  {.begin = 127, .end = 129},
                                  {.begin = 37, .window = 130},
                                  {.begin = 63, .end = 257, .window = 100},
                                  {.begin = 37, .block = 96},
                                  {.begin = 37, .window = 3, .block = 287},
                                  {.begin = 37, .block = 287, .overlap = 70},
                                  {.begin = 37, .from = 285, .until = 288}};
  for (const AttentionShape& shape :
       {MakeShape(1, 1, 8), MakeShape(2, 2, 9), MakeShape(4, 2, 16), MakeShape(6, 2, 20),
        MakeShape(3, 3, 24), MakeShape(8, 1, 33), MakeShape(71, 1, 8), MakeShape(5, 5, 63),
        MakeShape(4, 4, 64), MakeShape(2, 1, 100), MakeShape(2, 2, 127), MakeShape(2, 2, 128)}) {
    for (const DType dtype : kFloatTypes) {
      // Keys outside [37, 290) are NaN and may not show.
      Cache cache(shape, dtype, 320, 1);
      cache.WriteRandom(37, 290);
      const Queries queries(shape, 6, 2);
      for (const Visible& visible : kVisible) {
        const TextRows text{&cache, &queries, kPosition, visible};
        SCOPED_TRACE(fmt::format("{} heads, {} KV heads, {} dimensions, {}", shape.heads,
                                 shape.kv_heads, shape.head_dim, Name(dtype)));
        const auto out = Run(On(three_), shape, text, 0, 6);
        ExpectSoftmax(shape, text, 6, out);
        for (int64_t token = 0; token < 6; ++token) {
          ASSERT_EQ(Run(On(one_), shape, text, token, token + 1),
                    RowsOf(shape, out, token, token + 1));
        }
      }
    }
  }
}

// Values inside keys give the bits of separate values.
TEST_P(AttentionTest, ValuesInKeysAreThoseBesideThem) {
  constexpr int64_t kTokens = 9, kPosition = 1100;
  for (const auto& [heads, dim, first] :
       {std::array<int64_t, 3>{16, 40, 8}, {3, 14, 4}, {70, 20, 4}, {1, 72, 64}, {2, 17, 0}}) {
    const AttentionShape beside = MakeShape(heads, 1, dim);
    AttentionShape in_keys = beside;
    in_keys.values_from = first;
    for (const DType dtype : kFloatTypes) {
      Cache cache(beside, dtype, kPosition + kTokens, 3);  // unwritten memory is NaN
      cache.WriteRandom(30, kPosition + kTokens);
      cache.CopyValuesOfKeys(30, kPosition + kTokens, first);
      const Queries queries(beside, kTokens, 4);
      const TextRows text{&cache, &queries, kPosition, {.begin = 30}};
      for (const int64_t rows : {int64_t{1}, kTokens}) {
        const auto expected = Run(On(three_), beside, text, kTokens - rows, kTokens);
        const auto got = Run(On(three_), in_keys, text, kTokens - rows, kTokens);
        const int64_t width = dim - first;
        for (int64_t i = 0; i < std::ssize(got); ++i) {
          ASSERT_EQ(got[i], expected[i / width * dim + i % width])
              << Name(dtype) << ", " << heads << " heads of " << dim << ", " << rows << " rows";
        }
      }
    }
  }
}

TEST_P(AttentionTest, TokensThatSeeNothingGetZeros) {
  constexpr int64_t kPosition = 2 * kStretchTokens - 50;
  const AttentionShape shape = MakeShape(4, 2, 20);
  Cache cache(shape, DType::kBF16, 2 * kStretchTokens, 3);
  cache.WriteRandom(0, 2 * kStretchTokens);
  const Queries queries(shape, 50, 4);
  const std::vector<float> zeros(80, 0.0f);
  const TextRows some{&cache, &queries, kPosition, {.from = kPosition + 2, .until = kPosition + 9}};
  const TextRows late{&cache, &queries, kPosition, {.begin = kPosition + 3}};
  for (const int64_t tokens : {10, 50}) {  // few rows, many rows
    const auto out = Run(On(three_), shape, some, 0, tokens);
    for (int64_t token = 0; token < tokens; ++token) {
      EXPECT_EQ(RowsOf(shape, out, token, token + 1) == zeros, token < 2 || token >= 9) << token;
    }
    const auto later = Run(On(three_), shape, late, 0, tokens);
    for (int64_t token = 0; token < tokens; ++token) {
      EXPECT_EQ(RowsOf(shape, later, token, token + 1) == zeros, token < 3) << token;
    }
  }
  EXPECT_EQ(Run(On(one_), shape, some, 0, 1), zeros);
  const AttentionRows nothing{.first_row = 0, .rows = 1, .position = 7, .sources = {}};
  EXPECT_EQ(Run(On(one_), shape, {&nothing, 1}, 1), zeros);
}

TEST_P(AttentionTest, RowsOfNoTextAreLeftAlone) {
  const AttentionShape shape = MakeShape(2, 2, 8);
  Cache cache(shape, DType::kF32, 64, 3);
  cache.WriteRandom(0, 64);
  const Queries queries(shape, 2, 4);
  const TextRows text{&cache, &queries, 60};
  const GappedMatrix q = queries.HeadMajor(0, 2);
  const AttentionSource source{.kv = cache.View(), .q = q.view()};
  const AttentionRows rows{.first_row = 2, .rows = 2, .position = 60, .sources = {&source, 1}};
  GappedMatrix out(5, 16);
  for (int64_t row = 0; row < 5; ++row) std::ranges::fill(out.view().RowSpan(row), 5.0f);
  Attention(On(one_), shape, {}, {&rows, 1}, {}, out.view());
  const std::vector<float> fives(16, 5.0f);
  for (const int64_t row : {0, 1, 4}) EXPECT_EQ(out.Row(row), fives);
  EXPECT_EQ(out.Row(2), RowsOf(shape, Run(On(one_), shape, text, 0, 2), 0, 1));
  Attention(On(one_), shape, {}, {}, {}, out.view());
  EXPECT_EQ(out.Row(4), fives);
}

TEST_P(AttentionTest, ASinkLogitIsOneMoreTermOfTheDenominator) {
  constexpr int64_t kKeys = 2 * kStretchTokens + 100, kPosition = kKeys - 40;
  const AttentionShape shape = MakeShape(4, 2, 24);
  const std::vector<float> logits = {0, -3, 2.5, 60};
  for (const DType dtype : kFloatTypes) {
    Cache cache(shape, dtype, kKeys, 16);
    cache.WriteRandom(0, kKeys);
    const Queries queries(shape, 40, 17);
    for (const Visible& visible : {Visible{}, Visible{.window = 3}, Visible{.until = kPosition}}) {
      const TextRows text{&cache, &queries, kPosition, visible};
      const auto wide = Run(On(three_), shape, text, 0, 40, logits);
      ExpectSoftmax(shape, text, 40, wide, logits);
      // A token alone, with stretches shared among cores, has the same bits.
      for (const int64_t token : {0, 1, 2, 39}) {
        EXPECT_EQ(Run(On(three_), shape, text, token, token + 1, logits),
                  RowsOf(shape, wide, token, token + 1));
      }
      const std::vector<float> none(4, -std::numeric_limits<float>::infinity());
      EXPECT_EQ(Run(On(one_), shape, text, 0, 40, none), Run(On(one_), shape, text, 0, 40));
    }
  }
}

// Every head has its slope and every token its place: alone, in company, and however keys are
// split. Slopes are small, so that far tiles count.
TEST_P(AttentionTest, AlibiBiasesByThePlaceOfATokenAndItsHead) {
  constexpr int64_t kKeys = kStretchTokens + 300, kTokens = 40;
  for (const AttentionShape& shape : {MakeShape(4, 2, 24), MakeShape(5, 1, 16)}) {
    for (const DType dtype : kFloatTypes) {
      Cache cache(shape, dtype, kKeys, 18);
      cache.WriteRandom(0, kKeys);
      const Queries queries(shape, kTokens, 19);
      Alibi alibi;
      for (int64_t head = 0; head < shape.heads; ++head) {
        alibi.slopes.push_back(0.01f / static_cast<float>(1 + 3 * head));
      }
      TextRows text{&cache, &queries, kKeys - kTokens, {.begin = 500}};
      for (const auto& [place, keys_move] :
           {std::pair{std::optional<int64_t>(), false}, {kKeys - 100, false}, {700, true}}) {
        text.query_place = place;
        text.keys_move = keys_move;
        const auto wide = Run(On(three_), shape, text, 0, kTokens, {}, alibi);
        ExpectSoftmax(shape, text, kTokens, wide, {}, alibi);
        ASSERT_EQ(Run(On(one_), shape, text, 0, kTokens, {}, alibi), wide);
        for (const int64_t token : {0, 1, 7, 39}) {
          ASSERT_EQ(Run(On(three_), shape, text, token, token + 1, {}, alibi),
                    RowsOf(shape, wide, token, token + 1));
        }
      }
    }
  }
}

// Stretches and sources rest on this law: equal bits where keys are cut at stretches, else equal
// within rounding.
TEST_P(AttentionTest, AnyPartitionOfTheKeysMergesToTheSame) {
  constexpr int64_t kTokens = 3;
  constexpr int64_t kKeys = 3 * kStretchTokens + 100;
  const AttentionShape shape = MakeShape(4, 2, 16);
  for (const DType dtype : kFloatTypes) {
    Cache cache(shape, dtype, kKeys, 5);
    cache.WriteRandom(0, kKeys);
    const Queries queries(shape, kTokens, 6);
    const GappedMatrix q = queries.HeadMajor(0, kTokens);
    const TextRows text{&cache, &queries, kKeys - kTokens, {.begin = 3, .window = kKeys - 5}};
    const auto whole = Run(On(one_), shape, text, 0, kTokens);
    ExpectSoftmax(shape, text, kTokens, whole);

    const auto partitioned = [&](std::vector<int64_t> cuts) {
      cuts.insert(cuts.begin(), text.visible.begin);
      cuts.push_back(kKeys);
      std::vector<AttentionSource> sources;
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        sources.push_back({.kv = cache.View(), .q = q.view(), .visible = text.visible});
        sources.back().visible.begin = cuts[i];
        sources.back().visible.end = cuts[i + 1];
      }
      const AttentionRows rows{
          .first_row = 0, .rows = kTokens, .position = text.position, .sources = sources};
      return Run(On(three_), shape, {&rows, 1}, kTokens);
    };

    for (const auto& stretches :
         {std::vector<int64_t>{1}, {1, 2}, {1, 2, 3}, {3}, {2}, {1, 1, 2}}) {
      std::vector<int64_t> cuts;
      for (const int64_t stretch : stretches) cuts.push_back(stretch * kStretchTokens);
      EXPECT_EQ(partitioned(cuts), whole) << "cut at stretches " << fmt::format("{}", cuts[0]);
    }
    RandomFloats random(7);
    for (int round = 0; round < 4; ++round) {
      std::vector<int64_t> cuts(random.Integer(1, 6));
      for (int64_t& cut : cuts) cut = random.Integer(3, kKeys);
      std::sort(cuts.begin(), cuts.end());
      ExpectSoftmax(shape, text, kTokens, partitioned(cuts));
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
        for (const int64_t window : {INT64_MAX, context - 20}) {
          const TextRows text{&cache, &queries, context - kTokens, {.window = window}};
          const auto all = Run(On(three_), shape, text, 0, kTokens);
          ASSERT_EQ(Run(On(one_), shape, text, 0, kTokens), all);
          for (const int64_t tokens : {1, 2, 12, 33}) {
            for (int64_t begin = 0; begin + tokens <= kTokens; begin += 29) {
              ASSERT_EQ(Run(On(three_), shape, text, begin, begin + tokens),
                        RowsOf(shape, all, begin, begin + tokens))
                  << tokens << " tokens from " << begin << " of a context of " << context;
            }
          }
        }
      }
    }
  }
}

// Few and many rows, short and long texts, of every type, in any order: each text keeps its own
// bits.
TEST_P(AttentionTest, ATextDoesNotDependOnTheOthersOfItsCall) {
  const AttentionShape shape = MakeShape(6, 2, 20);
  const std::vector<float> sink_logits = {0, -1, 2, 1, -3, 0.5};
  std::vector<Cache> caches;
  std::vector<Queries> queries;
  constexpr int64_t kLengths[] = {1, 40, 64, 300, 2 * kStretchTokens + 5, 3 * kStretchTokens};
  for (const int64_t length : kLengths) {
    const auto seed = static_cast<uint32_t>(length);
    caches.emplace_back(shape, kFloatTypes[caches.size() % 3], length, seed);
    caches.back().WriteRandom(0, length);
    queries.emplace_back(shape, length, seed + 1);
  }
  std::vector<TextRows> texts;
  for (size_t i = 0; i < caches.size(); ++i) texts.push_back({&caches[i], &queries[i], 0});
  texts[3].visible.window = 70;
  RandomFloats random(20);
  for (int round = 0; round < 12; ++round) {
    std::vector<AttentionTest::Slice> slices;
    for (int64_t i = random.Integer(1, 8); i > 0; --i) {
      const TextRows& text = texts[random.Integer(0, 5)];
      const int64_t length = kLengths[&text - texts.data()];
      const int64_t rows = std::min(length, random.Integer(0, 2) > 0 ? 1 : random.Integer(2, 90));
      slices.push_back({&text, length - rows, length});
    }
    const auto together = Run(On(three_), shape, slices, sink_logits);
    ASSERT_EQ(Run(On(one_), shape, slices, sink_logits), together);
    int64_t row = 0;
    for (const Slice& slice : slices) {
      const int64_t rows = slice.end - slice.begin;
      ASSERT_EQ(Run(On(three_), shape, {slice}, sink_logits),
                RowsOf(shape, together, row, row + rows))
          << rows << " of " << slice.end << " rows among " << slices.size() << " texts";
      row += rows;
    }
  }
}

std::vector<TilePart> WholeTiles(int64_t tokens) {
  std::vector<TilePart> parts;
  for (int64_t tile = 0; tile * kTileTokens < tokens; ++tile)
    parts.push_back({tile, 0, kTileTokens});
  return parts;
}

TEST_P(AttentionTest, TheListOfAllTilesIsAllOfThem) {
  const AttentionShape shape = MakeShape(4, 2, 16);
  for (const int64_t context : {int64_t{100}, 2 * kStretchTokens + 77}) {
    Cache cache(shape, DType::kBF16, context, 21);
    cache.WriteRandom(0, context);
    const Queries queries(shape, 70, 22);
    for (const int64_t window : {INT64_MAX, int64_t{90}}) {
      const TextRows dense{&cache, &queries, context - 70, {.begin = 2, .window = window}};
      TextRows listed = dense;
      listed.parts.assign(2, WholeTiles(context));
      for (const int64_t rows : {1, 5, 70}) {
        EXPECT_EQ(Run(On(three_), shape, listed, 0, rows), Run(On(three_), shape, dense, 0, rows));
      }
    }
  }
}

// Each KV head has its own list: some tiles, parts of tiles, some tokens of these, or none.
TEST_P(AttentionTest, ListsSayWhatEveryHeadLooksAt) {
  constexpr int64_t kContext = 3 * kStretchTokens, kTokens = 40;
  RandomFloats random(23);
  for (const AttentionShape& shape : {MakeShape(6, 3, 16), MakeShape(5, 5, 20)}) {
    for (const DType dtype : kFloatTypes) {
      Cache cache(shape, dtype, kContext, 24);
      cache.WriteRandom(0, kContext);
      const Queries queries(shape, kTokens, 25);
      for (const int64_t percent : {3, 30, 90}) {
        TextRows text{&cache, &queries, kContext - kTokens, {}};
        for (int64_t head = 0; head < shape.kv_heads; ++head) {
          auto& parts = text.parts.emplace_back();
          for (const TilePart& tile : WholeTiles(kContext)) {
            if (head == 1 || random.Integer(0, 99) >= percent) continue;
            const auto begin = static_cast<int32_t>(random.Integer(0, 1) * random.Integer(0, 63));
            const auto end = static_cast<int32_t>(random.Integer(begin + 1, kTileTokens));
            parts.push_back({tile.tile, begin, end});
            if (random.Integer(0, 1) == 0) continue;
            parts.back().hidden = static_cast<uint64_t>(random.Integer(0, INT32_MAX)) * 0x100000001;
          }
        }
        const auto wide = Run(On(three_), shape, text, 0, kTokens);
        ExpectSoftmax(shape, text, kTokens, wide);
        ASSERT_EQ(Run(On(one_), shape, text, 0, kTokens), wide);
        for (const int64_t token : {0, 20, 39}) {  // few rows
          ASSERT_EQ(Run(On(three_), shape, text, token, token + 1),
                    RowsOf(shape, wide, token, token + 1));
        }
      }
    }
  }
}

// Sinks and a window see a streaming cache like this: the tiles between have no pages.
TEST_P(AttentionTest, TilesThatAreGoneAreNotLookedFor) {
  constexpr int64_t kContext = 3 * kStretchTokens, kTokens = 5;
  const AttentionShape shape = MakeShape(4, 2, 16);
  Cache cache(shape, DType::kF16, kContext, 26);
  cache.WriteRandom(0, kContext);
  const Queries queries(shape, kTokens, 27);
  const GappedMatrix q = queries.HeadMajor(0, kTokens);
  const auto run = [&] {
    const AttentionSource sources[] = {
        {.kv = cache.View(), .q = q.view(), .visible = {.end = 70}},
        {.kv = cache.View(), .q = q.view(), .visible = {.window = 90}}};
    const AttentionRows rows{
        .first_row = 0, .rows = kTokens, .position = kContext - kTokens, .sources = sources};
    return Run(On(three_), shape, {&rows, 1}, kTokens);
  };
  const auto expected = run();
  cache.Drop(2, 3 * kStretchTiles - 2);
  EXPECT_EQ(run(), expected);
}

// Keys arrive in parts of whole stretches, for few rows and for many.
TEST_P(AttentionTest, SumsGoOnWhereOthersEnded) {
  constexpr int64_t kContext = 5 * kStretchTokens;
  const AttentionShape shape = MakeShape(4, 2, 20);
  Cache cache(shape, DType::kF32, kContext, 28);
  cache.WriteRandom(0, kContext);
  const Queries queries(shape, 50, 29);
  const std::vector<float> sinks = {1, 2, -1, 0};
  for (const int64_t tokens : {3, 50}) {
    const GappedMatrix q = queries.HeadMajor(0, tokens);
    const AttentionSource all{.kv = cache.View(), .q = q.view()};
    AttentionRows rows{
        .first_row = 0, .rows = tokens, .position = kContext - tokens, .sources = {&all, 1}};
    const auto expected = Run(On(three_), shape, {&rows, 1}, tokens, sinks);
    std::vector<float> states(tokens * shape.heads * StateStride(shape.head_dim));
    ClearStates(shape.head_dim, tokens * shape.heads, states.data());
    rows.before = states.data();
    std::vector<float> out;
    for (const int64_t end : {1, 3, 5}) {
      AttentionSource part = all;
      part.visible = {.begin = end == 1 ? 0 : (end - 2) * kStretchTokens,
                      .end = end * kStretchTokens};
      rows.sources = {&part, 1};
      rows.states = end < 5 ? states.data() : nullptr;
      out = Run(On(three_), shape, {&rows, 1}, tokens, sinks);
    }
    EXPECT_EQ(out, expected) << tokens;
  }
}

// Each key counts as its head's bias says. An infinite bias hides one key, a tile, or all.
TEST_P(AttentionTest, BiasesCountAndHideKeys) {
  constexpr int64_t kKeys = 3 * kTileTokens + 7, kPosition = 1000;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const AttentionShape shape = MakeShape(4, 2, 20);
  const float count = std::log(64.0f);
  const std::vector<float> sinks = {2, 3, 4, 5};
  const std::vector<float> for_one = {2 - count, 3 - count, 4 - count, 5 - count};
  for (const DType dtype : kFloatTypes) {
    Cache cache(shape, dtype, kKeys, 30);
    cache.WriteRandom(0, kKeys);
    const Queries queries(shape, 1, 31);
    const GappedMatrix q = queries.HeadMajor(0, 1);
    for (const int64_t rows : {1, 2, 4}) {
      GappedMatrix biases(rows, 4 * kTileTokens);
      for (int64_t row = 0; row < rows; ++row) {
        float* const bias = biases.view().Row(row);
        std::fill_n(bias, 4 * kTileTokens, count);
        std::fill(bias + 10 + row, bias + 20, -kInfinity);
        std::fill(bias + kTileTokens, bias + (row == 3 ? 4 : 2) * kTileTokens, -kInfinity);
        if (row == 3) std::fill_n(bias, kTileTokens, -kInfinity);
      }
      TextRows text{&cache, &queries, kPosition, {.begin = 3, .end = kKeys}};
      const AttentionSource source{
          .kv = cache.View(), .q = q.view(), .visible = text.visible, .biases = biases.view()};
      const AttentionRows one{
          .first_row = 0, .rows = 1, .position = kPosition, .sources = {&source, 1}};
      const auto out = Run(On(three_), shape, {&one, 1}, 1, sinks);
      for (int64_t head = 0; head < shape.heads; ++head) {
        const auto row = static_cast<int32_t>(head * rows / shape.heads);
        text.parts.assign(2, {{0, 0, 10 + row}, {0, 20, 64}, {2, 0, 64}, {3, 0, 64}});
        if (row == 3) text.parts.assign(2, {{0, 0, 0}});
        const auto alone = Run(On(one_), shape, text, 0, 1, for_one);
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          const auto at = static_cast<size_t>(head * shape.head_dim + d);
          ASSERT_NEAR(out[at], alone[at], 1e-5 + 2 * cache.rounding()) << "head " << head;
        }
      }
    }
  }
}

TEST_P(AttentionTest, StopsWhenCancelledOrUnsupported) {
  const AttentionShape shape = MakeShape(2, 2, 8);
  Cache cache(shape, DType::kF32, 2 * kStretchTokens, 10);
  const Queries queries(shape, 64, 11);
  const auto kind = [&](const CancelToken* cancel, DType dtype, int64_t tokens,
                        bool int8_products = false) {
    const GappedMatrix q = queries.HeadMajor(0, tokens);
    AttentionSource source{.kv = cache.View(), .q = q.view(), .int8_products = int8_products};
    source.kv.dtype = dtype;
    const AttentionRows rows{.first_row = 0,
                             .rows = tokens,
                             .position = 2 * kStretchTokens - tokens,
                             .sources = {&source, 1}};
    try {
      Run(On(three_, cancel), shape, {&rows, 1}, tokens);
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
    EXPECT_EQ(kind(nullptr, DType::kF32, tokens, true), ErrorKind::kUnsupported);
  }
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
  const Cache cache(shape, DType::kF32, 3 * kStretchTokens, 12);
  const Queries queries(shape, 65, 13);
  const TextRows text{&cache, &queries, 3 * kStretchTokens - 65};
  const Exec exec{.pool = one_, .kernels = cancelling, .workspace = workspace_, .cancel = &cancel};
  EXPECT_THROW(Run(exec, shape, text, 0, 65), Error);
  EXPECT_EQ(tiles, kStretchTiles);
}

// The rows are few enough to share stretches, but the context is so long that their states would
// not fit. One page stands for all.
TEST_P(AttentionTest, ScratchMemoryIsBounded) {
  constexpr int64_t kTokens = 64, kContext = 1 << 20;
  kernels::KernelTable idle = table();
  idle.attend_tile_f32 = [](const kernels::AttendTileArgs&) noexcept {};
  const AttentionShape shape = MakeShape(4, 4, 128);
  const Cache cache(shape, DType::kF32, kTileTokens, 14);
  const Queries queries(shape, kTokens, 15);
  const GappedMatrix q = queries.HeadMajor(0, kTokens);
  AttentionSource source{.kv = cache.View(), .q = q.view()};
  source.kv.page_stride = 0;
  source.kv.slots = kContext / kTileTokens;
  // The text alone, and eight together.
  std::vector<AttentionRows> texts;
  for (int64_t i = 0; i < 8; ++i) {
    texts.push_back({.first_row = i * kTokens,
                     .rows = kTokens,
                     .position = kContext - kTokens,
                     .sources = {&source, 1}});
  }
  for (const size_t n : {size_t{1}, texts.size()}) {
    Workspace workspace;
    const Exec exec{.pool = three_, .kernels = idle, .workspace = workspace};
    Run(exec, shape, std::span(texts).first(n), static_cast<int64_t>(n) * kTokens);
    EXPECT_LE(workspace.capacity_bytes(), (int64_t{512} << 20) + (int64_t{1} << 20)) << n;
  }
}

GODWIT_FOR_EVERY_ISA(AttentionTest);

}  // namespace
}  // namespace godwit::ops::attention_test
