// Packed checkpoints: the loaded weights, and the refusals of the loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "model/model_test_support.h"
#include "model/packed_weights.h"

namespace godwit::packed_checkpoint_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Layout = PackedFormat::Layout;

const std::vector<int32_t> kTokens = {3, 0, 10, 7, 7, 1};
constexpr int64_t kHidden = 64, kMlp = 96;

// The packing of a model, and its description in config.json.
struct Packing {
  std::string name;
  PackedFormat format;
  std::string config;
  DType scales = DType::kF16;
};
void PrintTo(const Packing& packing, std::ostream* out) { *out << packing.name; }

std::string PackQuantized(const std::string& weights, const std::string& rest = "") {
  return fmt::format(
      R"({{"quant_method":"compressed-tensors","format":"pack-quantized","ignore":["lm_head"],)"
      R"("config_groups":{{"group_0":{{"targets":["Linear"],"weights":{{"type":"int",{}}}{}}}}}}})",
      weights, rest);
}

DecoderSpec SpecOf(const std::string& quantization) {
  return DescribeModel(HfConfig::Parse(
      fmt::format(
          R"({{"model_type":"llama","vocab_size":11,"hidden_size":{},"num_hidden_layers":2,)"
          R"("num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":{},)"
          R"("max_position_embeddings":64,"quantization_config":{}}})",
          kHidden, kMlp, quantization),
      "config.json"));
}

std::vector<std::string> Modules() {
  std::vector<std::string> modules;
  for (int64_t i = 0; i < 2; ++i) {
    for (const char* module :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      modules.push_back(fmt::format("model.layers.{}.{}", i, module));
    }
  }
  return modules;
}

// A random number below `below`.
int64_t Draw(const std::string& what, int64_t i, int64_t below) {
  return static_cast<int64_t>(Uniform(std::hash<std::string>()(what), 0, i, 0) *
                              static_cast<double>(below));
}

// Random codes, in the layers of a checkpoint and as the float weights that they stand for.
class PackedWeights {
 public:
  explicit PackedWeights(const Packing& packing)
      : spec(SpecOf(packing.config)), packed(spec), floats(spec), packing_(packing) {
    for (const std::string& module : Modules()) Pack(module);
  }

  void SetWord(const std::string& name, int64_t i, int32_t word) {
    std::memcpy(packed.Bytes(name).data() + 4 * i, &word, 4);
  }

  DecoderSpec spec;
  FakeWeights packed, floats;

 private:
  void Pack(const std::string& module);
  // Writes a code of `bits` bits into word `word`.
  void Or(const std::string& name, int64_t word, int64_t place, int64_t code) {
    int32_t value;
    std::memcpy(&value, packed.Bytes(name).data() + 4 * word, 4);
    value |= static_cast<int32_t>(static_cast<uint32_t>(code) << (place * packing_.format.bits));
    SetWord(name, word, value);
  }

  const Packing packing_;
};

