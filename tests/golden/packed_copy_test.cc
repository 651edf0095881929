// Packed copies of every golden, in every storage: the bits of the weights that LoadDecoder packs.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/checksum.h"
#include "base/new_file.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "model/gguf_model.h"
#include "model/packed_file.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"

namespace godwit::packed_copy_test {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::optional<DType>> kStorages = {{"auto", std::nullopt},
                                                               {"f32", DType::kF32},
                                                               {"bf16", DType::kBF16},
                                                               {"int8", DType::kI8},
                                                               {"int4", DType::kGrouped}};

// A golden, and the tokens that it reads.
struct Model {
  DecoderSpec spec;
  std::unique_ptr<const WeightSource> source;
  std::vector<int32_t> ids;
  int64_t context = 0;
};

Model OpenFolder(const fs::path& path, int64_t context = 0) {
  const fs::path folder = GoldenRoot() / path;
  return {.spec = DescribeModel(HfConfig::Load(folder / "config.json")),
          .source = OpenWeights(folder),
          .ids = ReadReference(folder / "golden.safetensors").ids,
          .context = context};
}

Model OpenGguf(const std::string& name) {
  GgufModel opened = OpenGgufModel(GgufGoldenFile(name));
  Reference reference = ReadReference(GoldenRoot() / "gguf" / (name + ".safetensors"));
  return {.spec = DescribeModel(HfConfig::Parse(opened.config, name)),
          .source = std::move(opened.weights),
          .ids = std::move(reference.ids),
          .context = reference.context};
}

fs::path Pack(const Model& model, std::optional<DType> storage, const fs::path& path) {
  ThreadPool pool(2);
  NewFile file(path);
  PackedWriter writer(file);
  PackDecoder(model.spec, *model.source, pool, {}, storage, writer);
  writer.Finish({});
  file.Commit();
  return path;
}

void ExpectTheSame(const Model& model, std::optional<DType> storage) {
  const TempFolder folder;
  const PackedFile file(Pack(model, storage, folder.path() / "packed"));
  ThreadPool pool(2);
  file.LoadIntoMemory(pool);
  const ModelRunner direct(model.spec, *model.source, storage);
  const ModelRunner mapped(LoadPackedDecoder(model.spec, *model.source, pool, storage, file));
  EXPECT_EQ(direct.decoder().mapped_bytes(), 0);
  EXPECT_EQ(mapped.decoder().mapped_bytes(), mapped.decoder().weight_bytes());
  EXPECT_EQ(mapped.decoder().weight_bytes(), direct.decoder().weight_bytes());
  EXPECT_EQ(mapped.decoder().step_bytes(), direct.decoder().step_bytes());
  EXPECT_EQ(mapped.decoder().StatesDigest(), direct.decoder().StatesDigest());
  const RunOptions options{.context = model.context};
  EXPECT_EQ(mapped.Logits(model.ids, options), direct.Logits(model.ids, options));
  // Single tokens go through other kernels.
  const std::vector<int32_t> few(model.ids.begin(), model.ids.begin() + 3);
  const RunOptions decode{.chunk = 1, .context = model.context};
  EXPECT_EQ(mapped.Logits(few, decode), direct.Logits(few, decode));
}

class PackedFolderTest : public testing::TestWithParam<Golden> {};

TEST_P(PackedFolderTest, RELEASE_GivesTheSameLogits) {
  const Model model = OpenFolder(GetParam().path, GetParam().context);
  for (const auto& [name, storage] : kStorages) {
    // This storage is the golden's own.
    if (storage == DType::kF32 && GetParam().stored == "float32") continue;
    if (storage == DType::kBF16 && GetParam().stored == "bfloat16") continue;
    SCOPED_TRACE(name);
    ExpectTheSame(model, storage);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedFolderTest, testing::ValuesIn(GoldensOfModels()),
                         [](const auto& info) { return TestName(info.param.path); });

class PackedGgufTest : public testing::TestWithParam<std::string> {};

TEST_P(PackedGgufTest, GivesTheSameLogits) {
  const Model model = OpenGguf(GetParam());
  for (const auto& [name, storage] : kStorages) {
    SCOPED_TRACE(name);
    ExpectTheSame(model, storage);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedGgufTest, testing::ValuesIn(GgufGoldens()),
                         [](const auto& info) { return TestName(info.param); });

// Checkpoints that are packed by layers, which a copy keeps as they are.
class PackedLayersTest : public testing::TestWithParam<std::string> {};

TEST_P(PackedLayersTest, GivesTheSameLogits) {
  const Model model = OpenFolder("packed/" + GetParam());
  for (const auto& [name, storage] : kStorages) {
    SCOPED_TRACE(name);
    ExpectTheSame(model, storage);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedLayersTest, testing::ValuesIn(PackedGoldens()),
                         [](const auto& info) { return TestName(info.param); });

// Checksums of the copies of some goldens, equal on every machine. A change of the loader's output
// or of its layout changes them. Then PackedHeader::kVersion must rise, or old copies would be
// taken for new ones.
TEST(PackedChecksums, ChangeOnlyWithTheVersion) {
  struct Case {
    std::string model;
    std::string storage;
    uint64_t checksum;
  };
  const std::vector<Case> cases = {
      {"llama/f16", "auto", 0x4f70aafea4efb4f7},
      {"llama/bf16", "auto", 0xaa2216e58389a218},
      {"llama/biases", "f32", 0x0fc66db4446f8701},
      {"llama/tied", "int8", 0xeae60e162191200e},
      {"llama/gqa", "int4", 0x67f395adc22f53db},
      {"falcon/new_architecture", "bf16", 0x2c35df23e9b283f0},
      {"mixtral/bf16", "int4", 0x949e5a71ac2be3d5},
      {"int8/llama/asymmetric_static", "auto", 0xfad6c38cf62985da},
      {"int8/llama/asymmetric_token", "auto", 0x744a84f5e35c1726},
      {"int8/llama/llm_int8", "auto", 0x80f47d05e15c36cf},
      {"gguf/llama_q4_k", "auto", 0x7765331ad0b46d24},
      {"gguf/llama_q6_k", "auto", 0x0c138b355c6263c7},
      {"gguf/llama_iq4_xs", "auto", 0x8dc23242efcf1d50},
      {"gguf/qwen3moe", "int8", 0x919b7239efbc5da9},
  };
  EXPECT_EQ(PackedHeader::kVersion, 2u) << "its checksums are below";
  for (const Case& one : cases) {
    const TempFolder folder;
    const Model model = one.model.starts_with("gguf/")
                            ? OpenGguf(one.model.substr(5))
                            : OpenFolder(one.model, GoldenOf(one.model).context);
    const PackedFile file(Pack(model, kStorages.at(one.storage), folder.path() / "packed"));
    std::vector<uint64_t> checksums;
    for (const PackedPart& part : file.parts()) checksums.push_back(part.checksum);
    const uint64_t found = Checksum(std::as_bytes(std::span(checksums)));
    EXPECT_EQ(found, one.checksum)
        << fmt::format("{{\"{}\", \"{}\", {:#018x}}},", one.model, one.storage, found);
  }
}

}  // namespace
}  // namespace godwit::packed_copy_test
