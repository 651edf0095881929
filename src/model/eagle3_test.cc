// EAGLE-3 heads: their config.json, their tensors, and what a model with one is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "model/decoder.h"
#include "model/eagle3_folder.h"
#include "model/model_test_support.h"
#include "tests/eagle3_model.h"

namespace godwit::eagle3_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

// The config of EAGLE-3 heads as they are published for Llama 3.1 8B.
nlohmann::json Published() {
  return nlohmann::json::parse(R"({
      "architectures": ["LlamaForCausalLMEagle3"], "bos_token_id": 128000, "eos_token_id": 128001,
      "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
      "intermediate_size": 14336, "max_position_embeddings": 2048, "model_type": "llama",
      "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 1,
      "pad_token_id": 0, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "tie_word_embeddings": false,
      "torch_dtype": "float16", "transformers_version": "4.28.1", "use_cache": true,
      "vocab_size": 128256, "draft_vocab_size": 32000})");
}

DecoderSpec Llama8B() {
  DecoderSpec model;
  model.family = "llama";
  model.hidden_size = 4096;
  model.vocab_size = 128256;
  model.layers = 32;
  return model;
}

Eagle3Spec Read(const nlohmann::json& config, const DecoderSpec& model = Llama8B()) {
  return ReadEagle3(HfConfig::Parse(config.dump(), "config.json"), model);
}

TEST(Eagle3Config, PublishedForLlama) {
  const Eagle3Spec spec = Read(Published());
  EXPECT_THAT(spec.behind, ElementsAre(2, 16, 29));
  EXPECT_EQ(spec.hidden, 4096);
  EXPECT_EQ(spec.model_hidden, 4096);
  EXPECT_EQ(spec.draft_vocab, 32000);
  EXPECT_EQ(spec.heads, 32);
  EXPECT_EQ(spec.kv_heads, 8);
  EXPECT_EQ(spec.head_dim, 128);
  EXPECT_EQ(spec.rotary.theta, 10000);
  EXPECT_FLOAT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_FALSE(spec.norm_before_residual);
}

TEST(Eagle3Config, Variants) {
  nlohmann::json config = Published();
  // Llama 3.3 70B has a head that is narrower than the model.
  config["hidden_size"] = 6144;
  config["target_hidden_size"] = 8192;
  config["head_dim"] = 128;
  config["rope_theta"] = 500000.0;
  config["draft_vocab_size"] = nullptr;
  config["norm_before_residual"] = true;
  DecoderSpec model = Llama8B();
  model.hidden_size = 8192;
  model.layers = 80;
  const Eagle3Spec spec = Read(config, model);
  EXPECT_THAT(spec.behind, ElementsAre(2, 40, 77));
  EXPECT_EQ(spec.hidden, 6144);
  EXPECT_EQ(spec.model_hidden, 8192);
  EXPECT_EQ(spec.draft_vocab, 128256);
  EXPECT_EQ(spec.rotary.theta, 500000);
  EXPECT_TRUE(spec.norm_before_residual);
}

// SpecForge numbers the layers whose outputs are read, vLLM those before which they are.
TEST(Eagle3Config, NumbersOfLayers) {
  constexpr const char* kIds = "eagle_aux_hidden_state_layer_ids";
  nlohmann::json config = Published();
  config["eagle_config"] = {{kIds, {1, 15, 31}}, {"use_aux_hidden_state", true}};
  EXPECT_THAT(Read(config).behind, ElementsAre(2, 16, 32));
  config["eagle_config"][kIds] = nlohmann::json::array();
  EXPECT_THAT(Read(config).behind, ElementsAre(2, 16, 29));
  config[kIds] = {0, 15, 32};
  EXPECT_THAT(Read(config).behind, ElementsAre(0, 15, 32));
}

TEST(Eagle3Config, RefusesHeadsOfOtherModels) {
  const auto refusal = [](const char* key, const nlohmann::json& value) {
    nlohmann::json config = Published();
    config[key] = value;
    return ErrorOf(ErrorKind::kInput, [&] { Read(config); });
  };
  EXPECT_EQ(refusal("vocab_size", 128000),
            "config.json: vocab_size: expected 128256, as the model has it, found 128000");
  EXPECT_EQ(refusal("hidden_size", 2048),
            "config.json: hidden_size: expected 4096, as the model has it, found 2048");
  EXPECT_EQ(refusal("target_hidden_size", 8192),
            "config.json: target_hidden_size: expected 4096, as the model has it, found 8192");
}

