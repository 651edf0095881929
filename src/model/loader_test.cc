#include "model/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "model/hf_fields.h"
#include "model/model_test_support.h"

namespace godwit::loader_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
const std::vector<int32_t> kTokens = {3, 0, 10, 7, 7, 1};

std::string Refusal(const DecoderSpec& spec, const WeightSource& source) {
  const Error error = ErrorOf([&] { Load(spec, source); });
  EXPECT_EQ(error.kind(), ErrorKind::kFormat);
  return error.what();
}

TEST(LoaderTest, LoadsEveryStorageType) {
  for (const DType dtype : kFloatTypes) {
    const DecoderSpec spec = SmallLlama();
    const auto decoder = Load(spec, FakeWeights(spec, dtype));
    EXPECT_EQ(decoder->weight_types().layers, dtype);
    EXPECT_GT(decoder->weight_bytes(), 0);
    for (const float logit : LogitsOf(*decoder, kTokens)) ASSERT_TRUE(std::isfinite(logit));
  }
}

TEST(LoaderTest, ConvertsWhatItLoads) {
  for (const DType dtype : kFloatTypes) {
    const DecoderSpec spec = SmallLlama();
    const FakeWeights source(spec, dtype);
    const ModelTensors tensors = ResolveTensors(spec, source);
    for (const WeightType& type : kWeightTypes) {
      const auto decoder = Load(spec, source, {}, type.dtype);
      EXPECT_EQ(decoder->weight_types().layers, type.dtype);
      EXPECT_EQ(decoder->weight_bytes(), LoadedBytes(tensors, type.dtype));
      EXPECT_EQ(decoder->step_bytes(), StepBytes(spec, tensors, type.dtype));
      for (const float logit : LogitsOf(*decoder, kTokens)) ASSERT_TRUE(std::isfinite(logit));
    }
    // Widening changes nothing.
    if (dtype == DType::kF16) {
      EXPECT_EQ(LogitsOf(*Load(spec, source, {}, DType::kF32), kTokens),
                LogitsOf(*Load(spec, source), kTokens));
    }
  }
}

// Side by side, weights lie on large pages (tensor/arena.h).
TEST(LoaderTest, WeightsLieSideBySide) {
  const DecoderSpec spec = SmallLlama();
  for (const WeightType& type : kWeightTypes) {
    const auto decoder = Load(spec, FakeWeights(spec), {}, type.dtype);
    std::map<const std::byte*, int64_t> parts;
    const LinearObserver observer = [&](const Weight& w, const ops::LinearRows&) {
      parts[w.panels.data()] = w.panels.bytes();
    };
    const auto text = DenseText(spec);
    Step(*decoder, {{kTokens, text.get()}}, /*cancel=*/nullptr, &observer);
    ASSERT_GT(parts.size(), 4u);
    const std::byte* next = parts.begin()->first;
    for (const auto& [begin, bytes] : parts) {
      ASSERT_EQ(begin, next);
      next = begin + bytes;
    }
  }
}