void PackedWeights::Pack(const std::string& module) {
  const PackedFormat& format = packing_.format;
  const std::vector<int64_t> shape = packed.Find(module + ".weight")->shape;
  const int64_t outputs = shape[0], inputs = shape[1], per_word = 32 / format.bits;
  const int64_t group = format.group == 0 ? inputs : format.group, groups = inputs / group;
  const bool gptq = format.layout == Layout::kGptq, awq = format.layout == Layout::kAwq;
  const bool across = gptq || awq;
  const int64_t top = int64_t{1} << format.bits;
  packed.Remove(module + ".weight");
  const std::string codes = module + (across ? ".qweight" : ".weight_packed");
  const std::string scales = module + (across ? ".scales" : ".weight_scale");
  const std::string zeros = module + (across ? ".qzeros" : ".weight_zero_point");
  using Shape = std::vector<int64_t>;
  packed.Add(codes, DType::kI32,
             gptq  ? Shape{inputs / per_word, outputs}
             : awq ? Shape{inputs, outputs / per_word}
                   : Shape{outputs, inputs / per_word});
  packed.Add(scales, packing_.scales, across ? Shape{groups, outputs} : Shape{outputs, groups});
  const bool has_zeros = format.zeros || across;
  if (has_zeros) {
    packed.Add(zeros, DType::kI32,
               across ? Shape{groups, outputs / per_word} : Shape{outputs / per_word, groups});
  }
  if (!across) {
    packed.Add(module + ".weight_shape", DType::kI64, {2});
    for (size_t i = 0; i < 2; ++i) {
      std::memcpy(packed.Bytes(module + ".weight_shape").data() + 8 * i, &shape[i], 8);
    }
  }
  // A group has inputs that are 7 apart. Fused layers share inputs, and so groups.
  const auto group_of = [&](int64_t input) {
    return format.act_order ? input * 7 % inputs / group : input / group;
  };
  if (format.act_order || gptq) {
    const std::string order = module + (gptq ? ".g_idx" : ".weight_g_idx");
    packed.Add(order, DType::kI32, {inputs});
    for (int64_t i = 0; i < inputs; ++i) SetWord(order, i, static_cast<int32_t>(group_of(i)));
  }
  constexpr int64_t kAwqOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};  // of the outputs in a word
  const auto place_of = [&](int64_t output) -> int64_t {
    if (!awq) return output % per_word;
    return std::ranges::find(kAwqOrder, output % 8) - std::begin(kAwqOrder);
  };
  for (int64_t output = 0; output < outputs; ++output) {
    std::vector<float> scale_of;
    std::vector<int64_t> zero_of;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = output * groups + g;
      const float scale = (0.001f + 0.0001f * static_cast<float>(Draw(module + "s", at, 100))) *
                          16 / static_cast<float>(top);
      const int64_t place = across ? g * outputs + output : at;
      packed.Set(scales, place, scale);
      scale_of.push_back(packing_.scales == DType::kF32    ? scale
                         : packing_.scales == DType::kBF16 ? ToFloat(ToBF16(scale))
                                                           : ToFloat(ToF16(scale)));
      zero_of.push_back(format.zeros ? Draw(module + "z", at, top) : top / 2);
      if (!has_zeros) continue;
      const int64_t stored = (zero_of.back() - (format.zeros_less_1 ? 1 : 0)) & (top - 1);
      const int64_t word =
          across ? g * (outputs / per_word) + output / per_word : output / per_word * groups + g;
      Or(zeros, word, place_of(output), stored);
    }
    for (int64_t i = 0; i < inputs; ++i) {
      const int64_t code = Draw(module, output * inputs + i, top);
      if (awq) {
        Or(codes, i * (outputs / per_word) + output / per_word, place_of(output), code);
      } else {
        const int64_t word = i / per_word;
        Or(codes, gptq ? word * outputs + output : output * (inputs / per_word) + word,
           i % per_word, code);
      }
      const auto g = static_cast<size_t>(group_of(i));
      floats.Set(module + ".weight", output * inputs + i,
                 scale_of[g] * static_cast<float>(code - zero_of[g]));
    }
  }
}

Packing Gptq(int bits, int64_t group, bool zeros, bool first_version, bool act_order = false) {
  return {.name = fmt::format("GPTQ{}_{}_{}{}{}", first_version ? "" : "v2", bits, group,
                              zeros ? "_zeros" : "", act_order ? "_order" : ""),
          .format = {.layout = Layout::kGptq,
                     .bits = bits,
                     .group = group,
                     .zeros = zeros,
                     .zeros_less_1 = first_version,
                     .act_order = act_order},
          .config = fmt::format(
              R"({{"quant_method":"gptq","bits":{},"group_size":{},"sym":{},"desc_act":{}{}}})",
              bits, group == 0 ? -1 : group, !zeros, act_order,
              first_version ? "" : R"(,"checkpoint_format":"gptq_v2")")};
}

Packing Awq(int64_t group) {
  return {
      .name = fmt::format("AWQ_{}", group),
      .format = {.layout = Layout::kAwq, .group = group, .zeros = true},
      .config = fmt::format(
          R"({{"quant_method":"awq","bits":4,"group_size":{},"zero_point":true,"version":"gemm"}})",
          group == 0 ? -1 : group)};
}

