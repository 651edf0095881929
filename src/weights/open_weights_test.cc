#include "weights/open_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/test_files.h"

namespace godwit::open_weights_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kHeaderA[] = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
const char kHeaderB[] = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";

std::string Refusal(ErrorKind kind, const std::filesystem::path& folder) {
  const std::string message = ErrorOf(kind, [&] { OpenWeights(folder); });
  EXPECT_THAT(message, HasSubstr(folder.string()));
  return message;
}

TEST(OpenWeightsTest, PrefersTheSingleFile) {
  TempFolder folder;
  folder.Write("1.safetensors", SafetensorsBytes(kHeaderB, "x"));
  folder.Write("model.safetensors.index.json", R"({"weight_map":{"b":"1.safetensors"}})");
  EXPECT_THAT(OpenWeights(folder.path())->Names(), ElementsAre("b"));
  folder.Write("model.safetensors", SafetensorsBytes(kHeaderA, "x"));
  EXPECT_THAT(OpenWeights(folder.path())->Names(), ElementsAre("a"));
}

TEST(OpenWeightsTest, SaysWhatIsNotAModelFolder) {
  TempFolder folder;
  EXPECT_THAT(Refusal(ErrorKind::kIo, folder.path() / "none"), HasSubstr("found nothing there"));
  EXPECT_THAT(Refusal(ErrorKind::kInput, folder.Write("x.gguf", "x")),
              HasSubstr("expected a model folder (config.json, a tokenizer, "
                        "model.safetensors), found a file"));
  // "x/y" where x is a file.
  Refusal(ErrorKind::kIo, folder.path() / "x.gguf" / "y");
}

TEST(OpenWeightsTest, NamesTheWeightsItCannotRead) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  EXPECT_THAT(Refusal(ErrorKind::kIo, folder.path()), HasSubstr("found neither"));
  folder.Write("pytorch_model.bin", "x");
  folder.Write("a.gguf", "x");
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, folder.path()),
              AllOf(HasSubstr("expected model.safetensors or model.safetensors.index.json, found "
                              "\"a.gguf\", \"pytorch_model.bin\""),
                    HasSubstr("save_pretrained")));
  folder.Write("b.gguf", "x");
  folder.Write("c.gguf", "x");
  folder.Write("d.gguf", "x");
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, folder.path()), HasSubstr("and 2 more"));
}

TEST(OpenWeightsTest, NamesALinkThatLeadsNowhere) {
  TempFolder folder;
  std::filesystem::create_symlink("blob", folder.path() / "model.safetensors");
  EXPECT_THAT(Refusal(ErrorKind::kIo, folder.path()),
              HasSubstr("model.safetensors: cannot open: No such file"));
}

TEST(OpenWeightsTest, RefusesAFolderInPlaceOfTheFile) {
  TempFolder folder;
  std::filesystem::create_directory(folder.path() / "model.safetensors");
  EXPECT_THAT(Refusal(ErrorKind::kIo, folder.path()), HasSubstr("expected a file, found a folder"));
}

}  // namespace
}  // namespace godwit::open_weights_test