// The error for numbers that int8 cannot hold names the layer.
TEST(LoaderTest, Int8NamesTheLayerThatMeetsNan) {
  const DecoderSpec spec = SmallLlama();
  FakeWeights source(spec);
  source.Set("model.layers.1.post_attention_layernorm.weight", 3,
             std::numeric_limits<float>::quiet_NaN());
  const auto decoder = Load(spec, source, {}, DType::kI8);
  const Error error = ErrorOf([&] { LogitsOf(*decoder, kTokens); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("model.layers.1.mlp.gate_proj"));
}

TEST(LoaderTest, ReportsEverythingThatIsWrongAtOnce) {
  const DecoderSpec spec = SmallLlama();
  FakeWeights source(spec);
  source.Remove("model.layers.1.self_attn.q_proj.weight");
  source.Remove("model.layers.0.self_attn.v_proj.bias");
  source.Remove("model.norm.weight");
  source.Add("model.layers.0.mlp.down_proj.weight", DType::kF32, {16, 9});
  source.Add("model.layers.1.input_layernorm.weight", DType::kF32, {16, 1});
  source.Add("lm_head.weight", DType::kI64, {11, 16});
  source.Retype("model.layers.1.mlp.up_proj.weight", "F8_E4M3");
  source.Add("model.layers.2.mlp.up_proj.weight", DType::kF16, {10, 16});
  source.Add("visual.patch", DType::kBF16, {3});
  EXPECT_THAT(
      Refusal(spec, source),
      AllOf(HasSubstr("not the llama model"), HasSubstr("10 problems"),
            HasSubstr("missing tensor model.layers.1.self_attn.q_proj.weight, expected [16, 16]"),
            HasSubstr("missing tensor model.layers.0.self_attn.v_proj.bias, expected [8]"),
            HasSubstr("missing tensor model.norm.weight, expected [16]"),
            HasSubstr("tensor model.layers.0.mlp.down_proj.weight has shape [16, 9], expected "
                      "[16, 10]"),
            HasSubstr("tensor model.layers.1.input_layernorm.weight has shape [16, 1], expected "
                      "[16]"),
            HasSubstr("tensor lm_head.weight has type I64, expected F32, F16 or BF16"),
            HasSubstr("tensor model.layers.1.mlp.up_proj.weight has type F8_E4M3, expected F32, "
                      "F16 or BF16"),
            HasSubstr("unexpected tensor \"model.layers.2.mlp.up_proj.weight\", F16 [10, 16]"),
            HasSubstr("unexpected tensor \"visual.patch\", BF16 [3]")));
}

TEST(LoaderTest, ASingleProblemIsOneLine) {
  const DecoderSpec spec = SmallLlama();
  FakeWeights source(spec);
  source.Remove("model.embed_tokens.weight");
  EXPECT_THAT(Refusal(spec, source),
              AllOf(HasSubstr("missing tensor model.embed_tokens.weight, expected [11, 16]"),
                    Not(HasSubstr("\n"))));
}

TEST(LoaderTest, AnEmptyCheckpointLacksEveryTensorAndOneIsNamed) {
  const std::string message = Refusal(SmallLlama(), FakeWeights());
  EXPECT_THAT(message, AllOf(HasSubstr("29 problems"), HasSubstr(", and 28 more like it")));
  EXPECT_EQ(std::ranges::count(message, '\n'), 1);
}

TEST(LoaderTest, AConfigThatDescribesMillionsOfTensorsIsRefusedByTheirNumber) {
  DecoderSpec spec = SmallSpec(R"("model_type":"mixtral","num_local_experts":512)");
  spec.layers = 4096;
  FakeWeights source;
  source.Add("model.norm.weight", DType::kF32, {16});
  const std::string message = Refusal(spec, source);
  // Each layer has 3 tensors for 512 experts, the router, q, k, v, o and two norms. Embedding, norm
  // and head follow.
  EXPECT_THAT(message, HasSubstr("of 4096 layers of 512 experts, which has 6320131 tensors, but "
                                 "the checkpoint has 1"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST(LoaderTest, TensorsAreCountedWithoutBeingNamed) {
  for (const char* fields :
       {R"("model_type":"llama")", R"("model_type":"llama","tie_word_embeddings":true)",
        R"("model_type":"gpt_neox")", R"("model_type":"glm4")",
        R"("model_type":"mixtral","num_local_experts":1,"num_experts_per_tok":1)",
        R"("model_type":"mixtral","num_local_experts":7)"}) {
    DecoderSpec spec = SmallSpec(fields);
    spec.layers = 5;
    int64_t elements = 0;
    const auto tensors = WantedTensors(spec);
    for (const WantedTensor& tensor : tensors) {
      int64_t product = 1;
      for (const int64_t size : tensor.shape) product *= size;
      elements += product;
    }
    const TensorTotals totals = CountTensors(spec);
    EXPECT_EQ(totals.tensors, std::ssize(tensors)) << fields;
    EXPECT_EQ(totals.elements, elements) << fields;
  }
  // The largest model that a config.json can describe.
  DecoderSpec largest = SmallSpec(R"("model_type":"mixtral","num_local_experts":512)");
  largest.layers = kLayerRange.max;
  largest.hidden_size = largest.mlp.intermediate = kWidthRange.max;
  largest.heads = largest.kv_heads = kHeadRange.max;
  largest.head_dim = kHeadDimRange.max;
  largest.vocab_size = kVocabRange.max;
  EXPECT_GT(CountTensors(largest).elements, int64_t{3} << 61);
}

TEST(LoaderTest, WeightsLargerThanTheMachineAreRefusedUnread) {
  const DecoderSpec spec = SmallLlama();
  FakeWeights source(spec);
  source.PretendSize("model.embed_tokens.weight", size_t{1} << 60);
  const std::string message = ErrorOf(ErrorKind::kMemory, [&] { Load(spec, source); });
  EXPECT_THAT(message, HasSubstr("the weights take 1024.0 PiB"));
  EXPECT_TRUE(source.released().empty());
}

TEST(LoaderTest, TypesMayDifferButNotWithinAFusedWeight) {
  const DecoderSpec spec = SmallLlama();
  FakeWeights source(spec, DType::kBF16);
  source.Add("model.norm.weight", DType::kF32, {16});
  source.Add("model.layers.0.mlp.down_proj.weight", DType::kF16, {16, 10});
  source.Add("model.layers.0.self_attn.k_proj.bias", DType::kF32, {8});
  Load(spec, source);

  source.Add("model.layers.1.self_attn.k_proj.weight", DType::kF32, {8, 16});
  source.Add("model.layers.0.mlp.up_proj.weight", DType::kF16, {10, 16});
  EXPECT_THAT(
      Refusal(spec, source),
      AllOf(HasSubstr("2 problems"),
            HasSubstr("tensor model.layers.1.self_attn.k_proj.weight has type F32, expected BF16 "
                      "like model.layers.1.self_attn.q_proj.weight"),
            HasSubstr("tensor model.layers.0.mlp.up_proj.weight has type F16, expected BF16 like "
                      "model.layers.0.mlp.gate_proj.weight")));
}

TEST(LoaderTest, NanIsNamedAndLoadingGoesOn) {
  for (const DType dtype : kFloatTypes) {
    const DecoderSpec spec = SmallLlama();
    FakeWeights source(spec, dtype);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    source.Set("model.embed_tokens.weight", 16 * 11 - 1, nan);
    source.Set("model.layers.0.self_attn.k_proj.weight", 0, -nan);
    source.Set("model.layers.1.self_attn.v_proj.bias", 7, nan);
    source.Set("model.layers.1.mlp.up_proj.weight", 159, nan);
    source.Set("model.norm.weight", 3, nan);
    source.Set("lm_head.weight", 5, std::numeric_limits<float>::infinity());
    std::vector<std::string> warnings;
    const auto decoder =
        Load(spec, source, {.warn = [&](const std::string& text) { warnings.push_back(text); }});
    EXPECT_NE(decoder, nullptr);
    EXPECT_THAT(warnings, UnorderedElementsAre(
                              HasSubstr("tensor model.embed_tokens.weight holds NaN"),
                              HasSubstr("tensor model.layers.0.self_attn.k_proj.weight holds NaN"),
                              HasSubstr("tensor model.layers.1.self_attn.v_proj.bias holds NaN"),
                              HasSubstr("tensor model.layers.1.mlp.up_proj.weight holds NaN"),
                              HasSubstr("tensor model.norm.weight holds NaN")))
        << Name(dtype);
    EXPECT_NE(Load(spec, source), nullptr) << "nobody has to listen";
  }
}

TEST(LoaderTest, HarmlessExtrasChangeNothing) {
  const DecoderSpec spec = SmallSpec(R"("model_type":"llama","tie_word_embeddings":true)");
  FakeWeights source(spec);
  const auto reference = LogitsOf(*Load(spec, source), kTokens);
  source.Add("model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {2});
  source.Add("lm_head.weight", DType::kI8, {1});
  EXPECT_EQ(LogitsOf(*Load(spec, source), kTokens), reference);
  source.Add("another.head.weight", DType::kF32, {1});
  EXPECT_THAT(Refusal(spec, source), HasSubstr("\"another.head.weight\""));
}

TEST(LoaderTest, AHeadThatDiffersFromTheEmbeddingThatItIsTiedToIsToldOf) {
  const DecoderSpec spec = SmallSpec(R"("model_type":"llama","tie_word_embeddings":true)");
  const auto warnings = [&](FakeWeights& source) {
    std::vector<std::string> told;
    (void)Load(spec, source, {.warn = [&](const std::string& text) { told.push_back(text); }});
    return told;
  };
  FakeWeights source(spec);
  EXPECT_THAT(warnings(source), testing::IsEmpty());
  source.Add("lm_head.weight", DType::kF32, {11, 16});
  EXPECT_THAT(warnings(source),
              testing::ElementsAre("tensor lm_head.weight differs from model.embed_tokens.weight, "
                                   "but config.json ties them: using the latter for both"));
}

TEST(LoaderTest, ProgressReachesTheTotal) {
  for (const bool tied : {false, true}) {
    const DecoderSpec spec = SmallSpec(fmt::format(
        R"("model_type":"llama","attention_bias":true,"tie_word_embeddings":{})", tied));
    FakeWeights source(spec, DType::kBF16);
    const int64_t wanted = source.total_bytes();
    const auto tensors = source.Names().size();
    source.Add("model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {200});
    if (tied) source.Add("lm_head.weight", DType::kBF16, {11, 16});
    int64_t done = 0;
    size_t calls = 0;
    Load(spec, source, {.progress = [&](int64_t now, int64_t total) {
           EXPECT_GT(now, done);
           EXPECT_EQ(total, wanted);
           done = now;
           ++calls;
         }});
    EXPECT_EQ(done, wanted);
    EXPECT_EQ(calls, tensors);
    EXPECT_EQ(source.released().size(), tensors);
  }
}

TEST(LoaderTest, LoadingCanBeCancelled) {
  const DecoderSpec spec = SmallLlama();
  CancelToken cancel;
  int calls = 0;
  const Error error = ErrorOf([&] {
    Load(spec, FakeWeights(spec),
         {.progress =
              [&](int64_t, int64_t) {
                if (++calls == 3) cancel.Cancel();
              },
          .cancel = &cancel});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  EXPECT_EQ(calls, 3);
}

// The same model with separate q, k and v, and with the rows of a KV head together: query heads,
// key, value.
TEST(LoaderTest, GroupedRowsAreTakenApart) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    for (const DType dtype : kFloatTypes) {
      const DecoderSpec separate = SmallSpec(fmt::format(
          R"("model_type":"llama","num_key_value_heads":{},"attention_bias":true)", kv_heads));
      FakeWeights source(separate, dtype);
      const auto reference = LogitsOf(*Load(separate, source), kTokens);

      DecoderSpec grouped = separate;
      grouped.qkv_layout = QkvLayout::kGrouped;
      grouped.names.qkv = "model.layers.{}.fused";
      for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
        for (const auto& [ending, row_elements] : {std::pair{".weight", 16}, {".bias", 1}}) {
          std::vector<std::byte> rows;
          const auto take = [&, ending = ending, row_elements = row_elements](const char* module,
                                                                              int64_t head) {
            const auto& from = source.Bytes(layer + "self_attn." + module + ending);
            const auto bytes = static_cast<int64_t>(SizeOf(dtype)) * 4 * row_elements;
            rows.insert(rows.end(), from.begin() + head * bytes, from.begin() + (head + 1) * bytes);
          };
          const int64_t group = 4 / kv_heads;
          for (int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
            for (int64_t i = 0; i < group; ++i) take("q_proj", kv_head * group + i);
            take("k_proj", kv_head);
            take("v_proj", kv_head);
          }
          for (const char* module : {"q_proj", "k_proj", "v_proj"}) {
            source.Remove(layer + "self_attn." + module + ending);
          }
          std::vector<int64_t> shape = {16 + 8 * kv_heads};
          if (row_elements > 1) shape.push_back(row_elements);
          source.Add(layer + "fused" + ending, dtype, shape);
          ASSERT_EQ(source.Bytes(layer + "fused" + ending).size(), rows.size());
          std::copy(rows.begin(), rows.end(), source.Bytes(layer + "fused" + ending).begin());
        }
      }
      EXPECT_EQ(LogitsOf(*Load(grouped, source), kTokens), reference)
          << kv_heads << " KV heads, " << Name(dtype);
    }
  }
}

// The same model with the rotary pairs of q and k side by side.
TEST(LoaderTest, InterleavedPairsAreTakenApart) {
  for (const int64_t rotary_dim : {0, 2, 4}) {
    DecoderSpec halves = SmallLlama();
    halves.rotary.rotary_dim = rotary_dim;
    FakeWeights source(halves);
    const auto reference = LogitsOf(*Load(halves, source), kTokens);

    DecoderSpec pairs = halves;
    pairs.interleaved_rotary = true;
    for (const std::string layer : {"model.layers.0.self_attn.", "model.layers.1.self_attn."}) {
      for (const auto& [ending, row_elements] : {std::pair{".weight", 16}, {".bias", 1}}) {
        for (const char* module : {"q_proj", "k_proj"}) {
          auto& bytes = source.Bytes(layer + module + ending);
          const auto row_bytes = static_cast<size_t>(4 * row_elements);
          const std::vector<std::byte> from = bytes;
          const auto half = static_cast<size_t>(rotary_dim / 2);
          for (size_t row = 0; row < from.size() / row_bytes; ++row) {
            const size_t d = row % 4;  // in a head
            if (d >= 2 * half) continue;
            const size_t to = row - d + (d < half ? 2 * d : 2 * (d - half) + 1);
            std::copy_n(from.begin() + static_cast<int64_t>(row * row_bytes), row_bytes,
                        bytes.begin() + static_cast<int64_t>(to * row_bytes));
          }
        }
      }
    }
    EXPECT_EQ(LogitsOf(*Load(pairs, source), kTokens), reference) << rotary_dim;
  }
}

TEST(LoaderTest, ABareModelLacksTheBeginningOfEveryName) {
  DecoderSpec spec = SmallSpec(R"("model_type":"llama","tie_word_embeddings":true)");
  FakeWeights source(spec);
  const auto reference = LogitsOf(*Load(spec, source), kTokens);
  spec.names.prefix = "model.";
  EXPECT_EQ(LogitsOf(*Load(spec, source), kTokens), reference);
  FakeWeights bare;
  for (const std::string& name : source.Names()) {
    const TensorInfo& tensor = *source.Find(name);
    const std::string short_name = name.substr(6);
    bare.Add(short_name, DType::kF32, tensor.shape);
    bare.Bytes(short_name) = source.Bytes(name);
  }
  EXPECT_EQ(LogitsOf(*Load(spec, bare), kTokens), reference);
  bare.Remove("norm.weight");
  EXPECT_THAT(Refusal(spec, bare), HasSubstr("missing tensor norm.weight, expected [16]"));
}

// The loader asks for every byte of every matrix once, before it packs the matrix.
TEST(LoaderTest, EveryByteIsPrefetchedOnce) {
  class Watched : public FakeWeights {
   public:
    using FakeWeights::FakeWeights;
    void Prefetch(const TensorInfo& tensor, size_t begin, size_t size_bytes) const override {
      const std::scoped_lock lock(mutex_);
      EXPECT_FALSE(released().contains(tensor.name));
      for (size_t i = begin; i < begin + size_bytes; ++i) {
        EXPECT_TRUE(asked_[tensor.name].insert(i).second) << tensor.name << " byte " << i;
      }
    }
    size_t Asked(const std::string& name) const { return asked_[name].size(); }

   private:
    mutable std::mutex mutex_;
    mutable std::map<std::string, std::set<size_t>> asked_;
  };
  const DecoderSpec spec = SmallLlama();
  const Watched source(spec);
  Load(spec, source);
  for (const std::string& name : source.Names()) {
    const TensorInfo& tensor = *source.Find(name);
    EXPECT_EQ(source.Asked(name), tensor.shape.size() == 2 ? tensor.bytes.size() : 0) << name;
  }
}

}  // namespace
}  // namespace godwit::loader_test
