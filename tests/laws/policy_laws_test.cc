// The laws that every attention policy passes (docs/adding-a-policy.md).

#include <gtest/gtest.h>

#include "attention/attention_test_support.h"
#include "attention/core/kv_cost.h"
#include "attention/make_policy.h"
#include "base/error.h"
#include "base/test_folder.h"
#include "kernels/dispatch.h"
#include "kernels/kernel_test_support.h"
#include "tests/pairs.h"

namespace godwit::policy_laws_test {
namespace {

constexpr int64_t kContext = 8192;

// The storage of keys and values, and the way they are multiplied.
struct Arithmetic {
  std::string_view name;
  DType kv_type;
  bool int8_products = false;
};
constexpr Arithmetic kArithmetics[] = {{"F32", DType::kF32},
                                       {"F16", DType::kF16},
                                       {"BF16", DType::kBF16},
                                       {"I8", DType::kI8},
                                       {"I8Products", DType::kI8, true},
                                       {"I8I4Products", DType::kI8I4, true},
                                       {"I4", DType::kI4}};

// The way of reading the context, which ends at kQuestionBegin: as the rest of the text, or on its
// own.
struct Reading {
  std::string_view name;
  std::string_view tight, ample;  // added to the examples of a policy
};
constexpr std::string_view kReadBy = ", read by ";
constexpr Reading kReadings[] = {
    {"", "", ""},
    {"_ReadByWindow", ", read by window:9", ", read by window:4096"},
    {"_ReadByStar", ", read by star:block=16,anchor=5,overlap=3,tail=20",
     ", read by star:block=4096,anchor=4096"}};
constexpr int64_t kQuestionBegin = 101, kAnswerFrom = 160;

void Append(const std::vector<float>& rows, std::vector<float>& to) {
  to.insert(to.end(), rows.begin(), rows.end());
}

using Case = std::tuple<size_t, Arithmetic, Reading, const kernels::Isa*>;

class Laws : public testing::TestWithParam<Case> {
 protected:
  const PolicyKind& kind() const { return AllPolicies()[std::get<0>(GetParam())]; }
  const kernels::KernelTable& table() const { return *std::get<3>(GetParam())->table; }

  // Reads a text on the instruction set of this case.
  std::vector<float> ReadText(TextCache& cache, const TestText& text, int64_t end, int64_t chunk,
                              int threads = 1) const {
    return godwit::ReadText(cache, text, end, chunk, threads, table());
  }

  // spec: as policies spell their names.
  PolicyOptions Options(std::string_view spec, int64_t context = kContext) const {
    const size_t kv = std::min(spec.find(kReadBy), spec.size());
    const size_t prefill = std::min(kv + kReadBy.size(), spec.size());
    return {.spec = std::string(spec.substr(0, kv)),
            .kv_type = std::get<1>(GetParam()).kv_type,
            .int8_products = std::get<1>(GetParam()).int8_products,
            .context = context,
            .prefill = std::string(spec.substr(prefill))};
  }

  std::unique_ptr<TextCache> Make(const AttentionGeometry& geometry, std::string_view spec,
                                  std::shared_ptr<KvPool> pool = nullptr,
                                  int64_t context = kContext) const {
    auto text = NewText(geometry, Options(spec, context), std::move(pool));
    text->SetQuestion(kQuestionBegin, kAnswerFrom);
    return text;
  }

  // Floats of a row of results.
  static int64_t RowSize(const AttentionGeometry& geometry) { return ResultSize(geometry); }
  static std::vector<float> RowsOf(const AttentionGeometry& geometry,
                                   const std::vector<float>& rows, int64_t begin, int64_t end) {
    const int64_t size = RowSize(geometry);
    return {rows.begin() + begin * size, rows.begin() + end * size};
  }

