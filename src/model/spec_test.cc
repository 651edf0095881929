#include "model/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_test_support.h"

namespace godwit::spec_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

DecoderSpec SixLayers() { return FirstLayers(SmallLlama(), 6); }

TEST(ChangeLayersTest, ChangesAddUpAndEqualKindsAreOne) {
  DecoderSpec spec = SixLayers();
  ChangeLayers(spec, {true, true, true, false, false, false},
               [](LayerKind& kind) { kind.window = 9; });
  ChangeLayers(spec, [](int64_t layer, LayerKind& kind) {
    if (layer % 3 == 0) kind.rotary = {};
  });
  EXPECT_THAT(WindowsOf(spec), ElementsAre(9, 9, 9, 0, 0, 0));
  EXPECT_THAT(RotaryDimsOf(spec), ElementsAre(0, 4, 4, 0, 4, 4));
  EXPECT_THAT(spec.layer_kind, ElementsAre(1, 2, 2, 3, 0, 0));
  EXPECT_EQ(spec.other_kinds.size(), 3u);
  EXPECT_EQ(spec.window, 0);
  EXPECT_EQ(spec.rotary.rotary_dim, 4);
}

TEST(ChangeLayersTest, AModelWhoseLayersAreAlikeHasNoOtherKinds) {
  DecoderSpec spec = SixLayers();
  ChangeLayers(spec, [](int64_t layer, LayerKind& kind) { kind.window = layer; });
  EXPECT_EQ(spec.other_kinds.size(), 5u);
  ChangeLayers(spec, [](int64_t, LayerKind& kind) { kind.window = 0; });
  EXPECT_THAT(spec.other_kinds, IsEmpty());
  EXPECT_THAT(spec.layer_kind, IsEmpty());
}

TEST(LayersByKindTest, AreCountedFromTheFirstOfEachKind) {
  DecoderSpec spec = SixLayers();
  ChangeLayers(spec, {true, true, false, true, true, true},
               [](LayerKind& kind) { kind.mlp.intermediate = 3; });
  const std::vector<LayersOfKind> kinds = LayersByKind(spec);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].first, 2);
  EXPECT_EQ(kinds[0].count, 1);
  EXPECT_EQ(kinds[1].first, 0);
  EXPECT_EQ(kinds[1].count, 5);
  EXPECT_EQ(LayersByKind(FirstLayers(spec, 2)).size(), 1u);
  EXPECT_EQ(KindOf(OneLayer(spec, 5, /*experts=*/0), 0).mlp.intermediate, 3);
}

// Policies and caches never hear of the recurrent layers between.
TEST(GeometryTest, OnlyLayersWithAttentionCount) {
  DecoderSpec spec = SmallLlama();
  spec.layers = 5;
  ChangeLayers(spec, [](int64_t layer, LayerKind& kind) {
    if (layer == 0 || layer == 3) {
      kind.mixer = Mixer::kDecayingSum;
      kind.sum = {.width = layer == 0 ? 8 : 12, .decay = 0.5f};
    }
    if (layer == 4) kind.window = 7;
  });
  EXPECT_EQ(PlacesOfLayers(spec, HasAttention), (std::vector<int64_t>{0, 0, 1, 2, 2}));
  EXPECT_EQ(PlacesOfLayers(spec, IsRecurrent), (std::vector<int64_t>{0, 1, 1, 1, 2}));
  EXPECT_EQ(AttentionLayers(spec), 3);
  const AttentionGeometry geometry = Geometry(spec);
  EXPECT_EQ(geometry.layers, 3);
  EXPECT_EQ(geometry.windows, (std::vector<int64_t>{0, 0, 7}));
  EXPECT_EQ(geometry.layer_rotary.size(), 3u);
  EXPECT_EQ(geometry.states, (StateLayout{.layers = 2, .floats = 12, .row_floats = 12}));
  EXPECT_EQ(Geometry(SmallLlama()).states, StateLayout{});
}

TEST(GeometryTest, LayersThatRotateAlikeShareARotation) {
  DecoderSpec spec = SixLayers();
  ChangeLayers(spec, [](int64_t layer, LayerKind& kind) {
    kind.window = layer;
    kind.rotary.theta = static_cast<double>(100 + layer % 3);
  });
  const AttentionGeometry geometry = Geometry(spec);
  EXPECT_THAT(geometry.layer_rotary, ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_EQ(geometry.rotaries.size(), 3u);
  EXPECT_EQ(geometry.rotaries[2].theta, 102);
  EXPECT_THAT(geometry.windows, ElementsAre(0, 1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace godwit::spec_test
