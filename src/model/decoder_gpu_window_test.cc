// Decoders on an emulated GPU that attends to the keys near a token while the CPU attends to the
// others. They are compared with the same decoder on the CPU, over chunks, batches and histories of
// a text, cancelled and lost at every call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/decoder_gpu_test_support.h"
#include "model/gpu_plan.h"
#include "model/model_test_support.h"
#include "ops/gpu/gpu.h"

namespace godwit::decoder_gpu_window_test {
namespace {

using on_gpu::DeviceScript;
using on_gpu::Difference;
using on_gpu::ExpectErrorWhereverLost;
using on_gpu::ExpectNothingWhereverCancelled;
using on_gpu::NewGpu;
using on_gpu::Tokens;
using ::testing::HasSubstr;

constexpr int64_t kContext = 512;
constexpr int64_t kStepRows = 90;

DecoderSpec SpecOf(const std::string& type, const std::string& fields = "") {
  return on_gpu::SpecOf({.layers = 2, .hidden = 32, .intermediate = 40, .context = kContext}, type,
                        fields);
}

struct Case {
  std::string name;
  DecoderSpec spec;
  std::string kv;
  DType kv_type;
  int64_t window;
  int64_t tokens;
  int64_t question;
  std::string prefill = "";
  // The part of the plan's weights that fits: other layers compute on the CPU.
  double fitting = 1;
};

// Rows that choose blocks see one of their sinks, a window of 64 tokens and a block.
constexpr const char* kBlocks = "blocks:local_windows_len=64,second_block_count=1";

const Case kCases[] = {
    {"dense_f32", SpecOf("llama", R"(,"head_dim":14)"), "dense", DType::kF32, 64, 150, 0},
    {"dense_bf16", SpecOf("llama", R"(,"attention_bias":true)"), "dense", DType::kBF16, 128, 170,
     0},
    {"blocks", SpecOf("llama"), kBlocks, DType::kF32, 128, 330, 310},
    {"blocks_f16_one_layer", SpecOf("qwen2"), kBlocks, DType::kF16, 64, 300, 280, "", 0.6},
    {"small_blocks", SpecOf("llama"),
     "blocks:block_size=16,local_windows_len=100,second_block_count=3", DType::kBF16, 128, 290,
     265},
    {"model_window", SpecOf("mistral", R"(,"sliding_window":80)"), "dense", DType::kBF16, 64, 150,
     0},
    {"read_by_gpu", SpecOf("llama"), kBlocks, DType::kBF16, 128, 290, 260, "gpu"},
    {"read_by_star", SpecOf("llama"), "dense", DType::kF32, 64, 180, 150, "star:block=64"},
};

std::unique_ptr<Decoder> Here(const DecoderSpec& spec) {
  return Load(spec, FakeWeights(spec), {}, DType::kBF16);
}

std::unique_ptr<Decoder> There(const DecoderSpec& spec, std::shared_ptr<ops::Gpu> gpu,
                               const GpuWindow& window, int64_t step_rows = kStepRows) {
  auto decoder = Here(spec);
  decoder->PlaceOn(std::move(gpu), step_rows, /*attends=*/true, window);
  return decoder;
}

class DecoderGpuWindowTest : public testing::TestWithParam<Case> {
 protected:
  const Case& c() const { return GetParam(); }
  const DecoderSpec& spec() const { return c().spec; }

  // Memory for two texts, of whatever type.
  std::unique_ptr<Decoder> OnGpu(int64_t texts = 2,
                                 std::shared_ptr<DeviceScript> script = nullptr) const {
    const GpuWindow window{.tokens = c().window,
                           .texts = texts * (c().kv_type == DType::kF32 ? 2 : 1)};
    auto whole = There(spec(), NewGpu(script), window);
    if (c().fitting == 1) return whole;
    const GpuPlan& plan = *whole->gpu_plan();
    const auto weights = static_cast<double>(plan.weight_bytes) * c().fitting;
    auto decoder = There(
        spec(),
        NewGpu(script, plan.scratch_bytes + plan.window_bytes + static_cast<int64_t>(weights)),
        window);
    EXPECT_EQ(decoder->gpu_plan()->layers, 1);
    return decoder;
  }

  std::unique_ptr<TextCache> NewText(int64_t window) const {
    auto text = MakeTextCache(Geometry(spec()), {.spec = c().kv,
                                                 .kv_type = c().kv_type,
                                                 .context = kContext,
                                                 .prefill = c().prefill,
                                                 .gpu_window = window});
    text->SetQuestion(c().question);
    return text;
  }

  // The logits of tokens from `begin` to `end` of a text that has those before.
  std::vector<float> Read(const Decoder& decoder, TextCache& text, int64_t chunk, int64_t begin,
                          int64_t end) const {
    std::vector<float> all;
    while (begin < end) {
      const int64_t to = std::min(end, begin + chunk);
      const std::vector<int32_t> part(tokens_.begin() + begin, tokens_.begin() + to);
      const std::vector<float> logits = Step(decoder, {{part, &text}});
      all.insert(all.end(), logits.begin(), logits.end());
      begin = to;
    }
    return all;
  }
  std::vector<float> ReadAll(const Decoder& decoder, int64_t window, int64_t chunk) const {
    const auto text = NewText(window);
    return Read(decoder, *text, chunk, 0, c().tokens);
  }
  std::vector<float> LogitsFrom(const std::vector<float>& all, int64_t row) const {
    return {all.begin() + row * spec().vocab_size, all.end()};
  }