  // Values in keys come last, and have no 4 bits (make_policy_test.cc).
  std::vector<AttentionGeometry> Geometries() const {
    std::vector<AttentionGeometry> all = {
        WithOtherRotary(TestGeometry(4, 2, 16, 16, {0, 0}), /*theta=*/0),
        WithOtherRotary(TestGeometry(3, 3, 24, 24, {0, 7}), /*theta=*/30),
        WithKeyMeans(TestGeometry(5, 1, 8, 8, {0})),
        WithAlibi(TestGeometry(4, 2, 16, 16, {0, 7}), /*in_bf16=*/false),
        WithAlibi(TestGeometry(3, 3, 8, 8, {0, 0}), /*in_bf16=*/true),
        InChunks(
            WithTemperatures(WithOtherRotary(TestGeometry(4, 2, 12, 12, {40, 0}), /*theta=*/0))),
        WithOtherHeads(TestGeometry(4, 2, 16, 16, {7, 0, 5, 0}), /*kv_heads=*/1, /*head_dim=*/24),
        WithReaders(TestGeometry(4, 2, 16, 16, {0, 7, 0}), {1, 1, 2}),
        WithValuesInKeys(TestGeometry(5, 1, 28, 8, {0, 7})),
    };
    if (kernels::HasNarrowValues(std::get<1>(GetParam()).kv_type)) {
      all.pop_back();
    } else if (kind().name == "dense" && std::get<2>(GetParam()).name.empty()) {
      // A model that chooses keys itself serves no other policy (make_policy_test.cc).
      const auto few = WithKeyIndex(WithValuesInKeys(TestGeometry(5, 1, 28, 8, {0, 0, 0, 0})), 40);
      const auto many = WithKeyIndex(WithValuesInKeys(TestGeometry(5, 1, 28, 8, {0})), 70);
      all.insert(all.end() - 1, {few, many});
    }
    return all;
  }
  const std::vector<AttentionGeometry> geometries_ = Geometries();
  static bool HasTwoVectors(std::string_view spec) {
    return spec.find("MEANSTD") != spec.npos || spec.find("group_blocks") != spec.npos;
  }
  // A number that differs between neighbouring cases of one policy and instruction set.
  static int64_t CaseNumber() {
    const auto& [policy, arithmetic, reading, isa] = GetParam();
    return std::ranges::find(kArithmetics, arithmetic.name, &Arithmetic::name) - kArithmetics +
           (std::ranges::find(kReadings, reading.name, &Reading::name) - kReadings);
  }
  // The geometries that a policy serves. Two vectors of a block may not fit beside keys alone
  // (blocks_test.cc), and places in the cache may lie behind the first chunk (sinks_test.cc).
  // Secondary examples take every third geometry; three cases together take them all.
  std::vector<AttentionGeometry> GeometriesOf(std::string_view spec) const {
    std::vector<AttentionGeometry> served = geometries_;
    if ((kind().name == "window" || kind().name == "sinks") &&
        spec.starts_with(kind().ample_example)) {
      std::erase_if(served, [](const AttentionGeometry& geometry) { return geometry.chunked; });
    }
    if (HasTwoVectors(spec) && std::get<1>(GetParam()).kv_type != DType::kF32) served.pop_back();
    const int64_t way = std::find(specs_.begin(), specs_.end(), spec) - specs_.begin();
    if (way < 2) return served;
    std::vector<AttentionGeometry> in_turn;
    for (int64_t i = 0; i < std::ssize(served); ++i) {
      if ((i + way + CaseNumber()) % 3 == 0) in_turn.push_back(served[i]);
    }
    return in_turn;
  }
  const Reading& reading_ = std::get<2>(GetParam());
  std::vector<std::string> Specs() const {
    std::vector<std::string> specs = {fmt::format("{}{}", kind().tight_example, reading_.tight),
                                      fmt::format("{}{}", kind().ample_example, reading_.ample)};
    for (const std::string_view example : kind().other_examples) {
      // Two vectors of a block do not fit beside 4 bits (blocks_test.cc).
      if (HasTwoVectors(example) && kernels::HasNarrowValues(std::get<1>(GetParam()).kv_type))
        continue;
      if (!example.empty()) specs.push_back(fmt::format("{}{}", example, reading_.tight));
    }
    return specs;
  }
  // Whether a policy learns from queries, also of the context. It knows less of a text that was
  // read without queries (blocks_importance_test.cc).
  static bool LearnsFromQueries(std::string_view spec) {
    return spec.find("DYNAMIC") != std::string_view::npos;
  }
  const std::vector<std::string> specs_ = Specs();
  const std::string &tight_ = specs_[0], &ample_ = specs_[1];
};

// A reader of a layer's keys sees what a layer with such keys of its own would see. It does not
// where layers share choices or tokens observe: a reader's are not those of the layer.
TEST_P(Laws, ReadersSeeWhatLayersWouldSee) {
  for (const std::string& spec : specs_) {
    if (LearnsFromQueries(spec) || spec.find("layer_step") != spec.npos) continue;
    for (const AttentionGeometry& geometry : geometries_) {
      if (geometry.readers.empty()) continue;
      const TestText text(geometry, 300, 2);
      EXPECT_EQ(ReadText(*Make(geometry, spec), text, 300, 50),
                ReadText(*Make(WithoutReaders(geometry), spec), text.WithoutReaders(), 300, 50))
          << spec;
    }
  }
}

TEST_P(Laws, AnAmpleBudgetGivesTheDenseResult) {
  for (const AttentionGeometry& geometry : GeometriesOf(ample_)) {
    const TestText text(geometry, 300, 1);
    EXPECT_EQ(ReadText(*Make(geometry, ample_), text, 300, 50),
              ReadText(*Make(geometry, "dense"), text, 300, 50));
  }
}

TEST_P(Laws, ChunksAndThreadsChangeNoBits) {
  for (const std::string& spec : specs_) {
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, 200, 2);
      const auto reference = ReadText(*Make(geometry, spec), text, 200, 1);
      for (const int64_t chunk : {2, 7, 64, 96, 200}) {
        const auto cache = Make(geometry, spec);
        EXPECT_EQ(ReadText(*cache, text, 200, chunk, 2), reference)
            << spec << ", chunks of " << chunk;
        EXPECT_EQ(cache->length(), 200);
      }
    }
  }
}

