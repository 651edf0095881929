// The laws that every attention policy passes (DESIGN: "Laws"; docs/adding-a-policy.md).

#include <gtest/gtest.h>

#include <map>

#include "attention/make_policy.h"
#include "base/error.h"
#include "base/rng.h"
#include "kernels/dispatch.h"

namespace godwit {
namespace {

constexpr int64_t kContext = 8192;
constexpr int64_t kMaxStep = 96;

AttentionGeometry MakeGeometry(int64_t heads, int64_t kv_heads, int64_t head_dim,
                               std::vector<int64_t> windows) {
  AttentionGeometry geometry;
  geometry.layers = static_cast<int64_t>(windows.size());
  geometry.shape = {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .scale = 0.3f};
  geometry.rotary.rotary_dim = head_dim / 2 * 2;
  geometry.windows = std::move(windows);
  return geometry;
}

// Random queries, keys and values of a text; row t does not depend on how the text is cut.
class Text {
 public:
  Text(const AttentionGeometry& geometry, int64_t tokens, uint64_t seed)
      : geometry_(geometry), tokens_(tokens) {
    const int64_t cols =
        (geometry.shape.heads + 2 * geometry.shape.kv_heads) * geometry.shape.head_dim;
    for (int64_t layer = 0; layer < geometry.layers; ++layer) {
      std::vector<float>& values = layers_.emplace_back();
      for (int64_t i = 0; i < tokens * cols; ++i) {
        values.push_back(
            static_cast<float>(2 * Uniform(seed, static_cast<uint64_t>(layer), i, 0) - 1));
      }
    }
  }

  int64_t tokens() const { return tokens_; }

  AttentionInput Input(int64_t layer, int64_t begin, int64_t end) const {
    const int64_t q = geometry_.shape.heads * geometry_.shape.head_dim;
    const int64_t kv = geometry_.shape.kv_heads * geometry_.shape.head_dim;
    const MatrixView<const float> all{layers_[static_cast<size_t>(layer)].data(), tokens_,
                                      q + 2 * kv, q + 2 * kv};
    const auto rows = all.Rows(begin, end);
    return {.q = rows.Cols(0, q), .k = rows.Cols(q, q + kv), .v = rows.Cols(q + kv, q + 2 * kv)};
  }

 private:
  AttentionGeometry geometry_;
  int64_t tokens_;
  std::vector<std::vector<float>> layers_;
};

class Laws : public testing::TestWithParam<std::tuple<size_t, DType>> {
 protected:
  const PolicyKind& kind() const { return AllPolicies()[std::get<0>(GetParam())]; }

  std::unique_ptr<AttentionPolicy> Make(const AttentionGeometry& geometry, std::string_view spec,
                                        int64_t context = kContext) const {
    return MakePolicy(geometry, {.spec = std::string(spec),
                                 .kv_type = std::get<1>(GetParam()),
                                 .context = context,
                                 .max_step_tokens = kMaxStep});
  }

