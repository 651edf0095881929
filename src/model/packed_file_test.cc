// Writes parts to a packed copy and reads them back. tests/golden/packed_copy_test.cc shows that
// they are all of a model in every storage.
#include "model/packed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_folder.h"
#include "model/model_test_support.h"
#include "ops/pack_weight.h"

namespace godwit::packed_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A packed copy with the parts that `write` writes.
template <typename Write>
PackedFile Packed(const TempFolder& folder, const Write& write) {
  const fs::path path = folder.path() / "packed";
  NewFile file(path);
  PackedWriter writer(file);
  write(writer);
  writer.Finish({.weights = "auto"});
  file.Commit();
  return PackedFile(path);
}

fs::path Pack(const TempFolder& folder, const DecoderSpec& spec, const WeightSource& source,
              std::optional<DType> storage = std::nullopt) {
  ThreadPool pool(2);
  return Packed(folder,
                [&](PackedWriter& writer) { PackDecoder(spec, source, pool, {}, storage, writer); })
      .path();
}

std::string Refusal(const fs::path& path, const DecoderSpec& spec, const WeightSource& source,
                    std::optional<DType> storage = std::nullopt) {
  ThreadPool pool(1);
  const PackedFile file(path);
  return ErrorOf(ErrorKind::kFormat, [&] { LoadPackedDecoder(spec, source, pool, storage, file); });
}

// Weights of 2 outputs and 3 inputs in int8. Only their numbers matter.
Weight Int8Weight(InputQuantization input) {
  return {.dtype = DType::kI8,
          .outputs = 2,
          .inputs = 3,
          .panels = Buffer(ops::PackedBytes(DType::kI8, 2, 3) - 8),
          .bias = {1, 2},
          .scales = {3, 4},
          .input = input,
          .row_sums = {},
          .name = "w"};
}

TEST(PackedWeights, EveryNumberOfAWeightComesBack) {
  const InputQuantization fixed{
      .kind = InputScale::kStatic, .symmetric = false, .scale = 0.5f, .zero_point = -3};
  const InputQuantization shifted{.symmetric = false};
  const TempFolder folder;
  const PackedFile file = Packed(folder, [&](PackedWriter& writer) {
    Weight weight = Int8Weight(fixed);
    weight.panels.data()[5] = std::byte{7};
    writer.Write(weight);
    weight = Int8Weight(shifted);
    weight.row_sums = {8, 9};
    weight.bias.clear();
    writer.Write(weight);
    writer.Write("norm", std::vector<float>{5, 6});
  });
  PackedReader reader(file);
  Weight asked = Int8Weight({.kind = InputScale::kStatic, .symmetric = false});
  asked.bias = asked.scales = {};
  Weight weight = reader.Read(std::move(asked), /*has_bias=*/true);
  EXPECT_EQ(weight.input, fixed);
  EXPECT_THAT(weight.scales, ElementsAre(3, 4));
  EXPECT_THAT(weight.bias, ElementsAre(1, 2));
  EXPECT_EQ(weight.panels.data()[5], std::byte{7});
  EXPECT_TRUE(weight.panels.is_mapped());
  asked = Int8Weight(shifted);
  asked.bias = asked.scales = {};
  weight = reader.Read(std::move(asked), /*has_bias=*/false);
  EXPECT_THAT(weight.row_sums, ElementsAre(8, 9));
  EXPECT_TRUE(weight.bias.empty());
  EXPECT_EQ(
      ErrorOf(ErrorKind::kFormat, [&] { reader.Finish(); }),
      file.path() + ": the packed copy of another model: expected no further part, found \"norm\"");
  EXPECT_THAT(reader.Read("norm", 2), ElementsAre(5, 6));
  reader.Finish();
}

TEST(PackedWeights, RefuseAZeroPointThatIsNone) {
  const TempFolder folder;
  for (const float zero_point : {129.0f, -1e30f, NAN}) {
    const PackedFile file = Packed(folder, [&](PackedWriter& writer) {
      const Weight weight = Int8Weight({});
      writer.Write("w", {.dtype = DType::kI8, .data = Buffer(weight.panels.bytes())});
      writer.Write("w scales", weight.scales);
      writer.Write("w input", std::vector<float>{0.5f, zero_point});
    });
    PackedReader reader(file);
    EXPECT_EQ(ErrorOf(ErrorKind::kFormat,
                      [&] { reader.Read(Int8Weight({.kind = InputScale::kStatic}), false); }),
              fmt::format("{}: \"w\" has the zero point {}, expected -128 to 128", file.path(),
                          zero_point));
  }
}