std::vector<Packing> AllPackings() {
  const auto ct = [](int bits, int64_t group, bool zeros, bool act_order, DType scales) {
    Packing packing{.format = {.layout = Layout::kPackQuantized,
                               .bits = bits,
                               .group = group,
                               .zeros = zeros,
                               .act_order = act_order},
                    .scales = scales};
    packing.name = fmt::format("W{}A16_{}{}{}_{}", bits, group, zeros ? "_zeros" : "",
                               act_order ? "_order" : "", Name(scales));
    packing.config = PackQuantized(
        fmt::format(R"("num_bits":{},"symmetric":{},"strategy":"{}","group_size":{}{})", bits,
                    !zeros, group == 0 ? "channel" : "group", group == 0 ? -1 : group,
                    act_order ? R"(,"actorder":"group")" : ""));
    return packing;
  };
  std::vector<Packing> packings;
  for (const int bits : {4, 8}) {
    for (const bool zeros : {false, true}) {
      packings.push_back(ct(bits, 32, zeros, false, DType::kBF16));
      packings.push_back(ct(bits, 0, zeros, false, DType::kF16));
      packings.push_back(ct(bits, 16, zeros, true, DType::kBF16));
    }
  }
  packings.push_back(ct(4, 32, false, false, DType::kF32));
  for (const int bits : {4, 8}) {
    for (const bool first_version : {false, true}) {
      for (const bool zeros : {false, true})
        packings.push_back(Gptq(bits, 32, zeros, first_version));
    }
    packings.push_back(Gptq(bits, 0, true, true));
    packings.push_back(Gptq(bits, 16, false, true, /*act_order=*/true));
    packings.push_back(Gptq(bits, 16, true, false, /*act_order=*/true));
  }
  for (const int64_t group : {0, 16, 32}) packings.push_back(Awq(group));
  return packings;
}

class PackedCheckpointTest : public testing::TestWithParam<Packing> {};

DecoderSpec AsFloats(DecoderSpec spec) {
  spec.quantization = {};
  return spec;
}

TEST_P(PackedCheckpointTest, RELEASE_StandsForTheseFloats) {
  const PackedWeights model(GetParam());
  EXPECT_EQ(LogitsOf(*Load(model.spec, model.packed, {}, DType::kF32), kTokens),
            LogitsOf(*Load(AsFloats(model.spec), model.floats, {}, DType::kF32), kTokens));
}

// Every weight of every layer is the same in memory as in the file.
TEST_P(PackedCheckpointTest, StaysAsItIs) {
  const PackedWeights model(GetParam());
  const ModelTensors tensors = ResolveTensors(model.spec, model.packed);
  ThreadPool pool(2);
  for (const LayerTensors& layer : tensors.layers) {
    for (const auto* linear : {&layer.qkv, &layer.attention_out, &layer.mlp.up, &layer.mlp.down}) {
      const auto format = FormatOfPacked(*linear);
      ASSERT_TRUE(format.has_value());
      for (const auto& part : linear->packed) {
        const PackedRows rows(pool, *part);
        const int64_t outputs = part->weight.shape[0], inputs = part->weight.shape[1];
        Weight weight =
            ops::PackGroups(pool, *format, outputs, inputs,
                            [&](int64_t output, kernels::GroupedRow& row, float& factor) {
                              ReadPacked(*part, rows, output, 0, *format, row, factor);
                            });
        weight.input_order = part->order;
        EXPECT_EQ(part->order.empty(), !GetParam().format.act_order);
        std::vector<float> got(inputs), want(got.size());
        for (int64_t i = 0; i < outputs; ++i) {
          ops::UnpackRow(weight, i, got.data());
          const auto* floats = model.floats.Find(part->weight.name);
          std::memcpy(want.data(), floats->bytes.data() + i * inputs * 4,
                      static_cast<size_t>(inputs) * 4);
          if (GetParam().scales != DType::kF32) {
            ASSERT_EQ(got, want) << part->weight.name << ", output " << i;
          } else {
            ASSERT_THAT(got, testing::Pointwise(testing::FloatNear(1e-4f), want));
          }
        }
      }
    }
  }
}

TEST_P(PackedCheckpointTest, AllOfItIsCountedAndReleased) {
  const PackedWeights model(GetParam());
  int64_t done = 0, total = 0;
  const LoadHooks hooks{.progress = [&](int64_t done_bytes, int64_t total_bytes) {
    done = done_bytes;
    total = total_bytes;
  }};
  Load(model.spec, model.packed, hooks);
  EXPECT_EQ(total, model.packed.total_bytes());
  EXPECT_EQ(done, total);
}

