#include "quant/quant_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/linear_layers.h"
#include "quant/quant_test_support.h"

namespace godwit::quant::quant_plan_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

QuantPlan Plan(const TestModel& model, const std::vector<std::string>& keep) {
  return PlanQuantization(model.spec, model.tensors, SmoothKind::kNorm, keep);
}

std::vector<std::string> Names(const QuantPlan& plan) {
  std::vector<std::string> names;
  for (const LinearTensors* linear : plan.linears) names.push_back(ModuleName(*linear));
  return names;
}

TEST(Plan, EveryLayerButTheHead) {
  const TestModel model;
  const QuantPlan plan = Plan(model, {});
  EXPECT_EQ(plan.linears.size(), 8);
  EXPECT_EQ(plan.linears[0]->parts.size(), 3);
  EXPECT_THAT(plan.ignore, ElementsAre("lm_head"));
}

TEST(Plan, RoutersStayInFloat) {
  const TestModel model(SmallSpec(R"("model_type":"mixtral","num_local_experts":3)"));
  const QuantPlan plan = Plan(model, {});
  EXPECT_EQ(plan.linears.size(), 2 * (2 + 3 * 2));
  EXPECT_THAT(plan.ignore, ElementsAre("model.layers.0.block_sparse_moe.gate",
                                       "model.layers.1.block_sparse_moe.gate", "lm_head"));
}

TEST(Plan, KeepsWhatPatternsName) {
  const TestModel model;
  const QuantPlan plan = Plan(model, {"*.down_proj", "model.layers.1.self_attn.[qkv]_proj"});
  EXPECT_THAT(Names(plan),
              ElementsAre("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.o_proj",
                          "model.layers.0.mlp.gate_proj", "model.layers.1.self_attn.o_proj",
                          "model.layers.1.mlp.gate_proj"));
  EXPECT_THAT(plan.ignore,
              ElementsAre("model.layers.0.mlp.down_proj", "model.layers.1.self_attn.q_proj",
                          "model.layers.1.self_attn.k_proj", "model.layers.1.self_attn.v_proj",
                          "model.layers.1.mlp.down_proj", "lm_head"));
  // q, k and v stay in float there, so smoothing them would gain nothing.
  EXPECT_EQ(plan.smooth.groups.size(), 3);
  EXPECT_EQ(plan.smooth.left_out[0].name,
            "model.layers.1.input_layernorm -> q_proj, k_proj, v_proj");
}

TEST(Plan, FusedLayersAreKeptTogether) {
  const TestModel model;
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Plan(model, {"*.k_proj"}); }),
              HasSubstr("model.layers.0.self_attn.k_proj would stay in float but not "
                        "model.layers.0.self_attn.v_proj"));
}

TEST(Plan, EightBitsForWhatPatternsName) {
  const TestModel model;
  const auto plan = [&](const std::string& pattern) {
    return PlanQuantization(model.spec, model.tensors, SmoothKind::kNorm, {}, {pattern});
  };
  const QuantPlan down = plan("*.down_proj");
  EXPECT_EQ(down.linears.size(), 8);
  EXPECT_THAT(down.int8, testing::UnorderedElementsAre(&model.tensors.layers[0].mlp.down,
                                                       &model.tensors.layers[1].mlp.down));
  const Scheme& four = FindScheme("w4a8");
  EXPECT_EQ(down.SchemeOf(model.tensors.layers[0].mlp.down, four).name, "w8a8");
  EXPECT_EQ(down.SchemeOf(model.tensors.layers[0].mlp.up, four).name, "w4a8");
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { plan("*.k_proj"); }),
              HasSubstr("k_proj would have 8 bits but not"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { plan("x"); }), HasSubstr("so none can have 8 bits"));
}

TEST(Plan, MatricesTheOtherWayAreRefused) {
  DecoderSpec spec = SmallLlama();
  spec.transposed = true;
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [&] { PlanQuantization(spec, TestModel().tensors, SmoothKind::kNone, {}); }),
              HasSubstr("stores its matrices as [inputs, outputs]"));
}

TEST(Plan, PatternsThatMatchNothingAreRefused) {
  const TestModel model;
  for (const char* pattern : {"down_proj", "lm_head", "model.layers.7.*"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                        [&] {
                          Plan(model, {"*", pattern});
                        }),
                HasSubstr(pattern));
  }
}

}  // namespace
}  // namespace godwit::quant::quant_plan_test