// Models with the same names may differ in sizes, in the number of layers, or in biases.
TEST(PackedWeights, AreOfTheModelOrRefused) {
  const TempFolder folder;
  const DecoderSpec spec = SmallLlama();
  const FakeWeights source(spec);
  const fs::path path = Pack(folder, spec, source);
  for (const char* other :
       {R"("num_key_value_heads":4,"attention_bias":true)", R"("num_key_value_heads":2)",
        R"("num_key_value_heads":2,"attention_bias":true,"tie_word_embeddings":true)"}) {
    const DecoderSpec described = SmallSpecOf("llama", other);
    EXPECT_THAT(Refusal(path, described, FakeWeights(described)),
                HasSubstr("packed: the packed copy of another model: expected "))
        << other;
  }
  for (const int64_t layers : {1, 3}) {
    DecoderSpec described = spec;
    described.layers = layers;
    EXPECT_THAT(Refusal(path, described, FakeWeights(described)),
                HasSubstr("packed: the packed copy of another model: expected "))
        << layers;
  }
  EXPECT_THAT(Refusal(path, spec, source, DType::kI8), HasSubstr("of another model: expected"));
  EXPECT_THAT(
      Refusal(path, spec, FakeWeights(spec, DType::kBF16)),
      HasSubstr(
          "packed: the packed copy of another model: expected \"model.embed_tokens.weight\" of 352 "
          "bytes, found \"model.embed_tokens.weight\" of 704"));
}

// A read beyond an end is refused before it happens.
TEST(PackedWeights, MissNothingThatIsRead) {
  const TempFolder folder;
  const DecoderSpec spec = SmallLlama();
  const FakeWeights source(spec);
  const PackedFile whole(Pack(folder, spec, source, DType::kI8));
  for (size_t left_out = 0; left_out < whole.parts().size(); ++left_out) {
    const TempFolder other;
    const PackedFile file = Packed(other, [&](PackedWriter& writer) {
      for (size_t i = 0; i < whole.parts().size(); ++i) {
        if (i == left_out) continue;
        const Buffer bytes = whole.Part(whole.parts()[i]);
        writer.Write(whole.parts()[i].name,
                     std::span(reinterpret_cast<const float*>(bytes.data()),
                               static_cast<size_t>(bytes.bytes()) / sizeof(float)));
      }
    });
    const std::string& name = whole.parts()[left_out].name;
    ThreadPool pool(1);
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                        [&] { LoadPackedDecoder(spec, source, pool, DType::kI8, file); }),
                HasSubstr(fmt::format("expected \"{}\" of", name)));
  }
}

TEST(PackedWeights, AFlippedBitInAnyPartIsFound) {
  const TempFolder folder;
  const DecoderSpec spec = SmallLlama();
  const fs::path path = Pack(folder, spec, FakeWeights(spec), DType::kGrouped);
  ThreadPool pool(2);
  PackedFile(path).LoadIntoMemory(pool);
  const std::string content = ReadTextFile(path, 1 << 20);
  const PackedFile file(path);
  for (const PackedPart& part : file.parts()) {
    std::string damaged = content;
    damaged[part.offset + part.bytes - 1] ^= 1;
    const TempFolder other({{"copy", damaged}});
    EXPECT_EQ(ErrorOf(ErrorKind::kFormat,
                      [&] { PackedFile(other.path() / "copy").LoadIntoMemory(pool); }),
              fmt::format("{}: damaged: \"{}\" has another checksum",
                          (other.path() / "copy").native(), part.name));
  }
}

// The hooks get the warnings of loading while the model is packed, in the loader's order.
TEST(PackedWeights, ArePackedWithItsHooks) {
  const TempFolder folder;
  const DecoderSpec spec = SmallLlama();
  FakeWeights source(spec);
  source.Set("model.norm.weight", 0, NAN);
  std::vector<std::string> warnings;
  int64_t done_bytes = 0;
  ThreadPool pool(1);
  Packed(folder, [&](PackedWriter& writer) {
    PackDecoder(spec, source, pool,
                {.progress = [&](int64_t done, int64_t /*total*/) { done_bytes = done; },
                 .warn = [&](const std::string& warning) { warnings.push_back(warning); }},
                std::nullopt, writer);
  });
  EXPECT_THAT(warnings, ElementsAre("tensor model.norm.weight holds NaN"));
  EXPECT_EQ(done_bytes, source.total_bytes());
  CancelToken cancel;
  cancel.Cancel();
  ErrorOf(ErrorKind::kCancelled, [&] {
    Packed(folder, [&](PackedWriter& writer) {
      PackDecoder(spec, source, pool, {.cancel = &cancel}, std::nullopt, writer);
    });
  });
}

}  // namespace
}  // namespace godwit::packed_file_test
