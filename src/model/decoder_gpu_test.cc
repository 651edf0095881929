// Decoders whose layers compute on an emulated GPU. They are compared with the same decoder on the
// CPU, over chunks and batches. Some are cancelled, or their GPU is lost or full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "model/decoder_gpu_test_support.h"
#include "model/gpu_plan.h"
#include "model/model_test_support.h"
#include "ops/gpu/gpu.h"

namespace godwit::decoder_gpu_test {
namespace {

using on_gpu::DeviceScript;
using on_gpu::Difference;
using on_gpu::ExpectErrorWhereverLost;
using on_gpu::ExpectNothingWhereverCancelled;
using on_gpu::Forward;
using on_gpu::NewGpu;
using on_gpu::Tokens;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kContext = 128;
constexpr int64_t kStepRows = 100;

// Three layers of odd sizes, the keys of several tiles.
DecoderSpec SpecOf(const std::string& type, const std::string& fields = "") {
  return on_gpu::SpecOf({.layers = 3, .hidden = 56, .intermediate = 70, .context = kContext}, type,
                        fields);
}
DecoderSpec Llama() { return SpecOf("llama", R"(,"attention_bias":true,"head_dim":14)"); }

// The host computes the experts.
DecoderSpec Mixtral() {
  return SpecOf("mixtral", R"(,"head_dim":14,"num_local_experts":4,"num_experts_per_tok":2)");
}

// The GPU computes an expert of all tokens at the same time.
DecoderSpec WithSharedExpert(DecoderSpec spec) {
  spec.shared_mlp.intermediate = 37;
  ModuleNames& names = spec.names;
  names.shared_gate = "model.layers.{}.mlp.shared.gate";
  names.shared_up = "model.layers.{}.mlp.shared.up";
  names.shared_down = "model.layers.{}.mlp.shared.down";
  return spec;
}
DecoderSpec Shared() { return WithSharedExpert(Mixtral()); }
// The same with a share for each token, and norms behind all blocks.
DecoderSpec SharedByGates() {
  DecoderSpec spec = Shared();
  spec.shared_gated = spec.output_norms = true;
  ModuleNames& names = spec.names;
  names.shared_share = "model.layers.{}.mlp.shared_share";
  names.attention_out_norm = "model.layers.{}.attention_out_norm";
  names.mlp_out_norm = "model.layers.{}.mlp_out_norm";
  return spec;
}

std::unique_ptr<Decoder> LoadOn(std::shared_ptr<ops::Gpu> gpu, const DecoderSpec& spec,
                                DType storage) {
  auto decoder = Load(spec, FakeWeights(spec), {}, storage);
  if (gpu != nullptr) decoder->PlaceOn(std::move(gpu), kStepRows);
  return decoder;
}

std::vector<float> LogitsInChunks(const Decoder& decoder, const std::vector<int32_t>& tokens,
                                  int64_t chunk) {
  const auto text = DenseText(decoder.spec(), kContext);
  std::vector<float> all;
  for (size_t begin = 0; begin < tokens.size(); begin += static_cast<size_t>(chunk)) {
    const size_t end = std::min(tokens.size(), begin + static_cast<size_t>(chunk));
    const std::vector<int32_t> part(tokens.begin() + static_cast<int64_t>(begin),
                                    tokens.begin() + static_cast<int64_t>(end));
    const std::vector<float> logits = Step(decoder, {{part, text.get()}});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

struct Case {
  std::string name;
  DecoderSpec (*spec)();
  DType storage;
};

const Case kCases[] = {
    {"llama_bf16", Llama, DType::kBF16},
    {"llama_int8", Llama, DType::kI8},
    {"llama_groups", Llama, DType::kGrouped},
    {"qwen2_tied", [] { return SpecOf("qwen2", R"(,"tie_word_embeddings":true)"); }, DType::kBF16},
    {"mistral_window", [] { return SpecOf("mistral", R"(,"head_dim":10,"sliding_window":9)"); },
     DType::kI8},
    {"mixtral_bf16", Mixtral, DType::kBF16},
    {"mixtral_groups", Mixtral, DType::kGrouped},
    {"shared_bf16", Shared, DType::kBF16},
    {"shared_int8", Shared, DType::kI8},
    {"shared_by_gates_bf16", SharedByGates, DType::kBF16},
    {"shared_by_gates_groups", SharedByGates, DType::kGrouped},
};

class DecoderOnGpuTest : public testing::TestWithParam<Case> {
 protected:
  const DecoderSpec spec_ = GetParam().spec();
  const std::vector<int32_t> tokens_ = Tokens(kStepRows);
};

// A number that is rounded to bf16 or int8 falls on the other side now and then, which is up to
// 2^-8 of it. The layers behind make more of that.
TEST_P(DecoderOnGpuTest, HasTheLogitsOfTheCpuButForRounding) {
  const DType storage = GetParam().storage;
  const auto decoder = LoadOn(NewGpu(), spec_, storage);
  ASSERT_NE(decoder->gpu_plan(), nullptr);
  EXPECT_EQ(decoder->gpu_plan()->layers, 3);
  EXPECT_TRUE(decoder->gpu_plan()->head);
  EXPECT_EQ(decoder->gpu_plan()->host_mlps, spec_.mlp.experts > 0 ? 3 : 0);
  EXPECT_EQ(decoder->gpu_plan()->shared_mlps, spec_.shared_mlp.intermediate > 0 ? 3 : 0);
  const auto here = LoadOn(nullptr, spec_, storage);
  EXPECT_EQ(decoder->weight_bytes(), here->weight_bytes());
  EXPECT_EQ(decoder->step_bytes(), here->step_bytes());
  const int64_t experts = here->weight_bytes() - here->step_bytes();
  EXPECT_GT(decoder->gpu_plan()->freed_bytes, here->step_bytes() / (experts > 0 ? 8 : 2));
  const auto expected = LogitsInChunks(*here, tokens_, kStepRows);
  const double difference = Difference(LogitsInChunks(*decoder, tokens_, kStepRows), expected);
  EXPECT_LT(difference, 0.02);
  RecordProperty("difference", fmt::format("{:.1e}", difference));
}

TEST_P(DecoderOnGpuTest, HasTheSameBitsInEveryChunkAndFromRunToRun) {
  const auto decoder = LoadOn(NewGpu(), spec_, GetParam().storage);
  const auto expected = LogitsInChunks(*decoder, tokens_, kStepRows);
  for (const int64_t chunk : {7, 64}) {
    EXPECT_EQ(LogitsInChunks(*decoder, tokens_, chunk), expected) << "chunks of " << chunk;
  }
  // Single tokens take the emulation long: as many as end in the second tile.
  const std::vector<int32_t> begin(tokens_.begin(), tokens_.begin() + 67);
  const std::vector<float> of_begin(expected.begin(), expected.begin() + 67 * spec_.vocab_size);
  EXPECT_EQ(LogitsInChunks(*decoder, begin, 1), of_begin);
  const auto again = LoadOn(NewGpu(), spec_, GetParam().storage);
  EXPECT_EQ(LogitsInChunks(*again, tokens_, kStepRows), expected);
}

TEST_P(DecoderOnGpuTest, HasTheSameBitsInEveryBatch) {
  const auto decoder = LoadOn(NewGpu(), spec_, GetParam().storage);
  const std::vector<int32_t> texts[] = {Tokens(40, 3), Tokens(33, 8), Tokens(1, 9)};
  std::vector<std::unique_ptr<TextCache>> caches;
  std::vector<Segment> segments;
  std::vector<float> alone;
  for (const std::vector<int32_t>& text : texts) {
    caches.push_back(DenseText(spec_, kContext));
    segments.push_back({text, caches.back().get()});
    const auto logits = LogitsInChunks(*decoder, text, kStepRows);
    alone.insert(alone.end(), logits.begin(), logits.end());
  }
  EXPECT_EQ(Step(*decoder, segments), alone);
}

INSTANTIATE_TEST_SUITE_P(All, DecoderOnGpuTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(DecoderOnGpu, PlacesAsManyLayersAsFit) {
  const DecoderSpec spec = Llama();
  const FakeWeights source(spec);
  const GpuShapes shapes = GpuShapesOf(spec, ResolveTensors(spec, source), DType::kBF16);
  const auto expected = LogitsInChunks(*LoadOn(nullptr, spec, DType::kBF16), Tokens(70), kStepRows);
  const GpuPlan all = PlanGpu(shapes, kStepRows, "a GPU", int64_t{1} << 30);
  EXPECT_EQ(all.layers, 3);
  EXPECT_TRUE(all.head);
  int64_t layers = 3;
  bool head = true;
  std::set<std::pair<int64_t, bool>> seen;
  for (int64_t bytes = all.bytes(); layers > 0; bytes -= shapes.layers.front().bytes() / 4) {
    GpuPlan plan;
    try {
      plan = PlanGpu(shapes, kStepRows, "a GPU", bytes);
    } catch (const Error&) {
      break;
    }
    EXPECT_LE(plan.bytes(), bytes);
    EXPECT_LE(plan.layers, layers);
    EXPECT_LE(plan.head, head);
    layers = plan.layers;
    head = plan.head;
    if (!seen.insert({layers, head}).second) continue;
    const auto gpu = NewGpu(nullptr, bytes);
    const auto decoder = LoadOn(gpu, spec, DType::kBF16);
    EXPECT_EQ(decoder->gpu_plan()->layers, layers);
    EXPECT_EQ(decoder->gpu_plan()->head, head);
    EXPECT_EQ(decoder->gpu_plan()->bytes(), plan.bytes());
    EXPECT_EQ(decoder->gpu_plan()->freed_bytes, plan.freed_bytes);
    EXPECT_EQ(gpu->taken_bytes(), plan.bytes());
    EXPECT_LT(Difference(LogitsInChunks(*decoder, Tokens(70), 64), expected), 0.02);
    EXPECT_EQ(gpu->taken_bytes(), plan.bytes()) << "steps take no more";
  }
  EXPECT_EQ(seen,
            (std::set<std::pair<int64_t, bool>>{{1, false}, {2, false}, {3, false}, {3, true}}));
}

TEST(DecoderOnGpu, RefusesTooLittleMemoryWithTheNumbersOfBoth) {
  const Error error = ErrorOf([&] { LoadOn(NewGpu(nullptr, 20000), Llama(), DType::kBF16); });
  EXPECT_EQ(error.kind(), ErrorKind::kMemory);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("no layer fits into 19.5 KiB of the emulated GPU"),
                                  HasSubstr("a layer takes"), HasSubstr("this machine has")));
}

TEST(DecoderOnGpu, RefusesWhatGpusDoNotCompute) {
  const auto refusal = [](const DecoderSpec& spec) {
    return ErrorOf(ErrorKind::kUnsupported, [&] { RequireGpuLayers(spec); });
  };
  RequireGpuLayers(SpecOf("qwen3"));
  RequireGpuLayers(Mixtral());
  RequireGpuLayers(SpecOf("olmo2"));
  EXPECT_EQ(refusal(SpecOf("cohere")),
            "GPUs compute layers like those of Llama, and this model of the family cohere has "
            "attention and MLP beside each other");
  EXPECT_THAT(refusal(SpecOf("stablelm", R"(,"layer_norm_eps":1e-5)")), HasSubstr("layer norms"));
  const DecoderSpec spec = Llama();
  for (const DType storage : {DType::kF32, DType::kF16}) {
    const FakeWeights source(spec, storage);
    EXPECT_EQ(ErrorOf(ErrorKind::kUnsupported,
                      [&] { GpuShapesOf(spec, ResolveTensors(spec, source), std::nullopt); }),
              fmt::format("GPUs multiply weights in bf16, int8 and groups of 4 to 8 bits, found {}",
                          Name(storage)));
    const auto decoder = Load(spec, source);
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { decoder->PlaceOn(NewGpu(), kStepRows); }),
                HasSubstr("model.layers.0.self_attn"));
    EXPECT_EQ(decoder->gpu_plan(), nullptr);
  }
}

DecoderSpec SmallMixtral() {
  return SmallSpec(R"("model_type":"mixtral","num_key_value_heads":2,"num_local_experts":4,)"
                   R"("num_experts_per_tok":2)");
}

// An expert of all tokens in a storage that GPUs do not multiply stays with the others.
TEST(DecoderOnGpu, LeavesSharedExpertsHereThatGpusDoNotMultiply) {
  const DecoderSpec spec = Shared();
  EXPECT_TRUE(GpuComputesShared(spec, KindOf(spec, 0)));
  DecoderSpec other = spec;
  other.shared_mlp.gated = false;
  EXPECT_FALSE(GpuComputesShared(other, KindOf(other, 0)));
  FakeWeights source(spec, DType::kBF16);
  const auto whole = Load(spec, source);
  for (int64_t i = 0; i < spec.layers; ++i) {
    const std::string name = fmt::format("model.layers.{}.mlp.shared.down.weight", i);
    source.Add(name, DType::kF32, {spec.hidden_size, spec.shared_mlp.intermediate});
  }
  const GpuShapes shapes = GpuShapesOf(spec, ResolveTensors(spec, source), std::nullopt);
  const auto decoder = Load(spec, source);
  const auto expected = LogitsInChunks(*decoder, Tokens(40), kStepRows);
  whole->PlaceOn(NewGpu(), kStepRows);
  decoder->PlaceOn(NewGpu(), kStepRows);
  const GpuPlan &plan = *decoder->gpu_plan(), &more = *whole->gpu_plan();
  EXPECT_EQ(plan.host_mlps, 3);
  EXPECT_EQ(plan.shared_mlps, 0);
  EXPECT_EQ(more.shared_mlps, 3);
  EXPECT_LT(plan.weight_bytes, more.weight_bytes);
  EXPECT_LT(plan.scratch_bytes, more.scratch_bytes);
  EXPECT_LT(plan.host_bytes, more.host_bytes);
  EXPECT_EQ(PlanGpu(shapes, kStepRows, "a GPU", int64_t{1} << 30).bytes(), plan.bytes());
  EXPECT_LT(Difference(LogitsInChunks(*decoder, Tokens(40), kStepRows), expected), 0.02);
}

struct FaultCase {
  const char* name;
  DecoderSpec (*spec)();
};

// Whenever the GPU is lost, the step is an error and the text stays as it was: a decoder on the CPU
// reads on.
class FaultOnGpuTest : public testing::TestWithParam<FaultCase> {
 protected:
  const DecoderSpec spec_ = GetParam().spec();
};

TEST_P(FaultOnGpuTest, ALostGpuIsAnErrorOfTheStep) {
  ExpectErrorWhereverLost(
      *LoadOn(nullptr, spec_, DType::kBF16),
      [&](std::shared_ptr<ops::Gpu> gpu) { return LoadOn(std::move(gpu), spec_, DType::kBF16); },
      [&] { return DenseText(spec_); }, /*least_calls=*/25);
}

// A step of more rows than were planned takes memory, which may be missing. Later steps go on.
TEST(DecoderOnGpu, AFullGpuIsAnErrorOfTheStep) {
  const DecoderSpec spec = Llama();
  const auto script = std::make_shared<DeviceScript>();
  const auto gpu = NewGpu(script);
  auto decoder = Load(spec, FakeWeights(spec), {}, DType::kBF16);
  decoder->PlaceOn(gpu, /*step_rows=*/8);
  const std::vector<int32_t> tokens = Tokens(kStepRows);
  const auto expected = LogitsInChunks(*decoder, tokens, 8);
  const auto text = DenseText(spec, kContext);
  auto fresh = Load(spec, FakeWeights(spec), {}, DType::kBF16);
  const auto other = std::make_shared<DeviceScript>();
  fresh->PlaceOn(NewGpu(other), /*step_rows=*/8);
  other->is_full = true;
  const Error error = ErrorOf([&] { Step(*fresh, {{tokens, text.get()}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kMemory);
  EXPECT_THAT(error.what(), HasSubstr("the emulated GPU lacks memory"));
  EXPECT_EQ(text->length(), 0);
  other->is_full = false;
  EXPECT_EQ(Step(*fresh, {{tokens, text.get()}}), expected);

  // The limit counts, too.
  auto narrow = Load(spec, FakeWeights(spec), {}, DType::kBF16);
  narrow->PlaceOn(NewGpu(nullptr, decoder->gpu_plan()->bytes()), /*step_rows=*/8);
  const auto again = DenseText(spec, kContext);
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory,
                      [&] {
                        Step(*narrow, {{tokens, again.get()}});
                      }),
              AllOf(HasSubstr("are needed"), HasSubstr("that may be used are free")));
}

// Pageable copies would let the host wait, and not run beside kernels.
TEST_P(FaultOnGpuTest, LayersCopyThroughPageLockedMemoryAlone) {
  const auto script = std::make_shared<DeviceScript>();
  const auto decoder = LoadOn(NewGpu(script), spec_, DType::kBF16);
  EXPECT_GT(script->pageable_copies, 0) << "weights were loaded";
  script->pageable_copies = 0;
  Forward(*decoder, {3, 0, 10, 7, 5}, *DenseText(spec_));
  EXPECT_EQ(script->pageable_copies, 0);
}

TEST_P(FaultOnGpuTest, ACancelledStepDidNotHappen) {
  const auto script = std::make_shared<DeviceScript>();
  ExpectNothingWhereverCancelled(
      *LoadOn(NewGpu(script), spec_, DType::kI8), *script, [&] { return DenseText(spec_); },
      /*least_calls=*/25);
}

const FaultCase kFaultCases[] = {
    {"llama", SmallLlama},
    {"mixtral", SmallMixtral},
    {"shared", [] { return WithSharedExpert(SmallMixtral()); }},
};
INSTANTIATE_TEST_SUITE_P(All, FaultOnGpuTest, testing::ValuesIn(kFaultCases),
                         [](const auto& info) { return info.param.name; });

TEST(DecoderOnGpu, RefusesRowsThatAreNoNumbersWhereItQuantizes) {
  const DecoderSpec spec = Llama();
  for (const DType storage : {DType::kI8, DType::kGrouped}) {
    FakeWeights source(spec);
    for (int64_t i = 0; i < spec.hidden_size; ++i) {
      source.Set(spec.names.embedding + ".weight", 5 * spec.hidden_size + i, INFINITY);
    }
    auto decoder = Load(spec, source, {}, storage);
    decoder->PlaceOn(NewGpu(), kStepRows);
    const auto text = DenseText(spec, kContext);
    const std::vector<int32_t> good = {1, 2}, bad = {1, 5, 2};
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                        [&] {
                          Step(*decoder, {{bad, text.get()}});
                        }),
                HasSubstr("held NaN or infinity"));
    EXPECT_EQ(text->length(), 0);
    for (const float logit : Step(*decoder, {{good, text.get()}})) {
      ASSERT_TRUE(std::isfinite(logit));
    }
  }
}

}  // namespace
}  // namespace godwit::decoder_gpu_test