// A file holds nearly all of the cache. The text is read in chunks, continued, taken back and
// continued by a fork.
TEST_P(Laws, FileChangesNoBits) {
  const TempFolder folder;
  for (const std::string& spec : specs_) {
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, 320, 4);
      const KvLayout layout = LayoutOf(geometry, std::get<1>(GetParam()).kv_type);
      const auto reference = Make(geometry, spec);
      // A text's index and its fork's lie in memory: a page of each layer. Signs, which are the
      // default, take up to two, and blocks below a tile as many as there are.
      const int64_t page_set = layout.BytesFor(1);
      const bool signs = spec.find("representative_type") == spec.npos;
      const bool small = spec.find("block_size") != spec.npos;
      const int64_t index =
          signs || small ? IndexAt(reference->policy(), layout, 320).held_bytes : 0;
      const int64_t most = small ? std::max(index, page_set) : 2 * page_set;
      const auto memory =
          std::make_shared<KvBudget>(2 * page_set + 2 * std::clamp(index, page_set, most));
      const auto file = std::make_shared<KvFile>(folder.path(), 1 << 26, memory);
      const auto cache = Make(geometry, spec, std::make_shared<KvPool>(layout, file));
      EXPECT_EQ(ReadText(*cache, text, 300, 50, 2), ReadText(*reference, text, 300, 50)) << spec;
      const auto fork = cache->Fork(), reference_fork = reference->Fork();
      fork->Truncate(290);
      reference_fork->Truncate(290);
      EXPECT_EQ(ReadText(*fork, text, 310, 1), ReadText(*reference_fork, text, 310, 1)) << spec;
      EXPECT_EQ(ReadText(*cache, text, 320, 1), ReadText(*reference, text, 320, 1)) << spec;
      // Memory for the index of small blocks may hold the text as well.
      if (cache->Stats().dropped.empty() && !small) {
        EXPECT_GT(cache->Stats().file_read_bytes, 0);
      }
    }
  }
}

