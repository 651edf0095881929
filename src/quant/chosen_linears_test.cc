#include "quant/chosen_linears.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/linear_layers.h"
#include "quant/quant_test_support.h"

namespace godwit::quant::chosen_linears_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> NamesOf(const ChosenLinears& chosen) {
  std::vector<std::string> names;
  for (const LinearTensors* linear : chosen.linears) names.push_back(FullName(*linear));
  return names;
}

TEST(ChosenLinears, DecoderLayerHasItsGroups) {
  const TestModel model;
  const ChosenLinears chosen = ChooseLinears(model.tensors, "0");
  EXPECT_THAT(NamesOf(chosen),
              ElementsAre("model.layers.0.self_attn.q_proj, k_proj, v_proj",
                          "model.layers.0.self_attn.o_proj",
                          "model.layers.0.mlp.gate_proj, up_proj", "model.layers.0.mlp.down_proj"));
  EXPECT_EQ(chosen.layers, 1);
  EXPECT_EQ(chosen.neighbours.size(), 4);
}

TEST(ChosenLinears, ByName) {
  const TestModel model;
  // A part is computed together with the others.
  const ChosenLinears part = ChooseLinears(model.tensors, "model.layers.1.self_attn.k_proj");
  EXPECT_THAT(NamesOf(part), ElementsAre("model.layers.1.self_attn.q_proj, k_proj, v_proj"));
  EXPECT_EQ(part.layers, 2);
  EXPECT_THAT(part.neighbours,
              ElementsAre("model.layers.1.mlp.down_proj", "model.layers.1.mlp.gate_proj",
                          "model.layers.1.self_attn.o_proj", "model.layers.1.self_attn.q_proj"));
  EXPECT_THAT(NamesOf(ChooseLinears(model.tensors, "*.down_proj")),
              ElementsAre("model.layers.0.mlp.down_proj", "model.layers.1.mlp.down_proj"));
}

TEST(ChosenLinears, ExpertsAreOfTheirLayerAndRoutersAreNot) {
  const TestModel model(SmallSpec(R"("model_type":"mixtral","num_local_experts":3)"));
  EXPECT_EQ(ChooseLinears(model.tensors, "1").linears.size(), 2 + 3 * 2);
  ErrorOf(ErrorKind::kInput, [&] { ChooseLinears(model.tensors, "*.gate"); });
}

TEST(ChosenLinears, NothingIsRefusedWithWhatThereIs) {
  const TestModel model;
  for (const char* which : {"2", "99999999999999999999", "", "-1", "down_proj", "lm_head"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ChooseLinears(model.tensors, which); }),
                HasSubstr("0 to 1, or a name such as model.layers.0.self_attn.q_proj"))
        << which;
  }
}

TEST(ChosenLinears, GroupsOfTheirDecoderLayers) {
  const TestModel model;
  const auto groups = FindSmoothGroups(model.spec, model.tensors, SmoothKind::kAll).groups;
  ASSERT_EQ(groups.size(), 8);
  const auto some = GroupsOf(ChooseLinears(model.tensors, "*.1.*.o_proj"), groups);
  ASSERT_EQ(some.size(), 4);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(some[i].name, groups[4 + i].name);
}

}  // namespace
}  // namespace godwit::quant::chosen_linears_test
