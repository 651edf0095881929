#include "checkpoint/hf_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "model/gguf_model_test_support.h"

namespace godwit::hf_files_test {
namespace {

using testing::ElementsAre;

const std::string kGoldens = GODWIT_SOURCE_DIR "/tests/golden/gguf/";

// A GGUF file in memory, opened as a model.
struct Written {
  explicit Written(const GgufBuilder& file) {
    folder.Write("a.gguf", file.Bytes());
    model.emplace((folder.path() / "a.gguf").string());
  }

  const TempFolder folder;
  std::optional<ModelFolder> model;
};

TEST(HfFiles, TextAndChatAreThoseOfTheFile) {
  const ModelFolder model(kGoldens + "tiny_llama.gguf");
  const TempFolder folder;
  WriteHfFiles(model, folder.path(), nullptr);
  const ModelFolder written(folder.path().string());
  EXPECT_FALSE(written.is_gguf());
  EXPECT_EQ(written.spec().max_context, model.spec().max_context);
  EXPECT_EQ(written.tokenizer_json(), model.tokenizer_json());
  const std::string text = "Once upon a time, <|endoftext|> in 1999 \xc3\xa9t\xc3\xa9\n\n  two";
  for (const bool special : {false, true}) {
    EXPECT_EQ(written.tokenizer()->Encode(text, special), model.tokenizer()->Encode(text, special));
  }
  EXPECT_EQ(written.special_tokens().bos_id, model.special_tokens().bos_id);
  EXPECT_EQ(written.special_tokens().eos_ids, model.special_tokens().eos_ids);
  EXPECT_EQ(written.tokenizer_config().named_tokens, model.tokenizer_config().named_tokens);
  ASSERT_TRUE(model.chat_template());
  EXPECT_EQ(written.chat_template()->text, model.chat_template()->text);
}

TEST(HfFiles, TemplatesKeepTheirNames) {
  GgufBuilder file = Model();
  file.Text("tokenizer.ggml.model", "gpt2").Text("tokenizer.ggml.pre", "gpt-2");
  file.List("tokenizer.ggml.tokens", GgufType::kString,
            std::vector<std::string>{"a", "b", "c", "d", "<s>"});
  file.List("tokenizer.ggml.token_type", GgufType::kI32, std::vector<int32_t>{1, 1, 1, 1, 3});
  file.U32("tokenizer.ggml.bos_token_id", 4).U32("tokenizer.ggml.eos_token_id", 3);
  file.Text("tokenizer.chat_template", "plain").Text("tokenizer.chat_template.tools", "with tools");
  file.List("tokenizer.chat_templates", GgufType::kString, std::vector<std::string>{"tools"});
  const Written source(file);
  const TempFolder folder;
  WriteHfFiles(*source.model, folder.path(), nullptr);
  const ModelFolder written(folder.path().string());
  EXPECT_EQ(written.chat_template()->text, "plain");
  EXPECT_EQ(written.chat_template("tools")->text, "with tools");
  EXPECT_EQ(written.special_tokens().bos_id, 4);
  EXPECT_THAT(written.special_tokens().eos_ids, ElementsAre(3));
}

// The attention factor follows from both contexts, unless the file has another one.
TEST(HfFiles, LongRopeHasTheThreeFieldsOfPhi3) {
  const auto config = [](float factor) {
    GgufBuilder file = Model("phi3");
    file.U32("phi3.rope.scaling.original_context_length", 16);
    file.F32("phi3.rope.scaling.attn_factor", factor);
    file.Tensor("rope_factors_long.weight", {2}, kF32, Raw(3.0f) + Raw(4.0f));
    file.Tensor("rope_factors_short.weight", {2}, kF32, Raw(1.0f) + Raw(2.0f));
    return HfConfigOf(*Written(file).model);
  };
  nlohmann::json expected{
      {"type", "longrope"}, {"long_factor", {3.0, 4.0}}, {"short_factor", {1.0, 2.0}}};
  const auto usual = config(1.2247449f);  // the root of 1.5: 64 of 16 tokens
  EXPECT_EQ(usual["rope_scaling"], expected);
  EXPECT_EQ(usual["original_max_position_embeddings"], 16);
  EXPECT_EQ(usual["architectures"], nlohmann::json({"Phi3ForCausalLM"}));
  expected["attention_factor"] = 1.5;
  EXPECT_EQ(config(1.5f)["rope_scaling"], expected);
}

TEST(HfFiles, TypeIsThatOfTheMatrices) {
  for (const auto& [file, type] : {std::pair{"llama_f32", "float32"},
                                   {"llama_f16", "float16"},
                                   {"llama_bf16", "bfloat16"},
                                   {"llama_q4_k", "bfloat16"},
                                   {"gemma3", "bfloat16"}}) {
    const ModelFolder model(kGoldens + file + ".gguf");
    EXPECT_EQ(HfConfigOf(model)["torch_dtype"], type) << file;
    EXPECT_EQ(GainsAreWhole(model), std::string_view(file) == "gemma3") << file;
  }
}

TEST(HfFiles, CountsAreWholeNumbers) {
  const auto config = [](const char* file) {
    return HfConfigOf(ModelFolder(kGoldens + file + ".gguf"));
  };
  EXPECT_TRUE(config("gemma2")["sliding_window"].is_number_integer());
  EXPECT_TRUE(config("mpt")["attn_config"]["alibi_bias_max"].is_number_integer());
}

TEST(HfFiles, WithoutAVocabularyThereIsNoTokenizer) {
  const TempFolder folder;
  WriteHfFiles(ModelFolder(kGoldens + "llama_q8_0.gguf"), folder.path(),
               [](const std::string& message) { ADD_FAILURE() << message; });
  EXPECT_FALSE(ModelFolder(folder.path().string()).has_tokenizer());
}

TEST(HfFiles, ATokenizerThatIsNotSupportedIsSaidToBeMissing) {
  GgufBuilder file = Model();
  file.Text("tokenizer.ggml.model", "rwkv");
  file.List("tokenizer.ggml.tokens", GgufType::kString, std::vector<std::string>{"a"});
  const Written source(file);
  const TempFolder folder;
  std::vector<std::string> said;
  WriteHfFiles(*source.model, folder.path(),
               [&](const std::string& message) { said.push_back(message); });
  EXPECT_THAT(said, ElementsAre(testing::HasSubstr("its tokenizer is not supported")));
  EXPECT_FALSE(ModelFolder(folder.path().string()).has_tokenizer());
}

TEST(HfFiles, DraftHeadsComeAlong) {
  Written source(Model());
  EXPECT_EQ(source.model->draft_heads_file(), source.folder.path() / "a.draft_heads.safetensors");
  source.folder.Write("a.draft_heads.safetensors", "heads");
  const ModelFolder as_folder(source.folder.path().string());
  EXPECT_TRUE(as_folder.is_gguf());
  EXPECT_EQ(as_folder.draft_heads_file(), source.model->draft_heads_file());
  const TempFolder folder;
  WriteHfFiles(*source.model, folder.path(), nullptr);
  EXPECT_EQ(ModelFolder(folder.path().string()).draft_heads_file(),
            folder.path() / "draft_heads.safetensors");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "draft_heads.safetensors"));
}

}  // namespace
}  // namespace godwit::hf_files_test
