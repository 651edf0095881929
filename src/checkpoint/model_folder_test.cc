#include "checkpoint/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::model_folder_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::string kTiny = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";

std::string Refusal(ErrorKind kind, const std::string& path) {
  return ErrorOf(kind, [&] { (void)ModelFolder(path).config(); });
}

TEST(ModelFolder, OpensAllThatIsThere) {
  const ModelFolder model(kTiny);
  EXPECT_EQ(model.path(), kTiny);
  EXPECT_EQ(model.config().model_type(), model.spec().family);
  EXPECT_TRUE(model.has_weights());
  EXPECT_EQ(std::ssize(model.tensors().layers), model.spec().layers);
  EXPECT_EQ(model.tokenizer(), model.tokenizer()) << "one, shared";
  EXPECT_FALSE(model.special_tokens().eos_ids.empty());
}

// A broken or missing part affects only callers that ask for it.
TEST(ModelFolder, ReadsWhatIsAskedFor) {
  const TempFolder broken({{"tokenizer.json", "{"}});
  const ModelFolder model(broken.path());
  EXPECT_TRUE(model.has_tokenizer());
  EXPECT_FALSE(model.has_weights());
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { (void)model.spec(); }), HasSubstr("no config.json"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { (void)model.tokenizer(); }),
              HasSubstr("tokenizer.json"));

  const TempFolder config({{"config.json", "{}"}});
  const ModelFolder without(config.path());
  EXPECT_FALSE(without.has_tokenizer());
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { (void)without.tokenizer(); }),
              HasSubstr("has no tokenizer: expected tokenizer.json, tokenizer.model"));
}

// An unknown family is compared by its config.json, and by its tensors if they can be read.
TEST(ModelFolder, AnUnknownFamilyIsComparedWithTheNearest) {
  const TempFolder folder;
  std::string config = ReadTextFile(kTiny + "/config.json", 1 << 20);
  config.replace(config.find("\"llama\""), 7, "\"zebra\"");
  folder.Write("config.json", config);
  const auto refusal = [&] {
    return ErrorOf(ErrorKind::kUnsupported,
                   [&] { (void)ModelFolder(folder.path().string()).spec(); });
  };
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model_type \"zebra\" is not supported: the nearest "
                                         "family is llama, "),
                               Not(HasSubstr("tensors"))));
  std::filesystem::copy(kTiny + "/model.safetensors", folder.path() / "model.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("; its tensor names are those of that family; supported are"));
  folder.Write("model.safetensors", "no weights");
  EXPECT_THAT(refusal(), Not(HasSubstr("tensors")));
}

// transformers accepts such models, too.
TEST(ModelFolder, IdsOutsideTheVocabularyAreLeftOutAndTold) {
  TempFolder folder;
  for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy(kTiny + "/" + file, folder.path() / file);
  }
  folder.Write("generation_config.json", R"({"bos_token_id": 1, "eos_token_id": [2, 32000]})");
  const SpecialTokens some = ModelFolder(folder.path()).special_tokens();
  EXPECT_EQ(some.eos_ids.front(), 2);
  EXPECT_THAT(some.warnings, testing::ElementsAre(
                                 HasSubstr("generation_config.json: eos_token_id 32000 is ignored: "
                                           "it is outside the vocabulary of 512")));
  // No token is left that ends a text.
  folder.Write("generation_config.json", R"({"eos_token_id": 32000})");
  folder.Write("tokenizer_config.json", R"({"eos_token": "<no such token>"})");
  std::string config = ReadTextFile(kTiny + "/config.json", 1 << 20);
  config.replace(config.find("eos_token_id"), 12, "eos_token_xx");
  folder.Write("config.json", config);
  const SpecialTokens none = ModelFolder(folder.path()).special_tokens();
  EXPECT_THAT(none.eos_ids, testing::IsEmpty());
  EXPECT_THAT(none.warnings, testing::ElementsAre(
                                 HasSubstr("eos_token_id 32000 is ignored"),
                                 AllOf(HasSubstr("no token ends a text"),
                                       HasSubstr("\"<no such token>\" is not in the vocabulary"))));
}

