// Engines whose layers compute on an emulated GPU: answers, caches, snapshots, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "engine/engine_test_support.h"
#include "godwit/engine.h"

namespace godwit::device_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The checkpoint's floats as bf16, which a GPU multiplies.
LoadOptions Options(const std::string& device) {
  return {.threads = 2, .weights = "bf16", .device = device, .step_tokens = 64};
}

class DeviceTest : public testing::Test {
 protected:
  static Answer Ask(const Engine& engine, const SessionOptions& session, const Tokens& prompt,
                    int64_t tokens = 12) {
    return AnswerOf(engine.NewSession(session).Generate(prompt, GreedyWithLogprobs(tokens)));
  }
};

TEST_F(DeviceTest, AnswersAsTheCpuDoes) {
  const Engine here(kTiny, Options("cpu")), there(kTiny, Options("emulated"));
  EXPECT_EQ(here.device().name, "");
  EXPECT_EQ(there.device().name, "the emulated GPU");
  EXPECT_EQ(there.device().layers, there.device().model_layers);
  EXPECT_TRUE(there.device().head);
  EXPECT_EQ(there.weight_bytes(), here.weight_bytes());
  const Tokens prompt = Prompt(1, 150);
  ExpectNear(there.NewSession({}).Generate(prompt, GreedyWithLogprobs(8)),
             here.NewSession({}).Generate(prompt, GreedyWithLogprobs(8)), 0.05);
}

TEST_F(DeviceTest, EveryPolicyHasTheSameBitsInEveryChunk) {
  const Engine engine(kTiny, Options("emulated"));
  const Tokens prompt = Prompt(2, 300);
  for (const char* const kv :
       {"dense", "sinks:4+60", "blocks:initial=64,local_windows_len=64,second_block_count=1"}) {
    const Answer whole = Ask(engine, {.kv = kv, .chunk_tokens = 512}, prompt);
    EXPECT_EQ(Ask(engine, {.kv = kv, .chunk_tokens = 7}, prompt), whole) << kv;
  }
}

TEST_F(DeviceTest, ACacheHitAndASnapshotChangeNoBit) {
  const TempFolder saved;
  LoadOptions options = Options("emulated");
  options.cache_dir = saved.path();
  options.cache_every_tokens = 64;
  const Tokens prompt = Prompt(3, 140);
  Answer expected;
  {
    const Engine engine(kTiny, options);
    Session session = engine.NewSession({});
    const GenerateResult first = session.Generate(prompt, GreedyWithLogprobs(12));
    expected = AnswerOf(first);
    const GenerateResult second = session.Generate(prompt, GreedyWithLogprobs(12));
    EXPECT_GT(second.cached_tokens, 100);
    EXPECT_EQ(AnswerOf(second), expected);
    session.Save();
  }
  const Engine engine(kTiny, options);
  const GenerateResult restored = engine.NewSession({}).Generate(prompt, GreedyWithLogprobs(12));
  EXPECT_GT(restored.cached_tokens, 100);
  EXPECT_EQ(AnswerOf(restored), expected);
  // The CPU's own bits are others.
  LoadOptions on_cpu = options;
  on_cpu.device = "cpu";
  EXPECT_EQ(Engine(kTiny, on_cpu).NewSession({}).Generate(prompt, Greedy(1)).cached_tokens, 0);
}

TEST_F(DeviceTest, DraftTokensChangeNoBit) {
  const Engine engine(kTiny, Options("emulated"));
  const Tokens prompt = Prompt(4, 90);
  GenerateOptions options = GreedyWithLogprobs(24);
  options.draft = "ngram";
  EXPECT_EQ(AnswerOf(engine.NewSession({}).Generate(prompt, options)), Ask(engine, {}, prompt, 24));
}

TEST_F(DeviceTest, ASmallGpuHasSomeLayers) {
  LoadOptions options = Options("emulated");
  const DeviceUse all = Engine(kTiny, options).device();
  options.gpu_memory_bytes = all.scratch_bytes + all.weight_bytes / 2;
  const Engine engine(kTiny, options);
  EXPECT_GT(engine.device().layers, 0);
  EXPECT_LT(engine.device().layers, all.model_layers);
  EXPECT_FALSE(engine.device().head);
  EXPECT_EQ(engine.device().limit_bytes, options.gpu_memory_bytes);
  const Tokens prompt = Prompt(5, 70);
  ExpectNear(engine.NewSession({}).Generate(prompt, GreedyWithLogprobs(4)),
             Engine(kTiny, Options("cpu")).NewSession({}).Generate(prompt, GreedyWithLogprobs(4)),
             0.05);
}

