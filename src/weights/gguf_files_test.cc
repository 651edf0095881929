#include "weights/gguf_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "weights/gguf_test_support.h"

namespace godwit::gguf_files_test {
namespace {

using testing::HasSubstr;

std::string Part(uint16_t number, uint16_t parts, std::string_view tensor, int32_t tensors = 2) {
  GgufBuilder builder;
  if (number == 0) builder.Text("general.architecture", "llama");
  builder.Key("split.no", GgufType::kU16, number).Key("split.count", GgufType::kU16, parts);
  builder.Key("split.tensors.count", GgufType::kI32, tensors);
  builder.Tensor(tensor, {1}, 0, Raw(static_cast<float>(number)));
  return builder.Bytes();
}

std::string Refusal(ErrorKind kind, const std::filesystem::path& file) {
  return ErrorOf(kind, [&] { (void)OpenGgufFiles(file); });
}

TEST(GgufFiles, AnyPartOpensAll) {
  const TempFolder folder(
      {{"m-00001-of-00002.gguf", Part(0, 2, "a")}, {"m-00002-of-00002.gguf", Part(1, 2, "b")}});
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    const GgufFiles model = OpenGgufFiles(folder.path() / name);
    EXPECT_EQ(model.metadata.String("general.architecture"), "llama");
    ASSERT_EQ(model.tensors.size(), 2u);
    EXPECT_EQ(model.tensors[1].name, "b");
    EXPECT_EQ(model.tensors[1].file, folder.path() / "m-00002-of-00002.gguf");
  }
}

TEST(GgufFiles, RefusesPartsThatDoNotFit) {
  const TempFolder folder({{"lone-00001-of-00002.gguf", Part(0, 2, "a")},
                           {"name.gguf", Part(0, 2, "a")},
                           {"twin-00001-of-00002.gguf", Part(0, 2, "a")},
                           {"twin-00002-of-00002.gguf", Part(1, 2, "a")},
                           {"mixed-00001-of-00002.gguf", Part(0, 2, "a")},
                           {"mixed-00002-of-00002.gguf", Part(1, 3, "b")},
                           {"few-00001-of-00001.gguf", Part(0, 1, "a")}});
  const auto at = [&](const char* name) { return folder.path() / name; };
  EXPECT_THAT(Refusal(ErrorKind::kIo, at("lone-00001-of-00002.gguf")),
              HasSubstr("lone-00002-of-00002.gguf"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, at("name.gguf")),
              HasSubstr("expected part 1 of 1, according to the file's name, found part 1 of 2"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, at("twin-00001-of-00002.gguf")),
              HasSubstr("tensor \"a\": expected in one part, found in two"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, at("mixed-00001-of-00002.gguf")),
              HasSubstr("expected part 2 of 2, according to the file's name, found part 2 of 3"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, at("few-00001-of-00001.gguf")),
              HasSubstr("split.tensors.count: expected 1, found 2"));
}

TEST(GgufFiles, KnowsPartsByTheirNames) {
  const auto parts = GgufParts("f/m-00002-of-00003.gguf");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0], "f/m-00001-of-00003.gguf");
  EXPECT_EQ(parts[2], "f/m-00003-of-00003.gguf");
  for (const char* alone : {"m.gguf", "m-2-of-3.gguf", "m-00002-of-00003.bin", "-00001-of.gguf",
                            "m--0001-of-00003.gguf", "m-00001-of--0003.gguf"}) {
    EXPECT_EQ(GgufParts(alone).size(), 1u) << alone;
  }
}

TEST(GgufFiles, TellsThemByTheirFirstBytes) {
  const TempFolder folder({{"a", "GGUF"}, {"b.gguf", "GGU"}});
  EXPECT_TRUE(IsGguf(folder.path() / "a"));
  EXPECT_FALSE(IsGguf(folder.path() / "b.gguf"));
  EXPECT_FALSE(IsGguf(folder.path()));
}

}  // namespace
}  // namespace godwit::gguf_files_test