// One text in a step, three, or eight; some read their prompt while others decode.
TEST_P(Laws, OtherTextsOfAStepChangeNoBits) {
  constexpr int64_t kTokens = 150;
  for (const std::string& spec : specs_) {
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      std::vector<TestText> texts;
      std::vector<std::vector<float>> references;
      for (uint64_t i = 0; i < 8; ++i) {
        texts.emplace_back(geometry, kTokens, 20 + i);
        references.push_back(ReadText(*Make(geometry, spec), texts[i], kTokens, 50));
      }
      for (const size_t batch : {size_t{3}, size_t{8}}) {
        const auto pool =
            std::make_shared<KvPool>(LayoutOf(geometry, std::get<1>(GetParam()).kv_type));
        std::vector<std::unique_ptr<TextCache>> caches;
        for (size_t i = 0; i < batch; ++i) caches.push_back(Make(geometry, spec, pool));
        std::vector<std::vector<float>> results(batch);
        kernels::RandomFloats random(static_cast<uint32_t>(batch));
        StepRunner runner(2, table());
        while (true) {
          std::vector<StepRows> step;
          std::vector<size_t> owners;
          for (size_t i = 0; i < batch; ++i) {
            const int64_t at = caches[i]->length();
            // Even texts have long prompts, odd ones short ones; not all are in every step.
            const int64_t prompt = i % 2 == 0 ? 120 : 10;
            const int64_t chunk = at < prompt ? std::min(prompt - at, random.Integer(1, 60)) : 1;
            if (at == kTokens || (random.Integer(0, 4) == 0 && !step.empty())) continue;
            step.push_back({caches[i].get(), &texts[i], RowRange(at, at + chunk)});
            owners.push_back(i);
          }
          if (step.empty()) break;
          const auto rows = runner.Run(step);
          for (size_t i = 0; i < rows.size(); ++i) Append(rows[i], results[owners[i]]);
        }
        for (size_t i = 0; i < batch; ++i) {
          EXPECT_EQ(results[i], references[i]) << spec << ", text " << i << " of " << batch;
        }
      }
    }
  }
}

TEST_P(Laws, TruncatedTokensLeaveNoTrace) {
  for (const std::string& spec : specs_) {
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, 160, 3);
      const TestText other(geometry, 160, 4);
      const auto reference = ReadText(*Make(geometry, spec), text, 160, 16);
      int64_t allowed = 0;
      for (const int64_t kept : {0, 1, 5, 63, 64, 65, 100, 129}) {
        const auto cache = Make(geometry, spec);
        auto result = ReadText(*cache, text, kept, 16);
        ReadText(*cache, other, 130, 16);
        if (!cache->CanTruncate(kept)) {
          EXPECT_THROW(cache->Truncate(kept), Error);
          EXPECT_EQ(cache->length(), 130);
          continue;
        }
        ++allowed;
        cache->Truncate(kept);
        EXPECT_EQ(cache->length(), kept);
        Append(ReadText(*cache, text, 160, 16), result);
        EXPECT_EQ(result, reference) << spec << " truncated to " << kept;
      }
      EXPECT_FALSE(Make(geometry, spec)->CanTruncate(1));
      EXPECT_FALSE(Make(geometry, spec)->CanTruncate(-1));
      EXPECT_GE(allowed, 1) << "a text can forget its last token";
      if (spec == ample_) {
        EXPECT_EQ(allowed, 8) << "nothing was dropped";
      }
    }
  }
}