TEST_F(DeviceTest, RefusesWhatItCannotUse) {
  const auto refusal = [](ErrorKind kind, const LoadOptions& options) {
    return ErrorOf(kind, [&] { Engine(kTiny, options); });
  };
  EXPECT_EQ(refusal(ErrorKind::kInput, Options("gpu")),
            "a device is cpu, cuda, cuda:N with the number of a GPU, or emulated, found \"gpu\"");
  for (const char* const name : {"cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "Cuda"}) {
    refusal(ErrorKind::kInput, Options(name));
  }
  LoadOptions no_gpu = Options("cpu");
  no_gpu.gpu_memory_bytes = 1 << 20;
  EXPECT_EQ(refusal(ErrorKind::kInput, no_gpu),
            "1.0 MiB of a GPU's memory are set, and the model computes on the CPU alone");
  LoadOptions narrow = Options("emulated");
  narrow.gpu_memory_bytes = 1000;
  EXPECT_THAT(refusal(ErrorKind::kMemory, narrow),
              AllOf(HasSubstr("no layer fits into 1000 B of the emulated GPU"),
                    HasSubstr("this machine has")));
  LoadOptions floats = Options("emulated");
  floats.weights = "f32";
  bool packed = false;
  floats.on_progress = [&](int64_t, int64_t) { packed = true; };
  EXPECT_EQ(refusal(ErrorKind::kUnsupported, floats),
            "GPUs multiply weights in bf16, int8 and groups of 4 to 8 bits, found F32");
  EXPECT_FALSE(packed) << "weights were read in vain";
}

// Contexts that the GPU reads: beside the CPU, in chunks, by requests at once, cached and saved.
TEST_F(DeviceTest, AGpuReadsContextsWithBitsOfItsOwn) {
  LoadOptions with = Options("emulated");
  with.gpu_attention = true;
  const TempFolder saved;
  with.cache_dir = saved.path();
  with.cache_every_tokens = 64;
  const Tokens prompt = Prompt(6, 200);
  const SessionOptions by_gpu{.prefill = "gpu"};
  GenerateOptions ask = GreedyWithLogprobs(8);
  ask.query_tokens = 20;
  Answer expected;
  {
    const Engine engine(kTiny, with);
    EXPECT_TRUE(engine.device().attends);
    EXPECT_GT(engine.device().host_bytes, 0);
    const GenerateResult there = engine.NewSession(by_gpu).Generate(prompt, ask);
    expected = AnswerOf(there);
    const GenerateResult dense = engine.NewSession({}).Generate(prompt, ask);
    EXPECT_EQ(dense.cached_tokens, 0) << "texts that were read in another way share nothing";
    ExpectNear(there, dense, 0.05);
    for (const int64_t chunk : {1, 7, 64}) {
      const SessionOptions chunked{.prefill = "gpu", .chunk_tokens = chunk, .owner = "another"};
      EXPECT_EQ(AnswerOf(engine.NewSession(chunked).Generate(prompt, ask)), expected) << chunk;
    }
    // Requests at once, one of which the CPU reads; and a hit.
    Generation other = engine.Submit(Prompt(7, 90), ask, {});
    Generation same = engine.Submit(prompt, ask, {.prefill = "gpu", .owner = "a third"});
    EXPECT_EQ(AnswerOf(same.Wait()), expected);
    other.Wait();
    Session session = engine.NewSession(by_gpu);
    const GenerateResult hit = session.Generate(prompt, ask);
    EXPECT_GT(hit.cached_tokens, 150);
    EXPECT_EQ(AnswerOf(hit), expected);
    session.Save();
  }
  const Engine engine(kTiny, with);
  const GenerateResult restored = engine.NewSession(by_gpu).Generate(prompt, ask);
  EXPECT_GT(restored.cached_tokens, 100);
  EXPECT_EQ(AnswerOf(restored), expected);
  const GenerateResult other =
      engine.NewSession({.kv = "blocks", .prefill = "gpu"}).Generate(prompt, ask);
  EXPECT_GE(other.cached_tokens, 128) << "a context that is read alike serves other policies";
}

// An answer becomes context: it is read again, by the GPU.
TEST_F(DeviceTest, AnAnswerThatBecomesContextIsReadByTheGpu) {
  LoadOptions with = Options("emulated");
  with.gpu_attention = true;
  const Engine engine(kTiny, with);
  const SessionOptions by_gpu{.prefill = "gpu"};
  Session chat = engine.NewSession(by_gpu);
  Tokens text = Prompt(8, 80);
  const GenerateResult first = chat.Generate(text, GreedyWithLogprobs(12));
  text.insert(text.end(), first.tokens.begin(), first.tokens.end());
  const Tokens more = Prompt(9, 15);
  text.insert(text.end(), more.begin(), more.end());
  const GenerateResult second = chat.Generate(text, GreedyWithLogprobs(12));
  EXPECT_GT(second.cached_tokens, 60);
  EXPECT_LE(second.cached_tokens, 80);
  EXPECT_EQ(AnswerOf(second), AnswerOf(engine.NewSession({.prefill = "gpu", .owner = "another"})
                                           .Generate(text, GreedyWithLogprobs(12))));
}

TEST_F(DeviceTest, RefusesToReadWhereNoGpuAttends) {
  const auto refusal = [](ErrorKind kind, const LoadOptions& options,
                          const SessionOptions& session) {
    return ErrorOf(kind, [&] { Engine(kTiny, options).NewSession(session); });
  };
  for (const char* const device : {"cpu", "emulated"}) {
    EXPECT_EQ(refusal(ErrorKind::kUnsupported, Options(device), {.prefill = "gpu"}),
              "prefill gpu needs a model that was loaded with attention on a GPU, and this one was "
              "not")
        << device;
  }
  LoadOptions with = Options("cpu");
  with.gpu_attention = true;
  EXPECT_EQ(refusal(ErrorKind::kInput, with, {}),
            "attention on a GPU is set, and the model computes on the CPU alone");
  with.device = "emulated";
  EXPECT_THAT(refusal(ErrorKind::kUnsupported, with, {.kv = "sinks:4+60", .prefill = "gpu"}),
              HasSubstr("keeps every token"));
  EXPECT_THAT(refusal(ErrorKind::kUnsupported, with, {.prefill = "gpu", .kv_type = "int8"}),
              HasSubstr("f32, f16 or bf16, found int8"));
}

// A machine without a GPU says so in one sentence. One that has a GPU loads the model there.
TEST_F(DeviceTest, SaysThatThereIsNoGpu) {
  try {
    const Engine engine(kTiny, Options("cuda:250"));
    FAIL() << "250 GPUs";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), testing::AnyOf(HasSubstr("no kernels for GPUs"),
                                             HasSubstr("libcuda.so.1"), HasSubstr("no GPU")));
  }
}

}  // namespace
}  // namespace godwit::device_test