  const std::vector<int32_t> tokens_ = Tokens(GetParam().tokens);
};

TEST_P(DecoderGpuWindowTest, HasTheLogitsOfTheCpuButForRounding) {
  const auto script = std::make_shared<DeviceScript>();
  const auto decoder = OnGpu(2, script);
  const auto text = NewText(0);
  const auto expected = c().prefill == "gpu" ? Read(*decoder, *text, kStepRows, 0, c().tokens)
                                             : Read(*Here(spec()), *text, kStepRows, 0, c().tokens);
  script->calls = 0;
  const auto logits = ReadAll(*decoder, c().window, kStepRows);
  const int64_t calls = std::exchange(script->calls, 0);
  const double difference = Difference(logits, expected);
  EXPECT_LT(difference, 0.02);
  RecordProperty("difference", fmt::format("{:.1e}", difference));
  // The context has the bits of a text without a window.
  const auto without = ReadAll(*decoder, 0, kStepRows);
  const int64_t context = c().question * spec().vocab_size;
  EXPECT_TRUE(std::equal(logits.begin(), logits.begin() + context, without.begin()));
  // A piece of rows has a copy of queries, one of the table, two kernels and a copy of states.
  EXPECT_GE(calls, script->calls + spec().layers * 5);
}

TEST_P(DecoderGpuWindowTest, HasTheSameBitsInEveryChunkBatchAndFork) {
  const auto decoder = OnGpu();
  const int64_t from = std::max<int64_t>(0, c().question - 3);
  const auto text = NewText(c().window);
  Read(*decoder, *text, kStepRows, 0, from);
  const auto begun = text->Fork();
  const auto expected = Read(*decoder, *text, kStepRows, from, c().tokens);
  for (const int64_t chunk : {1, 7, 64}) {
    const auto fork = begun->Fork();
    EXPECT_EQ(Read(*decoder, *fork, chunk, from, c().tokens), expected) << "chunks of " << chunk;
  }
  // Memory for one text, beside one that has no window.
  const auto other = OnGpu(1);
  EXPECT_EQ(LogitsFrom(ReadAll(*other, c().window, 64), from), expected) << "another GPU";
  const auto fork = begun->Fork(), beside = begun->Fork(), without = NewText(0);
  const std::vector<int32_t> rest(tokens_.begin() + from, tokens_.end()), few = {9, 8, 1};
  const auto all = Step(*decoder, {{few, beside.get()}, {few, without.get()}, {rest, fork.get()}});
  EXPECT_EQ(LogitsFrom(all, 2 * std::ssize(few)), expected) << "in a batch";
}

INSTANTIATE_TEST_SUITE_P(All, DecoderGpuWindowTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Texts that share beginnings, return, and grow by trees of drafts; some steps fail.
TEST(DecoderGpuWindow, HistoriesOfATextLeaveItsBits) {
  const DecoderSpec spec = SpecOf("llama");
  const GpuWindow window{.tokens = 128, .texts = 2};
  const auto script = std::make_shared<DeviceScript>();
  const auto decoder = There(spec, NewGpu(script), window), anew = There(spec, NewGpu(), window);
  struct Told {
    std::unique_ptr<TextCache> text;
    std::vector<int32_t> tokens;
  };
  const auto new_text = [&] {
    return MakeTextCache(Geometry(spec),
                         {.kv_type = DType::kBF16, .context = kContext, .gpu_window = 128});
  };
  std::vector<Told> texts;
  texts.reserve(3);
  texts.push_back({new_text(), {}});
  std::mt19937 random(3);
  const auto draw = [&](int64_t n) { return static_cast<int64_t>(random()) % n; };
  const auto draw_tokens = [&](int64_t count) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(draw(75)));
    return tokens;
  };
  for (int step = 0; step < 60; ++step) {
    Told& told = texts[draw(std::ssize(texts))];
    const auto length = std::ssize(told.tokens);
    switch (length < 100 ? 0 : draw(6)) {
      case 1:
        told.tokens.resize(length - draw(90));
        told.text->Truncate(std::ssize(told.tokens));
        break;
      case 2:
        if (texts.size() < 3) texts.push_back({told.text->Fork(), told.tokens});
        break;
      case 3: {
        const std::vector<int32_t> parents = {-1, 0, 1, 0, -1, 4}, tokens = draw_tokens(6);
        Step(*decoder, {{tokens, told.text.get(), Phase::kDecode, parents}});
        const int64_t row = draw(8);
        if (row >= 6) break;  // none of them is kept
        told.text->Accept(row);
        std::vector<int32_t> path;
        for (int64_t at = row; at >= 0; at = parents[at]) path.push_back(tokens[at]);
        told.tokens.insert(told.tokens.end(), path.rbegin(), path.rend());
        break;
      }
      case 4: {
        CancelToken cancel;
        const int64_t calls = script->calls + 10 + draw(20);
        script->on_call = [&](int64_t call) {
          if (call == calls) cancel.Cancel();
        };
        const Error error = ErrorOf([&] {
          Step(*decoder, {{draw_tokens(5), told.text.get()}}, &cancel);
        });
        EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
        script->on_call = nullptr;
        break;
      }
      default: {
        const std::vector<int32_t> tokens = draw_tokens(length < 100 ? 70 : 1 + draw(9));
        Step(*decoder, {{tokens, told.text.get()}});
        told.tokens.insert(told.tokens.end(), tokens.begin(), tokens.end());
      }
    }
    if (std::ssize(told.tokens) > 300) told = {new_text(), {}};
    if (step % 6 != 5) continue;
    // One more token has the bits of a text that was read at once.
    const auto text = new_text(), fork = told.text->Fork();
    std::vector<int32_t> all = told.tokens;
    all.push_back(7);
    const auto expected = Step(*anew, {{all, text.get()}});
    const std::vector<int32_t> one = {7};
    ASSERT_EQ(Step(*decoder, {{one, fork.get()}}),
              std::vector<float>(expected.end() - spec.vocab_size, expected.end()))
        << "after step " << step;
  }
  EXPECT_EQ(texts.size(), 3u);
}

TEST(DecoderGpuWindow, CountsItsMemory) {
  const DecoderSpec spec = SpecOf("llama");
  const auto gpu = NewGpu();
  const auto decoder = There(spec, gpu, {.tokens = 192, .texts = 3});
  const GpuPlan& plan = *decoder->gpu_plan();
  // Layers, texts, tokens, KV heads, keys and values of two bytes.
  EXPECT_EQ(plan.window_bytes, 2 * 3 * 192 * 2 * (8 + 16) * 2);
  EXPECT_EQ(gpu->taken_bytes(), plan.bytes());
  const auto text = MakeTextCache(Geometry(spec), {.context = kContext, .gpu_window = 192});
  Step(*decoder, {{Tokens(kStepRows), text.get()}});
  EXPECT_EQ(gpu->taken_bytes(), plan.bytes()) << "steps take no more";
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory,
                      [&] {
                        There(spec, NewGpu(nullptr, plan.bytes()), {192, 1000});
                      }),
              HasSubstr(", and keys and values that it keeps "));
  EXPECT_EQ(ErrorOf(ErrorKind::kInput, [&] { There(spec, NewGpu(), {.tokens = 100}); }),
            "a GPU keeps keys and values of a multiple of 64 tokens of each text, found 100 tokens "
            "of 1 texts");
}