// Forks at offsets of a page, at all near its border, also of a text that streams. The fork and the
// text continue as two texts that never met.
TEST_P(Laws, AForkIsATextOfItsOwn) {
  constexpr int64_t kFirst = 60, kLast = kFirst + 66, kMore = 70;
  for (const std::string& spec : specs_) {
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, kLast + kMore, 10), other(geometry, kLast + kMore, 11);
      const auto reference = ReadText(*Make(geometry, spec), text, kLast + kMore, 50);
      const auto pool =
          std::make_shared<KvPool>(LayoutOf(geometry, std::get<1>(GetParam()).kv_type));
      const auto cache = Make(geometry, spec, pool);
      auto result = ReadText(*cache, text, kFirst, 50);
      std::vector<std::unique_ptr<TextCache>> forks;  // they live while the text continues
      for (int64_t length = kFirst; length < kLast; ++length) {
        forks.push_back(cache->Fork());
        if (length % 2 == 0) Append(ReadText(*cache, text, length + 1, 1), result);
        if (length <= kFirst + 8 || length % 5 == 0) {
          const auto alone = Make(geometry, spec);
          ReadText(*alone, text, length, 50);
          ASSERT_EQ(ReadText(*forks.back(), other, length + 5, 2),
                    ReadText(*alone, other, length + 5, 2))
              << spec << ", forked at " << length;
        }
        if (length % 2 == 1) Append(ReadText(*cache, text, length + 1, 1), result);
      }
      Append(ReadText(*cache, text, kLast + kMore, 50), result);
      EXPECT_EQ(result, reference) << spec << ", of which forks were taken";
      // A fork that continued for long, and one of its forks.
      const auto alone = Make(geometry, spec);
      ReadText(*alone, text, kFirst, 50);
      const auto expected = ReadText(*alone, other, kFirst + 100, 50);
      auto from_fork = RowsOf(geometry, expected, 0, 5);
      const auto again = forks.front()->Fork();
      forks.clear();
      Append(ReadText(*again, other, kFirst + 100, 50), from_fork);
      EXPECT_EQ(from_fork, expected) << spec;
    }
  }
}

// Parents of a tree with few drafts or many, deep or wide, in any order that lists parents first.
std::vector<int32_t> RandomTree(kernels::RandomFloats& random) {
  std::vector<int32_t> parents(random.Integer(1, 14));
  const bool deep = random.Integer(0, 1) == 1;
  for (int32_t row = 0; row < std::ssize(parents); ++row) {
    parents[row] = static_cast<int32_t>(
        deep ? std::max(random.Integer(-1, row - 1), random.Integer(-1, row - 1))
             : random.Integer(-1, row - 1));
  }
  return parents;
}

std::vector<int64_t> PathTo(const std::vector<int32_t>& parents, int64_t row) {
  std::vector<int64_t> path;
  for (; row >= 0; row = parents[row]) path.insert(path.begin(), row);
  return path;
}

// Laws that depend on the instruction set, too: rows that are alone in a step go through kernels of
// their own.
class LawsOfTrees : public Laws {};

