#include "model/synthetic_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/test_support.h"
#include "model/loader.h"
#include "model/shape_test_support.h"
#include "model/shapes.h"

namespace godwit::synthetic_weights_test {
namespace {

std::vector<float> Values(const WeightSource& source, const std::string& name) {
  const TensorInfo& tensor = *source.Find(name);
  std::vector<float> values(tensor.NumElements());
  EXPECT_EQ(tensor.bytes.size(), values.size() * SizeOf(*tensor.dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype == DType::kF32) {
      std::memcpy(&values[i], tensor.bytes.data() + 4 * i, 4);
    } else {
      BF16 value;
      std::memcpy(&value, tensor.bytes.data() + 2 * i, 2);
      values[i] = ToFloat(value);
    }
  }
  return values;
}

struct Moments {
  double mean = 0, sigma = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments moments;
  const auto n = static_cast<double>(values.size());
  for (const float value : values) moments.mean += double{value} / n;
  for (const float value : values) {
    moments.sigma += (value - moments.mean) * (value - moments.mean) / n;
  }
  moments.sigma = std::sqrt(moments.sigma);
  return moments;
}

TEST(SyntheticWeights, AreTheSameEveryTime) {
  const DecoderSpec spec = SmallShape();
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto one = SyntheticWeights(spec, dtype);
    const auto two = SyntheticWeights(spec, dtype);
    ASSERT_EQ(one->Names(), two->Names());
    for (const std::string& name : one->Names()) {
      EXPECT_EQ(Values(*one, name), Values(*two, name)) << name;
    }
  }
}

// Pins the values, because a changed generator would make hashes in old reports meaningless.
TEST(SyntheticWeights, AreTheseValues) {
  const auto values = Values(*SyntheticWeights(SmallShape(), DType::kF32), "model.norm.weight");
  EXPECT_FLOAT_EQ(values[0], 0.9956180f);  // computed by a separate program, Philox included
}

TEST(SyntheticWeights, KeepTheMagnitudeOfActivations) {
  const DecoderSpec spec = SmallShape();
  const auto source = SyntheticWeights(spec, DType::kF32);
  const auto check = [&](const std::string& name, double mean, double sigma) {
    const Moments moments = MomentsOf(Values(*source, name));
    EXPECT_NEAR(moments.mean, mean, 0.1 * sigma) << name;
    EXPECT_NEAR(moments.sigma, sigma, 0.1 * sigma) << name;
  };
  check("model.layers.0.self_attn.q_proj.weight", 0, 1 / std::sqrt(64.0));
  check("model.layers.1.mlp.down_proj.weight", 0, 1 / std::sqrt(160.0));
  check("lm_head.weight", 0, 1 / std::sqrt(64.0));
  check("model.embed_tokens.weight", 0, 1);
}

TEST(SyntheticWeights, TensorsDiffer) {
  const auto source = SyntheticWeights(SmallShape(), DType::kBF16);
  EXPECT_NE(Values(*source, "model.layers.0.self_attn.q_proj.weight"),
            Values(*source, "model.layers.1.self_attn.q_proj.weight"));
  EXPECT_NE(Values(*source, "model.layers.0.mlp.gate_proj.weight"),
            Values(*source, "model.layers.0.mlp.up_proj.weight"));
}

TEST(SyntheticWeights, EveryShapeHasADescription) {
  for (const ModelShape& shape : AllShapes()) {
    const DecoderSpec spec = FindShape(std::string(shape.name));
    EXPECT_NE(std::string(shape.config).find("{\"model_type\": \"" + spec.family + "\""),
              std::string::npos)
        << shape.name << " is of " << spec.family;
    EXPECT_FALSE(shape.description.empty());
  }
  const std::string message = ErrorOf(ErrorKind::kInput, [] { FindShape("9b"); });
  EXPECT_NE(message.find("unknown shape \"9b\"; there are: 1b, 3b"), std::string::npos) << message;
  ErrorOf(ErrorKind::kIo, [] { FindShape("/missing/config.json"); });
}

TEST(SyntheticWeights, TheLoaderTakesThem) {
  const DecoderSpec spec = SmallShape();
  ThreadPool pool(2);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const auto source = SyntheticWeights(spec, dtype);
    const auto model = LoadDecoder(spec, *source, pool, {});
    EXPECT_EQ(model->weight_types().layers, dtype);
  }
}

}  // namespace
}  // namespace godwit::synthetic_weights_test