// Damaged numbers of a tensor are loaded, or refused by the tensor's name.
TEST_P(PackedCheckpointTest, DamagedNumbersDoNoHarm) {
  PackedWeights model(GetParam());
  int64_t loaded = 0, refused = 0;
  const std::vector<std::string> names = model.packed.Names();
  for (const std::string& name : names) {
    if (!name.starts_with("model.layers.1.mlp.down_proj.")) continue;
    const std::vector<std::byte> bytes = model.packed.Bytes(name);
    for (const int damage : {0x00, 0x7f, 0xff}) {
      std::ranges::fill(model.packed.Bytes(name), static_cast<std::byte>(damage));
      try {
        Load(model.spec, model.packed);
        ++loaded;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(name));
        ++refused;
      }
    }
    std::ranges::copy(bytes, model.packed.Bytes(name).begin());
  }
  EXPECT_GE(loaded, 4) << "of codes any, of scales zeros";
  EXPECT_GE(refused, 1) << "of scales NaN";
}

// Kernels multiply packed weights. The results are near those of floats, up to the rounding of
// inputs.
TEST_P(PackedCheckpointTest, RELEASE_IsMultipliedAsItIs) {
  const PackedWeights model(GetParam());
  const auto decoder = Load(model.spec, model.packed);
  EXPECT_EQ(decoder->weight_types().layers, DType::kGrouped);
  EXPECT_EQ(decoder->weight_types().layer_blocks, ShortName(GetParam().format));
  EXPECT_EQ(decoder->weight_types().head, DType::kF32);
  EXPECT_EQ(decoder->weight_bytes(),
            LoadedBytes(ResolveTensors(model.spec, model.packed), std::nullopt));
  const auto got = LogitsOf(*decoder, kTokens);
  const auto want = LogitsOf(*Load(AsFloats(model.spec), model.floats, {}, DType::kF32), kTokens);
  double difference = 0, square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    square += want[i] * want[i];
  }
  EXPECT_LT(std::sqrt(difference / square), 0.03);
  EXPECT_EQ(LogitsOf(*Load(model.spec, model.packed, {}, DType::kGrouped), kTokens), got)
      << "what --weights int4 would make of it it is already";
}

INSTANTIATE_TEST_SUITE_P(All, PackedCheckpointTest, testing::ValuesIn(AllPackings()),
                         [](const auto& info) { return info.param.name; });

std::string Refusal(ErrorKind kind, const PackedWeights& model) {
  return ErrorOf(kind, [&] { Load(model.spec, model.packed); });
}

Packing Ordered() { return AllPackings()[2]; }

// The rows of fused layers cannot be in two orders at once.
TEST(PackedCheckpoint, FusedLayersInDifferentOrdersBecomeFloats) {
  PackedWeights model(Ordered());
  const std::string order = "model.layers.0.self_attn.k_proj.weight_g_idx";
  for (int64_t i = 0; i < kHidden; ++i) model.SetWord(order, i, static_cast<int32_t>(i / 16));
  const auto decoder = Load(model.spec, model.packed);
  EXPECT_TRUE(decoder->weight_types().mixed);
  EXPECT_EQ(decoder->weight_bytes(),
            LoadedBytes(ResolveTensors(model.spec, model.packed), std::nullopt));
}

TEST(PackedCheckpoint, RefusesOrdersThatAreNone) {
  const std::string order = "model.layers.1.mlp.down_proj.weight_g_idx";
  PackedWeights missing(Ordered());
  missing.packed.Remove(order);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, missing),
              HasSubstr("missing tensor " + order + ", expected [96], for act order"));
  PackedWeights beyond(Ordered());
  beyond.SetWord(order, 5, 6);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, beyond),
              HasSubstr(order + ": element 5 is 6, expected one of 6 groups"));
  beyond.SetWord(order, 5, -1);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, beyond), HasSubstr("element 5 is -1"));
  PackedWeights uneven(Ordered());
  uneven.SetWord(order, 0, 1);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, uneven),
              HasSubstr(order + ": group 1 has more than 16 inputs"));
}

TEST(PackedCheckpoint, TheConfigSaysWhatIsPacked) {
  PackedWeights model(AllPackings()[3]);
  const std::string layer = "model.layers.1.mlp.";
  model.packed.Remove(layer + "down_proj.weight_zero_point");
  model.packed.Add(layer + "up_proj.weight_scale", DType::kF16, {kMlp, 3});
  model.packed.Add(layer + "gate_proj.weight_packed", DType::kF32, {kMlp, kHidden / 8});
  model.packed.Add("model.layers.0.self_attn.o_proj.weight", DType::kF32, {kHidden, kHidden});
  model.packed.Bytes("model.layers.0.self_attn.v_proj.weight_shape")[0] = std::byte{33};
  EXPECT_THAT(
      Refusal(ErrorKind::kFormat, model),
      AllOf(HasSubstr("missing tensor " + layer +
                      "down_proj.weight_zero_point, expected [8, 3], "
                      "for zero points"),
            HasSubstr(layer + "up_proj.weight_scale has shape [96, 3], expected [96, 2]"),
            HasSubstr(layer + "gate_proj.weight_packed has type F32, expected I32"),
            HasSubstr("unexpected tensor \"model.layers.0.self_attn.o_proj.weight\""),
            HasSubstr("v_proj.weight_shape says that the weight is [33, 64], expected [32, 64]")));
}