// A tree of drafts among other texts. Each row has the bits of plain decode along its path, and the
// text continues from the accepted row as from a chain.
TEST_P(LawsOfTrees, EveryPathOfATreeHasTheBitsOfAChain) {
  kernels::RandomFloats random(12);
  StepRunner runner(2, table());
  for (const std::string& spec : specs_) {
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, 210, 13), drafts(geometry, 14, 14);
      for (const int64_t length : {int64_t{0}, int64_t{58}, random.Integer(1, 140)}) {
        const auto cache = Make(geometry, spec), bystander = Make(geometry, spec);
        runner.Read(*cache, text, RowRange(0, length), 64);
        const auto chain = cache->Fork();
        for (int round = 0; round < 2; ++round) {
          const std::vector<int32_t> parents = RandomTree(random);
          const int64_t n = std::ssize(parents), at = bystander->length();
          const std::vector<StepRows> step = {{bystander.get(), &text, RowRange(at, at + 3)},
                                              {cache.get(), &drafts, RowRange(0, n), parents}};
          const auto rows = runner.Run(step)[1];
          for (int64_t row = 0; row < n; ++row) {
            const std::vector<int64_t> path = PathTo(parents, row);
            const auto decoded = runner.Read(*chain->Fork(), drafts, path, 1);
            const int64_t depth = std::ssize(path);
            ASSERT_EQ(RowsOf(geometry, rows, row, row + 1),
                      RowsOf(geometry, decoded, depth - 1, depth))
                << spec << ", row " << row << " of " << n << " after " << chain->length();
          }
          const int64_t accepted = random.Integer(0, n - 1);
          cache->Accept(accepted);
          runner.Read(*chain, drafts, PathTo(parents, accepted), 1);
          ASSERT_EQ(cache->length(), chain->length());
          EXPECT_EQ(cache->Stats().bytes, chain->Stats().bytes);
        }
        const auto rest = RowRange(140, 205);
        ASSERT_EQ(runner.Read(*cache, text, rest, 40), runner.Read(*chain, text, rest, 1)) << spec;
      }
    }
  }
}

// Keys lie where the text has them for every policy: one reads what another wrote.
TEST_P(Laws, TwoPoliciesLookAtOneCache) {
  for (const std::string& spec : specs_) {
    if (LearnsFromQueries(spec)) continue;
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, 200, 15), other(geometry, 200, 16);
      for (const int64_t length : {1, 64, 130}) {
        const auto own = Make(geometry, spec);
        ReadText(*own, other, length, 50);
        const auto expected = ReadText(*own, other, 200, 50);

        const auto dense = Make(geometry, "dense");
        ReadText(*dense, other, length, 50);
        auto policy = MakePolicy(geometry, Options(spec));
        policy->SetQuestion({.begin = kQuestionBegin, .answer = kAnswerFrom});
        const auto view = dense->Fork(std::move(policy));
        EXPECT_EQ(view->Stats().policy, spec);
        EXPECT_EQ(ReadText(*view, other, 200, 50), expected) << spec << " after " << length;
        // The view does not change the text.
        const auto alone = Make(geometry, "dense");
        ReadText(*alone, other, length, 50);
        EXPECT_EQ(ReadText(*dense, text, 200, 50), ReadText(*alone, text, 200, 50));

        if (view->cache().dropped().end > 0) {
          EXPECT_EQ(ErrorOf([&] { view->Fork(MakePolicy(geometry, Options("dense"))); }).kind(),
                    ErrorKind::kUnsupported);
        }
      }
    }
  }
}

TEST_P(Laws, ARefusedStepChangesNothing) {
  for (const AttentionGeometry& geometry : GeometriesOf(tight_)) {
    const TestText text(geometry, 3000, 5);
    const auto reference = ReadText(*Make(geometry, tight_, nullptr, 90), text, 90, 30);
    const KvLayout layout = LayoutOf(geometry, std::get<1>(GetParam()).kv_type);
    const auto pool =
        std::make_shared<KvPool>(layout, std::make_shared<KvBudget>(layout.BytesFor(2048)));
    const auto cache = Make(geometry, tight_, pool, 90);
    auto result = ReadText(*cache, text, 60, 30);
    const KvStats before = cache->Stats();
    EXPECT_THROW(ReadText(*cache, text, 3000, 3000), Error) << "no room, or no context";
    EXPECT_EQ(cache->length(), 60);
    EXPECT_EQ(cache->Stats().kept, before.kept);
    EXPECT_EQ(cache->Stats().bytes, before.bytes);
    EXPECT_EQ(cache->Stats().read_bytes, before.read_bytes);
    Append(ReadText(*cache, text, 90, 30), result);
    EXPECT_EQ(result, reference);
  }
}

