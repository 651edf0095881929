#include "hub/choose_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::hub::choose_files_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Listing Of(const std::vector<std::string>& names) {
  Listing listing{.repository = "o/n", .commit = "0123456789"};
  int64_t bytes = 1 << 20;
  for (const std::string& name : names) {
    listing.files.push_back({.name = name, .bytes = bytes, .blob = "b"});
    bytes += 1 << 20;
  }
  return listing;
}

std::vector<std::string> Chosen(const Listing& listing, const std::string& quant = "") {
  std::vector<std::string> names;
  for (const RemoteFile& file : ChooseFiles(listing, quant).files) names.push_back(file.name);
  return names;
}

TEST(ChooseFiles, ACheckpointIsItsSafetensorsAndWhatIsReadBesideThem) {
  EXPECT_THAT(
      Chosen(Of({"README.md", ".gitattributes", "model.safetensors", "config.json",
                 "pytorch_model.bin", "onnx/model.onnx", "tokenizer.json", "chat_template.jinja",
                 "additional_chat_templates/rag.jinja", "generation_config.json", "n-Q4_0.gguf",
                 "modeling_x.py", "original/consolidated.00.pth"})),
      ElementsAre("config.json", "tokenizer.json", "chat_template.jinja",
                  "additional_chat_templates/rag.jinja", "generation_config.json",
                  "model.safetensors"));
  EXPECT_THAT(
      Chosen(Of({"config.json", "model.safetensors.index.json", "pytorch_model.bin.index.json",
                 "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                 "consolidated.safetensors", "old/model-00001-of-00002.safetensors"})),
      ElementsAre("config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
                  "model-00002-of-00002.safetensors"));
}

TEST(ChooseFiles, AQuantIsAllPartsOfItsModel) {
  const Listing listing =
      Of({"n-Q4_K_M.gguf", "n-Q8_0-00001-of-00002.gguf", "n-Q8_0-00002-of-00002.gguf",
          "F16/n-F16.gguf", "mmproj-F16.gguf", "model.safetensors", "deep/er/n-Q2_K.gguf"});
  EXPECT_THAT(Chosen(listing, "Q4_K_M"), ElementsAre("n-Q4_K_M.gguf"));
  EXPECT_THAT(Chosen(listing, "q8_0"),
              ElementsAre("n-Q8_0-00001-of-00002.gguf", "n-Q8_0-00002-of-00002.gguf"));
  EXPECT_THAT(Chosen(listing, "F16"), ElementsAre("F16/n-F16.gguf"));
  EXPECT_EQ(ChooseFiles(listing, "q8_0").word, "Q8_0");
  EXPECT_EQ(ChooseFiles(listing, "").word, "");
  EXPECT_THAT(
      ErrorOf(ErrorKind::kFormat, [] { Chosen(Of({"n-Q8_0-00001-of-00002.gguf"}), "Q8_0"); }),
      HasSubstr("its part \"n-Q8_0-00002-of-00002.gguf\" is missing"));
}

TEST(ChooseFiles, TheOnlyGgufModelNeedsNoWord) {
  EXPECT_THAT(Chosen(Of({"README.md", "n-Q4_0.gguf", "mmproj-n.gguf"})),
              ElementsAre("n-Q4_0.gguf"));
  EXPECT_EQ(ChooseFiles(Of({"n-Q4_0.gguf"}), "").word, "Q4_0");
}

TEST(ChooseFiles, SeveralModelsAreListedWithNamesAndSizes) {
  const Listing listing = Of(
      {"n-Q8_0-00001-of-00002.gguf", "n-Q8_0-00002-of-00002.gguf", "n-F16.gguf", "n-Q4_K_M.gguf"});
  EXPECT_EQ(ErrorOf(ErrorKind::kInput, [&] { Chosen(listing); }),
            "o/n has 3 GGUF models, expected one: choose one of\n"
            "  o/n:F16     3.0 MiB\n"
            "  o/n:Q8_0    3.0 MiB\n"
            "  o/n:Q4_K_M  4.0 MiB");
  EXPECT_EQ(ErrorOf(ErrorKind::kIo, [&] { Chosen(listing, "Q4_KM"); }),
            "o/n:Q4_KM: there is no such GGUF model, did you mean o/n:Q4_K_M?; there is\n"
            "  o/n:F16     3.0 MiB\n"
            "  o/n:Q8_0    3.0 MiB\n"
            "  o/n:Q4_K_M  4.0 MiB");
  EXPECT_THAT(
      ErrorOf(ErrorKind::kInput,
              [] {
                Chosen(Of({"a-Q4_0.gguf", "b-Q4_0.gguf"}), "Q4_0");
              }),
      HasSubstr("o/n:Q4_0 matches 2 GGUF models, expected one: choose one of\n  o/n:a-Q4_0"));
}

TEST(ChooseFiles, ThereIsALimitToHowManyAreCompared) {
  std::vector<std::string> names;
  for (int i = 0; i <= 200; ++i) names.push_back(fmt::format("n{}-Q4_0.gguf", i));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Chosen(Of(names), "Q4_0"); }),
              HasSubstr("o/n has 201 GGUF models, expected at most 200"));
  names.pop_back();
  EXPECT_THAT(Chosen(Of(names), "n7-Q4_0"), ElementsAre("n7-Q4_0.gguf"));
}

TEST(ChooseFiles, UnloadableFilesAreNoModel) {
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [] {
                        Chosen(Of({"config.json", "pytorch_model.bin"}));
                      }),
              HasSubstr("expected model.safetensors or a GGUF file, found "
                        "\"config.json\" and \"pytorch_model.bin\""));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Chosen(Of({})); }), HasSubstr("no files"));
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [] { Chosen(Of({"model.safetensors"}), "Q4_0"); }),
              HasSubstr("there is no GGUF model in o/n"));
}

}  // namespace
}  // namespace godwit::hub::choose_files_test