TEST(DecoderGpuWindow, RefusesATextThatNeedsMore) {
  const DecoderSpec spec = SpecOf("llama");
  const auto refusal = [&](const Decoder& decoder, int64_t window, DType kv_type, ErrorKind kind) {
    const auto text = MakeTextCache(
        Geometry(spec), {.kv_type = kv_type, .context = kContext, .gpu_window = window});
    const std::string error = ErrorOf(kind, [&] { Step(decoder, {{Tokens(150), text.get()}}); });
    EXPECT_EQ(text->length(), 0);
    return error;
  };
  const auto decoder = There(spec, NewGpu(), {.tokens = 128});
  EXPECT_EQ(refusal(*decoder, 192, DType::kBF16, ErrorKind::kMemory),
            "the GPU keeps the keys and values of 128 tokens of a text, and 192 are near");
  EXPECT_EQ(refusal(*decoder, 128, DType::kF32, ErrorKind::kMemory),
            "the GPU has memory for the keys and values of 64 tokens, stored as f32, and 128 are "
            "near");
  const std::string none =
      "a GPU is to attend to near keys, and this model has none that keeps them";
  EXPECT_EQ(refusal(*Here(spec), 64, DType::kF16, ErrorKind::kUnsupported), none);
  EXPECT_EQ(refusal(*There(spec, NewGpu(), {}), 64, DType::kF16, ErrorKind::kUnsupported), none);
}

TEST(DecoderGpuWindow, ALostGpuIsAnErrorOfTheStep) {
  const DecoderSpec spec = SmallLlama();
  const GpuWindow window{.tokens = 64};
  const auto new_text = [&] {
    return MakeTextCache(Geometry(spec), {.context = 64, .gpu_window = 64});
  };
  ExpectErrorWhereverLost(
      *There(spec, NewGpu(), window),
      [&](std::shared_ptr<ops::Gpu> gpu) { return There(spec, std::move(gpu), window); }, new_text,
      /*least_calls=*/40);
}

TEST(DecoderGpuWindow, ACancelledStepDidNotHappen) {
  const DecoderSpec spec = SmallLlama();
  const auto script = std::make_shared<DeviceScript>();
  ExpectNothingWhereverCancelled(
      *There(spec, NewGpu(script), {.tokens = 64}), *script,
      [&] { return MakeTextCache(Geometry(spec), {.context = 64, .gpu_window = 64}); },
      /*least_calls=*/40);
}

}  // namespace
}  // namespace godwit::decoder_gpu_window_test