TEST_P(Laws, AStepThatIsNotEndedDidNotHappen) {
  for (const std::string& spec : specs_) {
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, 180, 6), other(geometry, 180, 7);
      const auto reference = ReadText(*Make(geometry, spec), text, 180, 20);
      const auto cache = Make(geometry, spec);
      std::vector<float> result;
      StepRunner runner(1, table());
      for (int64_t at = 0; at < 180; at += 20) {
        const StepRows lost{cache.get(), &other, RowRange(at, std::min<int64_t>(180, at + 96))};
        const StepRows tree{cache.get(), &other, {at, at, at + 1}, {-1, -1, 1}};
        runner.Run({at % 40 == 0 ? &lost : &tree, 1}, /*end=*/false);
        Append(ReadText(*cache, text, at + 20, 20), result);
      }
      EXPECT_EQ(result, reference) << spec;
    }
  }
}

// Rows without queries, as bench fills a cache.
TEST_P(Laws, RowsWithoutQueriesAreCachedAllTheSame) {
  for (const std::string& spec : specs_) {
    if (LearnsFromQueries(spec)) continue;
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, 170, 9);
      const auto reference = Make(geometry, spec);
      ReadText(*reference, text, 150, 50);
      const auto expected = ReadText(*reference, text, 170, 20);

      const auto cache = Make(geometry, spec);
      StepRunner runner(2, table());
      const std::vector<int32_t> tokens(50);
      for (int64_t at = 0; at < 150; at += 50) {
        const Exec exec = runner.exec();
        Workspace::Scope scope(exec.workspace);
        const Segment segment{.tokens = tokens, .text = cache.get()};
        AttentionStep step(exec, {&segment, 1});
        for (int64_t layer = 0; layer < geometry.layers; ++layer) {
          AttentionInput input = text.Input(layer, at, at + 50);
          input.q.rows = 0;
          step.Attend(layer, input, {});
        }
        step.End();
      }
      EXPECT_EQ(cache->length(), 150);
      EXPECT_EQ(ReadText(*cache, text, 170, 20), expected) << spec;
    }
  }
}

TEST_P(Laws, MemoryIsReported) {
  const AttentionGeometry& geometry = geometries_[0];
  const TestText text(geometry, 100, 8);
  const auto cache = Make(geometry, tight_);
  ReadText(*cache, text, 99, 50);
  ReadText(*cache, text, 100, 1);
  const KvStats stats = cache->Stats();
  EXPECT_EQ(stats.seen, 100);
  EXPECT_LE(stats.kept, 100);
  EXPECT_LE(stats.kept, stats.max_kept_tokens);
  int64_t dropped = 0;
  for (const ops::KvRange& range : stats.dropped) dropped += range.end - range.begin;
  EXPECT_EQ(stats.kept + dropped, stats.seen);
  EXPECT_GT(stats.bytes, 0);
  EXPECT_EQ(stats.bytes, cache->cache().pool().budget().used());
  EXPECT_GT(stats.read_bytes, 0);
  EXPECT_LE(stats.read_bytes, stats.bytes);
  EXPECT_EQ(stats.policy, tight_);
}