  // Runs tokens [begin, end) of the text in chunks; returns what they attended to, layer by layer
  // for each chunk's rows: [tokens, layers * heads * head_dim].
  std::vector<float> Run(AttentionPolicy& policy, const AttentionGeometry& geometry,
                         const Text& text, int64_t begin, int64_t end, int64_t chunk,
                         int threads = 1) {
    ThreadPool pool(threads);
    const Exec exec{
        .pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
    const int64_t cols = geometry.shape.heads * geometry.shape.head_dim;
    std::vector<float> all(static_cast<size_t>((end - begin) * geometry.layers * cols));
    const MatrixView<float> out{all.data(), end - begin, geometry.layers * cols,
                                geometry.layers * cols};
    for (int64_t at = begin; at < end; at += chunk) {
      const int64_t to = std::min(end, at + chunk);
      policy.Begin(to - at);
      for (int64_t layer = 0; layer < geometry.layers; ++layer) {
        policy.Attend(layer, text.Input(layer, at, to), exec,
                      out.Rows(at - begin, to - begin).Cols(layer * cols, (layer + 1) * cols));
      }
      policy.End();
    }
    return all;
  }

  const std::vector<AttentionGeometry> geometries_ = {
      MakeGeometry(4, 2, 16, {0, 0}),
      MakeGeometry(3, 3, 24, {0, 7}),
      MakeGeometry(5, 1, 8, {0}),
  };
  Workspace workspace_;
};

TEST_P(Laws, AnAmpleBudgetGivesTheDenseResult) {
  for (const AttentionGeometry& geometry : geometries_) {
    const Text text(geometry, 300, 1);
    const auto policy = Make(geometry, kind().roomy_example);
    const auto dense = Make(geometry, "dense");
    EXPECT_EQ(Run(*policy, geometry, text, 0, 300, 50), Run(*dense, geometry, text, 0, 300, 50));
  }
}

TEST_P(Laws, ChunksAndThreadsDoNotShow) {
  for (const auto spec : {kind().tight_example, kind().roomy_example}) {
    for (const AttentionGeometry& geometry : geometries_) {
      const Text text(geometry, 200, 2);
      const auto reference = Run(*Make(geometry, spec), geometry, text, 0, 200, 1);
      for (const int64_t chunk : {2, 7, 64, 96}) {
        const auto policy = Make(geometry, spec);
        EXPECT_EQ(Run(*policy, geometry, text, 0, 200, chunk, 2), reference)
            << spec << ", chunks of " << chunk;
        EXPECT_EQ(policy->length(), 200);
      }
    }
  }
}

TEST_P(Laws, WhatIsTruncatedNeverWas) {
  for (const auto spec : {kind().tight_example, kind().roomy_example}) {
    const AttentionGeometry& geometry = geometries_[1];
    const Text text(geometry, 160, 3);
    const Text other(geometry, 160, 4);
    const auto reference = Run(*Make(geometry, spec), geometry, text, 0, 160, 16);
    int64_t allowed = 0;
    for (const int64_t kept : {0, 1, 5, 63, 64, 65, 100}) {
      const auto policy = Make(geometry, spec);
      auto result = Run(*policy, geometry, text, 0, kept, 16);
      Run(*policy, geometry, other, kept, 130, 16);
      if (!policy->CanTruncate(kept)) {
        EXPECT_THROW(policy->Truncate(kept), Error);
        EXPECT_EQ(policy->length(), 130);
        continue;
      }
      ++allowed;
      policy->Truncate(kept);
      EXPECT_EQ(policy->length(), kept);
      const auto rest = Run(*policy, geometry, text, kept, 160, 16);
      result.insert(result.end(), rest.begin(), rest.end());
      EXPECT_EQ(result, reference) << spec << " truncated to " << kept;
    }
    EXPECT_FALSE(Make(geometry, spec)->CanTruncate(1));
    EXPECT_FALSE(Make(geometry, spec)->CanTruncate(-1));
    if (spec == kind().roomy_example) {
      EXPECT_EQ(allowed, 7) << "nothing was dropped";
    }
  }
}

TEST_P(Laws, ARefusedStepChangesNothing) {
  const AttentionGeometry& geometry = geometries_[0];
  const Text text(geometry, 90, 5);
  const auto reference = Run(*Make(geometry, kind().tight_example, 90), geometry, text, 0, 90, 30);
  const auto policy = Make(geometry, kind().tight_example, 90);
  auto result = Run(*policy, geometry, text, 0, 60, 30);
  const KvStats before = policy->Stats();
  const int64_t too_many = std::min(policy->max_step_tokens(), policy->max_length() - 60) + 1;
  EXPECT_THROW(policy->Begin(too_many), Error);
  EXPECT_EQ(policy->length(), 60);
  EXPECT_EQ(policy->Stats().kept, before.kept);
  EXPECT_EQ(policy->Stats().bytes, before.bytes);
  const auto rest = Run(*policy, geometry, text, 60, 90, 30);
  result.insert(result.end(), rest.begin(), rest.end());
  EXPECT_EQ(result, reference);
}

TEST_P(Laws, AStepThatIsNotEndedDidNotHappen) {
  for (const auto spec : {kind().tight_example, kind().roomy_example}) {
    const AttentionGeometry& geometry = geometries_[0];
    const Text text(geometry, 180, 6);
    const Text other(geometry, 180, 7);
    const auto reference = Run(*Make(geometry, spec), geometry, text, 0, 180, 20);
    const auto policy = Make(geometry, spec);
    std::vector<float> result;
    ThreadPool pool(1);
    const Exec exec{
        .pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
    for (int64_t at = 0; at < 180; at += 20) {
      const int64_t step = std::min<int64_t>(kMaxStep, 180 - at);
      std::vector<float> dropped(static_cast<size_t>(step * 4 * 16));
      policy->Begin(step);
      policy->Attend(0, other.Input(0, at, at + step), exec, {dropped.data(), step, 64, 64});
      const auto rows = Run(*policy, geometry, text, at, at + 20, 20);
      result.insert(result.end(), rows.begin(), rows.end());
    }
    EXPECT_EQ(result, reference) << spec;
  }
}

TEST_P(Laws, MemoryIsReported) {
  const AttentionGeometry& geometry = geometries_[0];
  const Text text(geometry, 100, 8);
  const auto policy = Make(geometry, kind().tight_example);
  Run(*policy, geometry, text, 0, 100, 50);
  const KvStats stats = policy->Stats();
  EXPECT_EQ(stats.seen, 100);
  EXPECT_LE(stats.kept, 100);
  EXPECT_GT(stats.bytes, 0);
  EXPECT_EQ(stats.policy, kind().tight_example);
}

INSTANTIATE_TEST_SUITE_P(Policies, Laws,
                         testing::Combine(testing::Range<size_t>(0, AllPolicies().size()),
                                          testing::Values(DType::kF32, DType::kF16, DType::kBF16)),
                         [](const auto& info) {
                           return std::string(AllPolicies()[std::get<0>(info.param)].name) + "_" +
                                  std::string(Name(std::get<1>(info.param)));
                         });

TEST(MakePolicy, RefusesWhatItDoesNotUnderstand) {
  const AttentionGeometry geometry = MakeGeometry(2, 2, 8, {0});
  for (const char* spec :
       {"", "denser", "dense:1", "sinks", "sinks:", "sinks:4", "sinks:4+", "sinks:+4", "sinks:4+0",
        "sinks:-1+4", "sinks:4+-4", "sinks:4+4x", "sinks:4+99999999999999999999", "sinks:a+b",
        "sinks:4 + 4", "sinks:9223372036854775807+1"}) {
    EXPECT_THROW(MakePolicy(geometry, {.spec = spec, .context = 64}), Error) << spec;
  }
}

}  // namespace
}  // namespace godwit