TEST(Eagle3Config, RefusesWhatItDoesNotCompute) {
  const std::vector<std::pair<const char*, nlohmann::json>> changes = {
      {"model_type", "gpt_oss"},
      {"num_hidden_layers", 2},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"tie_word_embeddings", true},
      {"fc_norm", true},
      {"norm_output", true},
      {"norm_before_fc", true},
      {"sliding_window", 512},
      {"logit_scale", 0.5},
      {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}},
  };
  for (const auto& [key, value] : changes) {
    nlohmann::json config = Published();
    config[key] = value;
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Read(config); }), HasSubstr(key));
  }
  for (const auto& [key, value] : std::vector<std::pair<const char*, nlohmann::json>>{
           {"use_aux_hidden_state", false},
           {"use_last_layernorm", false},
           {"use_mtp_layernorm", true},
           {"eagle_aux_hidden_state_layer_ids", {3, 4}}}) {
    nlohmann::json config = Published();
    config["eagle_config"][key] = value;
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Read(config); }),
                HasSubstr(std::string("eagle_config.") + key));
  }
  nlohmann::json config = Published();
  config["draft_vocab_size"] = 200000;
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Read(config); }), HasSubstr("draft_vocab_size"));
  config = Published();
  config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = {1, 15, 32};
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Read(config); }), HasSubstr("0 to 31"));
  DecoderSpec small = Llama8B();
  small.layers = 4;
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Read(Published(), small); }),
              HasSubstr("eagle_aux_hidden_state_layer_ids for a model of 4 layers"));
}

TEST(Eagle3Config, RefusesModelsThatNoHeadReads) {
  DecoderSpec latent = Llama8B(), streams = Llama8B(), alibi = Llama8B();
  latent.latent.emplace();
  streams.streams.emplace();
  alibi.alibi.slopes = {1};
  const auto refusal = [](const DecoderSpec& model) {
    return ErrorOf(ErrorKind::kUnsupported, [&] { Read(Published(), model); });
  };
  EXPECT_THAT(refusal(latent), HasSubstr("latent attention"));
  EXPECT_THAT(refusal(streams), HasSubstr("several residual streams"));
  EXPECT_THAT(refusal(alibi), HasSubstr("ALiBi"));
}

class Eagle3Files : public testing::Test {
 protected:
  Eagle3Files() {
    model_ = DescribeModel(HfConfig::Load(kGolden / "config.json"));
    WriteEagle3Head(kGolden, folder_, /*agrees=*/false);
  }

  std::string Refusal() const {
    return ErrorOf(ErrorKind::kFormat, [&] { Eagle3Folder(folder_, model_); });
  }
  void ChangeConfig(const char* key, const nlohmann::json& value) {
    ChangeJson(folder_ / "config.json", [&](nlohmann::json& config) { config[key] = value; });
  }

  const fs::path kGolden = GODWIT_SOURCE_DIR "/tests/golden/qwen3/layer_types";
  TempFolder temp_;
  fs::path folder_ = temp_.path() / "head";
  DecoderSpec model_;
};

TEST_F(Eagle3Files, AHeadHasKeysBehindTheModels) {
  const Eagle3Folder head(folder_, model_);
  ThreadPool pool(1);
  DecoderSpec with = DescribeModel(HfConfig::Load(kGolden / "config.json"));
  const int64_t layers = Geometry(with).layers;
  EXPECT_EQ(Geometry(with).predicting, 0);
  with.eagle3 = head.spec();
  const AttentionGeometry geometry = Geometry(with);
  EXPECT_EQ(geometry.layers, layers);
  EXPECT_EQ(geometry.predicting, 1);
  EXPECT_EQ(geometry.predicting_from, 1);
  EXPECT_EQ(geometry.ShapeOf(layers).kv_heads, 1);
  EXPECT_EQ(geometry.ShapeOf(layers).head_dim, 32);
  EXPECT_EQ(geometry.ShapeOf(layers - 1).head_dim, 8);
  EXPECT_EQ(geometry.rotaries[geometry.RotaryOf(layers)], head.spec().rotary);
  EXPECT_EQ(Geometry(FirstLayers(with, 1)).predicting, 0);
  EXPECT_LT(head.LoadedBytes(DType::kI8), head.LoadedBytes(std::nullopt));
  for (const auto storage : {DType::kF32, DType::kBF16, DType::kI8, DType::kGrouped}) {
    EXPECT_EQ(head.Load(pool, storage)->bytes(), head.LoadedBytes(storage)) << Name(storage);
  }
}