// The predicted cost of --kv is what bench counts.
TEST_P(Laws, CostsAreKnownBefore) {
  for (const std::string& spec : specs_) {
    for (const AttentionGeometry& geometry : GeometriesOf(spec)) {
      const TestText text(geometry, 210, 17);
      const KvLayout layout = LayoutOf(geometry, std::get<1>(GetParam()).kv_type);
      const auto policy = MakePolicy(geometry, Options(spec));
      const auto seeing_all = MakePolicy(geometry, Options("dense"));
      const auto cache = Make(geometry, spec);
      // The cost is that of a token that chooses.
      const bool dense = spec.find("dense_question") != std::string::npos;
      const int64_t begin = dense ? kAnswerFrom : kQuestionBegin;
      ReadText(*cache, text, begin, 50);
      StepRunner runner(1, table());
      int64_t shared = 0;  // tokens that reused an earlier one's choice
      for (int64_t length = begin + 1; length <= 210; ++length) {
        runner.Read(*cache, text, RowRange(length - 1, length), 1);
        const KvStats stats = cache->Stats();
        const KvCost cost = CostAt(*policy, geometry, layout, length);
        ASSERT_EQ(cost.cache_bytes, cache->cache().bytes()) << spec << ", " << length;
        ASSERT_EQ(cost.index.held_bytes, cache->index_bytes()) << spec << ", " << length;
        ASSERT_LE(cost.seen_bytes, CostAt(*seeing_all, geometry, layout, length).seen_bytes)
            << spec << ", " << length;
        const int64_t seen_bytes = layout.places.empty()
                                       ? stats.met_keys * layout.head_bytes() / kernels::kTileTokens
                                       : cost.seen_bytes;  // keys of layers have different sizes
        if (spec.find("top_p") != std::string::npos || spec.find("presel") != std::string::npos) {
          ASSERT_LE(seen_bytes, cost.seen_bytes) << spec << ", " << length;
          continue;
        }
        ASSERT_EQ(seen_bytes, cost.seen_bytes) << spec << ", " << length;
        const int64_t index_bytes = stats.read_bytes - cost.seen_bytes;
        if (spec.find("QUEST") != std::string::npos) {  // opens as many groups as it needs
          ASSERT_LE(index_bytes, cost.index.read_bytes) << spec << ", " << length;
          continue;
        }
        shared = index_bytes == cost.index.read_bytes ? 0 : shared + 1;
        ASSERT_LT(shared, cost.index.read_every_tokens) << spec << ", " << length;
        ASSERT_EQ(index_bytes, shared > 0 ? 0 : cost.index.read_bytes) << spec << ", " << length;
      }
    }
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const auto& [policy, arithmetic, reading, isa] = info.param;
  return TestName(fmt::format("{}_{}{}_{}", AllPolicies()[policy].name, arithmetic.name,
                              reading.name, isa->name));
}

std::vector<size_t> Policies() {
  std::vector<size_t> policies(AllPolicies().size());
  std::iota(policies.begin(), policies.end(), 0);
  return policies;
}

const auto& Cases() {
#ifdef GODWIT_SANITIZED
  // AttentionTest has kernels read keys of every storage, on every instruction set.
  const std::vector arithmetics = {kArithmetics[0], kArithmetics[4]};
  const std::vector isas = kernels::Best();
#else
  const std::vector arithmetics(std::begin(kArithmetics), std::end(kArithmetics));
  const std::vector isas = kernels::SupportedIsas();
#endif
  static const CasesOf cases(Policies(), arithmetics,
                             std::vector(std::begin(kReadings), std::end(kReadings)), isas);
  return cases;
}
// The remaining cases. Storage of 4 bits is in the pairs alone, because it computes as int8.
std::vector<Case> Rest() {
  std::vector<Case> rest = Cases().Rest();
  std::erase_if(rest,
                [](const Case& one) { return kernels::HasNarrowValues(std::get<1>(one).kv_type); });
  return rest;
}
// Only trees differ between instruction sets.
std::vector<Case> RestOnTheBestIsa() {
  std::vector<Case> rest = Rest();
  std::erase_if(rest, [](const Case& one) { return std::get<3>(one) != &kernels::BestIsa(); });
  return rest;
}

INSTANTIATE_TEST_SUITE_P(Pairs, Laws, testing::ValuesIn(Cases().Pairs()), NameOf);
INSTANTIATE_TEST_SUITE_P(FULL_RELEASE_Rest, Laws, testing::ValuesIn(RestOnTheBestIsa()), NameOf);
INSTANTIATE_TEST_SUITE_P(Pairs, LawsOfTrees, testing::ValuesIn(Cases().Pairs()), NameOf);
INSTANTIATE_TEST_SUITE_P(FULL_RELEASE_Rest, LawsOfTrees, testing::ValuesIn(Rest()), NameOf);

}  // namespace
}  // namespace godwit::policy_laws_test
