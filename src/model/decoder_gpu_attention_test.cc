// Decoders on an emulated GPU that also attends, for contexts that are read so. They are compared
// with the same decoder on the CPU, over chunks and batches, cancelled and lost at every call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "model/decoder_gpu_test_support.h"
#include "model/gpu_plan.h"
#include "model/model_test_support.h"
#include "ops/gpu/gpu.h"

namespace godwit::decoder_gpu_attention_test {
namespace {

using on_gpu::DeviceScript;
using on_gpu::Difference;
using on_gpu::ExpectErrorWhereverLost;
using on_gpu::ExpectNothingWhereverCancelled;
using on_gpu::NewGpu;
using on_gpu::Tokens;
using ::testing::HasSubstr;

constexpr int64_t kContext = 160;
constexpr int64_t kStepRows = 90;

DecoderSpec SpecOf(const std::string& type, const std::string& fields = "") {
  return on_gpu::SpecOf({.layers = 2, .hidden = 48, .intermediate = 70, .context = kContext}, type,
                        fields);
}

// The first layer sees chunks, as in Llama 4, and the second all tokens without rotation.
DecoderSpec InChunks() {
  DecoderSpec spec = SpecOf("mistral", R"(,"head_dim":16,"sliding_window":24)");
  spec.chunked = true;
  ChangeLayers(spec, [](int64_t layer, LayerKind& kind) {
    if (layer == 0) return;
    kind.window = 0;
    kind.rotary = {};
  });
  return spec;
}

struct Case {
  std::string name;
  DecoderSpec spec;
  DType kv_type;
  double tolerance = 0.02;  // of the largest logit
  // The part of the plan's weights that fits: other layers compute on the CPU.
  double fitting = 1;
};

const Case kCases[] = {
    {"llama_f32", SpecOf("llama", R"(,"head_dim":14)"), DType::kF32},
    {"llama_bf16", SpecOf("llama", R"(,"attention_bias":true,"head_dim":16)"), DType::kBF16},
    {"qwen2_f16", SpecOf("qwen2", R"(,"tie_word_embeddings":true)"), DType::kF16},
    {"mistral_window", SpecOf("mistral", R"(,"head_dim":10,"sliding_window":9)"), DType::kBF16},
    {"chunks", InChunks(), DType::kBF16},
    {"one_layer_there", SpecOf("llama", R"(,"head_dim":16)"), DType::kBF16, 0.02, 0.6},
};

std::unique_ptr<Decoder> Here(const DecoderSpec& spec) {
  return Load(spec, FakeWeights(spec), {}, DType::kBF16);
}

std::unique_ptr<Decoder> There(const DecoderSpec& spec, std::shared_ptr<ops::Gpu> gpu,
                               int64_t step_rows = kStepRows) {
  auto decoder = Here(spec);
  decoder->PlaceOn(std::move(gpu), step_rows, /*attends=*/true);
  return decoder;
}

std::unique_ptr<TextCache> NewText(const DecoderSpec& spec, DType kv_type,
                                   const std::string& prefill, int64_t question) {
  auto text =
      MakeTextCache(Geometry(spec), {.kv_type = kv_type, .context = kContext, .prefill = prefill});
  text->SetQuestion(question);
  return text;
}

std::vector<float> LogitsInChunks(const Decoder& decoder, TextCache& text,
                                  const std::vector<int32_t>& tokens, int64_t chunk) {
  std::vector<float> all;
  for (int64_t begin = 0; begin < std::ssize(tokens); begin += chunk) {
    const int64_t end = std::min(std::ssize(tokens), begin + chunk);
    const std::vector<int32_t> part(tokens.begin() + begin, tokens.begin() + end);
    const std::vector<float> logits = Step(decoder, {{part, &text}});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

class DecoderGpuAttentionTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kTokens = 87, kQuestion = 81;  // behind the second tile's beginning

  const DecoderSpec& spec() const { return GetParam().spec; }

  std::unique_ptr<Decoder> OnGpu() const {
    const auto whole = There(spec(), NewGpu());
    if (GetParam().fitting == 1) return There(spec(), NewGpu());
    const GpuPlan& plan = *whole->gpu_plan();
    const auto weights = static_cast<double>(plan.weight_bytes) * GetParam().fitting;
    auto decoder =
        There(spec(), NewGpu(nullptr, plan.scratch_bytes + static_cast<int64_t>(weights)));
    EXPECT_EQ(decoder->gpu_plan()->layers, 1);
    return decoder;
  }
  std::vector<float> Read(const Decoder& decoder, int64_t chunk, const std::string& prefill = "gpu",
                          int64_t question = kQuestion) const {
    const auto text = NewText(spec(), GetParam().kv_type, prefill, question);
    return LogitsInChunks(decoder, *text, tokens_, chunk);
  }

  const std::vector<int32_t> tokens_ = Tokens(kTokens);
};

TEST_P(DecoderGpuAttentionTest, HasTheLogitsOfTheCpuButForRounding) {
  const auto decoder = OnGpu();
  const auto expected = Read(*Here(spec()), kStepRows, "");
  const double difference = Difference(Read(*decoder, kStepRows), expected);
  EXPECT_LT(difference, GetParam().tolerance);
  RecordProperty("difference", fmt::format("{:.1e}", difference));
}

TEST_P(DecoderGpuAttentionTest, HasTheSameBitsInEveryChunkBatchAndRun) {
  const auto decoder = OnGpu();
  const auto expected = Read(*decoder, kStepRows);
  for (const int64_t chunk : {1, 7, 64}) {
    EXPECT_EQ(Read(*decoder, chunk), expected) << "chunks of " << chunk;
  }
  EXPECT_EQ(Read(*OnGpu(), kStepRows), expected) << "another run";
  // Beside a text that the CPU reads, and one whose context has ended.
  const auto text = NewText(spec(), GetParam().kv_type, "gpu", kQuestion);
  const auto dense = NewText(spec(), GetParam().kv_type, "", 0);
  const auto asked = NewText(spec(), GetParam().kv_type, "gpu", 0);
  const std::vector<int32_t> other = Tokens(1, 8);
  const auto all =
      Step(*decoder, {{other, dense.get()}, {tokens_, text.get()}, {other, asked.get()}});
  const auto begin = all.begin() + std::ssize(other) * spec().vocab_size;
  EXPECT_EQ(std::vector<float>(begin, begin + kTokens * spec().vocab_size), expected);
}

// The question and the answer have the bits of the host, of keys that the GPU made.
TEST_P(DecoderGpuAttentionTest, AttendsOnTheHostFromTheQuestionOn) {
  const auto decoder = OnGpu();
  EXPECT_EQ(Read(*decoder, kStepRows, "gpu", 0), Read(*decoder, kStepRows, ""));
}

INSTANTIATE_TEST_SUITE_P(All, DecoderGpuAttentionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(DecoderGpuAttention, CountsItsMemory) {
  const DecoderSpec spec = SpecOf("llama");
  const auto gpu = NewGpu(), plain = NewGpu();
  const auto decoder = There(spec, gpu);
  auto without = Here(spec);
  without->PlaceOn(plain, kStepRows);
  const GpuPlan& plan = *decoder->gpu_plan();
  EXPECT_GT(plan.scratch_bytes, without->gpu_plan()->scratch_bytes);
  EXPECT_GT(plan.host_bytes, without->gpu_plan()->host_bytes);
  EXPECT_GT(without->gpu_plan()->host_bytes, 0);
  EXPECT_EQ(gpu->taken_bytes(), plan.bytes());
  const auto text = NewText(spec, DType::kF32, "gpu", kContext);
  LogitsInChunks(*decoder, *text, Tokens(kStepRows), kStepRows);
  EXPECT_EQ(gpu->taken_bytes(), plan.bytes()) << "steps take no more";
  // A GPU that holds a layer, but not the keys that it attends to.
  EXPECT_THAT(
      ErrorOf(ErrorKind::kMemory,
              [&] { There(spec, NewGpu(nullptr, plan.bytes() - without->gpu_plan()->bytes())); }),
      HasSubstr("steps of 90 tokens with attention"));
}

TEST(DecoderGpuAttention, RefusesATextWithoutItsGpu) {
  const DecoderSpec spec = SmallLlama();
  const auto here = Here(spec);
  auto without = Here(spec);
  without->PlaceOn(NewGpu(), 8);
  const std::vector<int32_t> tokens = {1, 2, 3};
  for (const Decoder* decoder : {here.get(), without.get()}) {
    const auto text = MakeTextCache(Geometry(spec), {.context = 64, .prefill = "gpu"});
    text->SetQuestion(2);
    EXPECT_EQ(ErrorOf(ErrorKind::kUnsupported,
                      [&] {
                        Step(*decoder, {{tokens, text.get()}});
                      }),
              "the context is to be read with attention on a GPU, and this model has none that "
              "attends");
    EXPECT_EQ(text->length(), 0);
  }
}

TEST(DecoderGpuAttention, RefusesModelsToWhichGpusDoNotAttend) {
  const auto refusal = [](const DecoderSpec& spec) {
    return ErrorOf(ErrorKind::kUnsupported, [&] { GpuAttentionShape(spec); });
  };
  EXPECT_EQ(refusal(SmallSpec(R"("model_type":"bloom","n_head":4,"n_layer":2)")),
            "GPUs attend without ALiBi's biases, which this model has");
  EXPECT_EQ(GpuAttentionShape(SmallLlama()).kv_heads, 2);
}

std::unique_ptr<TextCache> SmallText(const DecoderSpec& spec) {
  auto text = MakeTextCache(Geometry(spec), {.context = 64, .prefill = "gpu"});
  text->SetQuestion(64);
  return text;
}

// Rows of a step that lie in several chunks.
DecoderSpec SmallChunks() {
  DecoderSpec spec = SmallSpec(R"("model_type":"mistral","sliding_window":3)");
  spec.chunked = true;
  return spec;
}

struct FaultCase {
  const char* name;
  DecoderSpec (*spec)();
};
const FaultCase kFaultCases[] = {{"llama", SmallLlama}, {"chunks", SmallChunks}};

class FaultInGpuAttentionTest : public testing::TestWithParam<FaultCase> {
 protected:
  const DecoderSpec spec_ = GetParam().spec();
};

TEST_P(FaultInGpuAttentionTest, ALostGpuIsAnErrorOfTheStep) {
  ExpectErrorWhereverLost(
      *There(spec_, NewGpu()),
      [&](std::shared_ptr<ops::Gpu> gpu) { return There(spec_, std::move(gpu)); },
      [&] { return SmallText(spec_); }, /*least_calls=*/40);
}

TEST_P(FaultInGpuAttentionTest, CopiesThroughPageLockedMemoryAlone) {
  const auto script = std::make_shared<DeviceScript>();
  const auto decoder = There(spec_, NewGpu(script));
  script->pageable_copies = 0;
  on_gpu::Forward(*decoder, {3, 0, 10, 7, 5}, *SmallText(spec_));
  EXPECT_EQ(script->pageable_copies, 0);
}

TEST_P(FaultInGpuAttentionTest, ACancelledStepDidNotHappen) {
  const auto script = std::make_shared<DeviceScript>();
  ExpectNothingWhereverCancelled(
      *There(spec_, NewGpu(script)), *script, [&] { return SmallText(spec_); },
      /*least_calls=*/40);
}

INSTANTIATE_TEST_SUITE_P(All, FaultInGpuAttentionTest, testing::ValuesIn(kFaultCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace godwit::decoder_gpu_attention_test