// GPTQ writers add zero biases to models without biases, and orders that change nothing. Some leave
// routers unpacked although config.json does not say so.
TEST(PackedCheckpoint, HarmlessExtrasOfGptqWritersChangeNothing) {
  const PackedWeights plain(Gptq(4, 32, true, true));
  PackedWeights more(Gptq(4, 32, true, true));
  for (const std::string& module : Modules()) {
    const std::string bias = module + ".bias";
    more.packed.Add(bias, DType::kF16, {more.floats.Find(module + ".weight")->shape[0]});
    std::ranges::fill(more.packed.Bytes(bias), std::byte{0});
    if (module.ends_with("down_proj")) more.packed.Remove(module + ".g_idx");
  }
  EXPECT_EQ(LogitsOf(*Load(more.spec, more.packed), kTokens),
            LogitsOf(*Load(plain.spec, plain.packed), kTokens));
  const std::string alone = "model.layers.0.self_attn.o_proj";
  for (const char* suffix : {".qweight", ".scales", ".qzeros", ".g_idx", ".bias"}) {
    more.packed.Remove(alone + suffix);
  }
  more.packed.Add(alone + ".weight", DType::kF32, {kHidden, kHidden});
  EXPECT_TRUE(Load(more.spec, more.packed)->weight_types().mixed);
}

TEST(PackedCheckpoint, SymmetricZeroPointsAreWhatTheyAre) {
  PackedWeights model(Gptq(4, 32, false, true));
  model.SetWord("model.layers.1.mlp.up_proj.qzeros", 2, 0x77770777);
  EXPECT_THAT(
      Refusal(ErrorKind::kFormat, model),
      HasSubstr("tensor model.layers.1.mlp.up_proj.qzeros: group 0 of output 19 has the zero "
                "point 1, expected 8, because config.json says that weights are symmetric"));
}

TEST(PackedCheckpoint, GroupsDivideTheInputs) {
  Packing packing = AllPackings()[0];
  packing.format.group = 16;
  PackedWeights model(packing);
  model.spec = SpecOf(PackQuantized(R"("num_bits":4,"strategy":"group","group_size":64)"));
  EXPECT_THAT(
      Refusal(ErrorKind::kFormat, model),
      HasSubstr("config.json packs the weights of model.layers.1.mlp.down_proj in groups of "
                "64, which do not divide its 96 inputs"));
}

TEST(PackedCheckpoint, RefusesScalesThatAreNone) {
  const std::string scales = "model.layers.1.mlp.up_proj.weight_scale";
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    PackedWeights model(AllPackings()[0]);
    model.packed.Set(scales, 3, bad);
    EXPECT_THAT(Refusal(ErrorKind::kFormat, model),
                HasSubstr("tensor " + scales + ": element 3 is"));
  }
}

// F16 with a power of two for each output has 40 powers of two; BF16 has 256.
TEST(PackedCheckpoint, ScalesOfAnOutputAreNotTooFarApart) {
  const std::string scales = "model.layers.1.mlp.up_proj.weight_scale";
  const auto load = [&](float a, float b) {
    PackedWeights model(AllPackings()[0]);
    model.packed.Set(scales, 6, a);
    model.packed.Set(scales, 7, b);
    Load(model.spec, model.packed);
  };
  for (const auto& [a, b] : {std::pair(1e30f, 1e22f), std::pair(-1e-30f, 0.0f),
                             std::pair(1e-36f, 1e-28f), std::pair(0.0f, 0.0f)}) {
    load(a, b);
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { load(1.0f, 1e-11f); }),
              HasSubstr("tensor " + scales +
                        ": the scales of output 3, such as 1.0004442e-11, are too far apart"));
}

}  // namespace
}  // namespace godwit::packed_checkpoint_test
