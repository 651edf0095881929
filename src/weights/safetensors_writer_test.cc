#include "weights/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "weights/open_weights.h"
#include "weights/test_files.h"

namespace godwit::safetensors_writer_test {
namespace {

const std::vector<NewTensor> kTensors = {
    {.name = "a.weight", .dtype = DType::kI8, .shape = {3, 1}},
    {.name = "a.weight_scale", .dtype = DType::kBF16, .shape = {3, 1}},
    {.name = "b \"quoted\"", .dtype = DType::kF32, .shape = {2}},
};
const std::map<std::string, std::string> kBytes = {
    {"a.weight", "xyz"}, {"a.weight_scale", "112233"}, {"b \"quoted\"", "ffffgggg"}};

void WriteAll(const std::filesystem::path& folder, int64_t max_shard_bytes) {
  SafetensorsWriter writer(folder, kTensors, max_shard_bytes);
  for (const auto& [name, bytes] : kBytes) {
    EXPECT_FALSE(writer.complete());
    writer.Write(name, AsBytes(bytes));
  }
  EXPECT_TRUE(writer.complete());
}

void ExpectAll(const std::filesystem::path& folder) {
  const auto source = OpenWeights(folder);
  EXPECT_EQ(source->Names().size(), kTensors.size());
  EXPECT_EQ(source->Metadata().at("format"), "pt");
  for (const NewTensor& tensor : kTensors) {
    const TensorInfo* found = source->Find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(found->bytes, AsBytes(kBytes.at(tensor.name)))) << tensor.name;
    EXPECT_EQ(found->offset_bytes % SizeOf(tensor.dtype), 0) << tensor.name;
  }
}

TEST(SafetensorsWriter, OneFile) {
  const TempFolder folder;
  WriteAll(folder.path(), SafetensorsWriter::kMaxShardBytes);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "model.safetensors"));
  ExpectAll(folder.path());
}

TEST(SafetensorsWriter, Shards) {
  const TempFolder folder;
  WriteAll(folder.path(), 9);  // the two tensors of a
  ExpectAll(folder.path());
  const std::string index = ReadTextFile(folder.path() / "model.safetensors.index.json", 10000);
  EXPECT_THAT(index, testing::HasSubstr("\"total_size\": 17"));
  EXPECT_THAT(index, testing::HasSubstr(R"("a.weight_scale": "model-00001-of-00002.safetensors")"));
}

TEST(SafetensorsWriter, ATensorLargerThanAShardIsOne) {
  const TempFolder folder;
  WriteAll(folder.path(), 1);
  ExpectAll(folder.path());
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "model-00003-of-00003.safetensors"));
}

TEST(SafetensorsWriter, SameTensorsSameBytes) {
  const TempFolder one, other;
  for (const TempFolder* folder : {&one, &other}) WriteAll(folder->path(), 1 << 20);
  EXPECT_EQ(ReadTextFile(one.path() / "model.safetensors", 10000),
            ReadTextFile(other.path() / "model.safetensors", 10000));
}

TEST(SafetensorsWriter, RefusedByTheSystem) {
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [] { SafetensorsWriter("/missing", kTensors); }),
              testing::HasSubstr("/missing/model.safetensors: cannot create"));
}

}  // namespace
}  // namespace godwit::safetensors_writer_test
