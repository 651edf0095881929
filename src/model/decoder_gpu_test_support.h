// Shared parts of the tests of decoders on an emulated GPU. Only *_test.cc files include it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "cuda/faulty_device_test_support.h"
#include "model/model_test_support.h"
#include "ops/gpu/gpu.h"

namespace godwit::on_gpu {

using cuda::DeviceScript;

// A decoder of a family with four heads, and keys of two.
struct Sizes {
  int64_t layers, hidden, intermediate, context;
};
inline DecoderSpec SpecOf(const Sizes& sizes, const std::string& type, const std::string& fields) {
  return DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type":"{}","vocab_size":75,"num_hidden_layers":{},"hidden_size":{},)"
                  R"("intermediate_size":{},"num_attention_heads":4,"num_key_value_heads":2,)"
                  R"("max_position_embeddings":{}{}}})",
                  type, sizes.layers, sizes.hidden, sizes.intermediate, sizes.context, fields),
      "config.json"));
}

inline std::vector<int32_t> Tokens(int64_t count, int32_t first = 1) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((first + i * i * 3 + 5 * i) % 75));
  }
  return tokens;
}

inline std::shared_ptr<ops::Gpu> NewGpu(std::shared_ptr<DeviceScript> script = nullptr,
                                        int64_t memory_bytes = 0) {
  if (script == nullptr) script = std::make_shared<DeviceScript>();
  return std::make_shared<ops::Gpu>(std::make_unique<cuda::FaultyDevice>(script), memory_bytes);
}

// The largest difference, as a part of the largest number.
inline double Difference(const std::vector<float>& logits, const std::vector<float>& expected) {
  EXPECT_EQ(logits.size(), expected.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < std::min(logits.size(), expected.size()); ++i) {
    EXPECT_FALSE(std::isnan(logits[i])) << i;
    largest = std::max(largest, std::fabs(double{expected[i]}));
    difference = std::max(difference, std::fabs(double{logits[i]} - expected[i]));
  }
  EXPECT_GT(largest, 0.01);
  return difference / largest;
}

// One step without its logits.
inline void Forward(const Decoder& decoder, const std::vector<int32_t>& tokens, TextCache& text,
                    const CancelToken* cancel = nullptr) {
  ThreadPool pool(2);
  Workspace workspace;
  const Segment segment{.tokens = tokens, .text = &text};
  const auto hidden = workspace.Matrix<float>(std::ssize(tokens), decoder.hidden_size());
  decoder.Forward({.pool = pool,
                   .kernels = *kernels::SelectIsa("").table,
                   .workspace = workspace,
                   .cancel = cancel},
                  {&segment, 1}, hidden);
}

using NewText = std::function<std::unique_ptr<TextCache>()>;

// Whenever the GPU is lost, the step is an error and the text stays as it was. `reader`, which has
// another GPU or none, reads on. load: makes a decoder on the GPU. least_calls: of the device, in a
// step.
inline void ExpectErrorWhereverLost(
    const Decoder& reader,
    const std::function<std::unique_ptr<Decoder>(std::shared_ptr<ops::Gpu> gpu)>& load,
    const NewText& new_text, int64_t least_calls) {
  const std::vector<int32_t> prompt = {3, 0, 10, 7}, next = {1, 9, 9, 2, 4};
  const auto reference = new_text();
  Step(reader, {{prompt, reference.get()}});
  const auto expected = Step(reader, {{next, reference.get()}});
  const auto script = std::make_shared<DeviceScript>();
  int64_t begin = 0, end = 0;
  {
    const auto decoder = load(NewGpu(script));
    begin = script->calls;
    Forward(*decoder, next, *new_text());
    end = script->calls;
  }
  ASSERT_GT(end, begin + least_calls);
  for (int64_t lost_at = begin; lost_at < end; ++lost_at) {
    *script = {};
    const auto decoder = load(NewGpu(script));
    script->lost_at = lost_at;
    const auto text = new_text();
    Step(reader, {{prompt, text.get()}});
    for (int i = 0; i < 2; ++i) {  // it stays lost
      const Error error = ErrorOf([&] { Forward(*decoder, next, *text); });
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_STREQ(error.what(), "the emulated GPU is lost: a test took it");
    }
    EXPECT_EQ(text->length(), std::ssize(prompt));
    EXPECT_EQ(Step(reader, {{next, text.get()}}), expected) << "lost at call " << lost_at - begin;
  }
}

// Wherever a step is cancelled, it ends within a layer's work, and did not happen. script: of the
// decoder's GPU.
inline void ExpectNothingWhereverCancelled(const Decoder& decoder, DeviceScript& script,
                                           const NewText& new_text, int64_t least_calls) {
  const std::vector<int32_t> prompt = {3, 0, 10, 7}, next = {1, 9, 9, 2, 4};
  const auto reference = new_text();
  Step(decoder, {{prompt, reference.get()}});
  const auto expected = Step(decoder, {{next, reference.get()}});
  script.calls = 0;
  Forward(decoder, prompt, *new_text());
  // The last call waits for the results of the step, which nothing stops any more.
  const int64_t calls = script.calls - 1;
  ASSERT_GT(calls, least_calls);
  for (int64_t cancel_at = 0; cancel_at < calls; ++cancel_at) {
    CancelToken cancel;
    const auto text = new_text();
    Step(decoder, {{prompt, text.get()}}, &cancel);
    int64_t calls_behind = 0;
    script.calls = 0;
    script.on_call = [&](int64_t call) {
      if (call == cancel_at) cancel.Cancel();
      if (call > cancel_at) ++calls_behind;
    };
    EXPECT_EQ(ErrorOf([&] { Forward(decoder, next, *text, &cancel); }).kind(),
              ErrorKind::kCancelled)
        << "cancelled at call " << cancel_at;
    script.on_call = nullptr;
    EXPECT_LT(calls_behind, calls / decoder.spec().layers + 5) << "more than a layer's work";
    EXPECT_EQ(text->length(), std::ssize(prompt));
    cancel.Reset();
    EXPECT_EQ(Step(decoder, {{next, text.get()}}, &cancel), expected);
  }
}

}  // namespace godwit::on_gpu