TEST_F(Eagle3Files, RefusesOtherTensors) {
  ChangeConfig("intermediate_size", 25);
  EXPECT_THAT(Refusal(), HasSubstr("tensor midlayer.mlp.gate_proj.weight of the EAGLE-3 head: "
                                   "expected floats [25, 32], found F32 [24, 32]"));
}

// A published head, in which each change spoils something.
TEST(Eagle3Golden, RefusesMissingUnexpectedAndContradictingTensors) {
  const fs::path goldens = GODWIT_SOURCE_DIR "/tests/golden";
  const DecoderSpec model = DescribeModel(HfConfig::Load(goldens / "llama/gqa/config.json"));
  const std::string bytes = ReadTextFile(goldens / "eagle3/llama/model.safetensors", 1 << 20);
  TempFolder temp;
  fs::copy_file(goldens / "eagle3/llama/config.json", temp.path() / "config.json");
  const auto refusal = [&](const std::string& changed) {
    WriteTestFile(temp.path() / "model.safetensors", changed);
    return ErrorOf(ErrorKind::kFormat, [&] { Eagle3Folder(temp.path(), model); });
  };
  const auto renamed = [&](std::string_view from, std::string_view to) {
    std::string changed = bytes;
    return changed.replace(changed.find(from), from.size(), to);
  };
  EXPECT_THAT(refusal(renamed("midlayer.hidden_norm", "midlayer.hidden_nort")),
              HasSubstr("tensor midlayer.hidden_norm.weight of the EAGLE-3 head: expected floats "
                        "[32], found none"));
  EXPECT_THAT(refusal(renamed("\"d2t\"", "\"d2s\"")),
              HasSubstr("tensor d2t of the EAGLE-3 head: expected whole numbers (I64 or I32) [33], "
                        "found none"));
  EXPECT_THAT(
      refusal(renamed("\"t2d\"", "\"t2s\"")),
      HasSubstr("tensor t2s of the EAGLE-3 head: expected no such tensor, found BOOL [51]"));
  std::string contradicts = bytes;
  WriteTestFile(temp.path() / "model.safetensors", bytes);
  const Eagle3Folder fits(temp.path(), model);
  const uint64_t place =
      OpenSafetensors(temp.path() / "model.safetensors")->Find("t2d")->offset_bytes;
  contradicts[place + 7] ^= 1;
  EXPECT_THAT(refusal(contradicts), HasSubstr("expected to agree on the tokens that it knows, "
                                              "found token 7 in one alone"));
}

TEST_F(Eagle3Files, RefusesAMissingOrWrongVocabulary) {
  const auto differences = [](int64_t last) {
    std::vector<int64_t> all(48, 0);
    all.back() = last;
    return all;
  };
  const fs::path file = folder_ / "model-00002-of-00002.safetensors";
  WriteD2t(differences(3), file);
  const Eagle3Folder fits(folder_, model_);
  for (const int64_t last : {int64_t{4}, int64_t{-48}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    WriteD2t(differences(last), file);
    EXPECT_THAT(Refusal(),
                HasSubstr("tensor d2t of the EAGLE-3 head: expected for token 47 a token "
                          "of the model's 51 that no other has, found a difference of " +
                          std::to_string(last)));
  }
  WriteD2t(std::vector<int64_t>(47), file);
  EXPECT_THAT(Refusal(), HasSubstr("tensor d2t of the EAGLE-3 head: expected whole numbers (I64 or "
                                   "I32) [48], found I64 [47]"));
}

}  // namespace
}  // namespace godwit::eagle3_test