TEST(ModelFolder, TakesTheTokenizerThatIsThere) {
  const ModelFolder pieces(GODWIT_SOURCE_DIR "/tests/data/vocabularies/llama");
  EXPECT_EQ(pieces.tokenizer_file(), "tokenizer.model");
  EXPECT_EQ(pieces.tokenizer()->VocabSize(), 483);
  EXPECT_EQ(ModelFolder(kTiny).tokenizer_file(), "tokenizer.json");
  // Methods that need no text work with a tokenizer that is not supported.
  const TempFolder tiktoken({{"config.json", "{}"}, {"tokenizer.model", "IQ== 0\n"}});
  EXPECT_FALSE(ModelFolder(tiktoken.path()).has_tokenizer());
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [&] { ModelFolder(tiktoken.path()).RequireTokenizer(); }),
      HasSubstr("a list of tiktoken's"));
  const TempFolder broken({{"config.json", "{}"}, {"tokenizer.model", "x"}});
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ModelFolder(broken.path()).has_tokenizer(); }),
              HasSubstr("not a SentencePiece model"));
  const TempFolder half({{"config.json", "{}"}, {"vocab.json", "{}"}});
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { ModelFolder(half.path()).tokenizer(); }),
              AllOf(HasSubstr("or vocab.json with merges.txt, found vocab.json"),
                    HasSubstr("save_pretrained")));
}

TEST(ModelFolder, SaysWhatElseIsThere) {
  EXPECT_THAT(Refusal(ErrorKind::kIo, kTiny + "-not"),
              HasSubstr("tiny-llama-not: no such file or folder, expected a GGUF file, or the "));
  EXPECT_THAT(Refusal(ErrorKind::kIo, "/none/x.gguf"),
              HasSubstr("/none/x.gguf: no such file, expected a GGUF file"));
  EXPECT_THAT(Refusal(ErrorKind::kInput, kTiny + "/config.json"),
              EndsWith("expected the folder of the model, which is " + kTiny));
  const TempFolder adapter({{"adapter_config.json", R"({"base_model_name_or_path": "org/base"})"}});
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, adapter.path()),
              HasSubstr("an adapter (LoRA) of \"org/base\""));
  EXPECT_THAT(Refusal(ErrorKind::kIo, GODWIT_SOURCE_DIR "/tests/golden/llama"),
              AllOf(HasSubstr("no config.json in this folder, but in one inside it: "),
                    HasSubstr("tests/golden/llama/")));
}

const std::string kGguf = GODWIT_SOURCE_DIR "/tests/golden/gguf/llama_q8_0.gguf";

TEST(ModelFolder, OpensGguf) {
  const TempFolder folder;
  std::filesystem::copy(kGguf, folder.path() / "a.gguf");
  for (const std::string& path : {kGguf, folder.path().string()}) {
    const ModelFolder model(path);
    EXPECT_TRUE(model.is_gguf());
    EXPECT_EQ(model.path(), path);
    EXPECT_EQ(model.spec().family, "llama");
    EXPECT_EQ(std::ssize(model.tensors().layers), model.spec().layers);
    EXPECT_TRUE(model.has_weights());
    EXPECT_FALSE(model.has_tokenizer());
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { (void)model.tokenizer(); }),
                HasSubstr("has no vocabulary"));
    EXPECT_FALSE(model.chat_template());
  }
  std::filesystem::copy(kGguf, folder.path() / "b.gguf");
  EXPECT_THAT(Refusal(ErrorKind::kInput, folder.path()),
              HasSubstr("holds 2 GGUF models, expected one: choose"));
  const TempFolder broken({{"model.gguf", "GGUF"},
                           {"random.gguf", "\x8f no model"},
                           {"EMPTY.GGUF", ""},
                           {"lfs.gguf", "version https://git-lfs.github.com/spec/v1\noid"},
                           {"other.bin", "x"}});
  const auto refusal = [&](ErrorKind kind, const char* name) {
    return Refusal(kind, (broken.path() / name).string());
  };
  EXPECT_THAT(refusal(ErrorKind::kFormat, "model.gguf"), HasSubstr("cut short"));
  EXPECT_THAT(refusal(ErrorKind::kFormat, "random.gguf"),
              HasSubstr("no GGUF magic: expected a file that begins with \"GGUF\", found"));
  EXPECT_THAT(refusal(ErrorKind::kIo, "EMPTY.GGUF"), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal(ErrorKind::kFormat, "lfs.gguf"), HasSubstr("a Git LFS pointer"));
  EXPECT_THAT(refusal(ErrorKind::kInput, "other.bin"),
              HasSubstr("neither a GGUF file nor a folder"));
  std::filesystem::create_symlink("never came", broken.path() / "link.gguf");
  EXPECT_THAT(refusal(ErrorKind::kIo, "link.gguf"), HasSubstr("a link to a missing file"));
}

// Parts are one model.
TEST(ModelFolder, OpensGgufInParts) {
  const TempFolder folder({{"m-00001-of-00002.gguf", "GGUF"}, {"m-00002-of-00002.gguf", "GGUF"}});
  EXPECT_THAT(Refusal(ErrorKind::kFormat, folder.path()), HasSubstr("m-00001-of-00002.gguf"));
}

}  // namespace
}  // namespace godwit::model_folder_test
