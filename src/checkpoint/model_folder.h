// ModelFolder: the folder of a Hugging Face model, or a GGUF file, and the one way to its contents.
// A folder that has no safetensors and one GGUF model is that model.
//
// Each part is read on first use, and kept. A caller that only needs the tokenizer never looks at
// the weights, and a broken part affects no other. Parts live as long as the folder; the tokenizer
// is shared. Not thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "godwit/sampler_options.h"
#include "model/gguf_model.h"
#include "model/model_tensors.h"
#include "model/spec.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "weights/hf_config.h"
#include "weights/weight_source.h"

namespace godwit {

class ModelFolder {
 public:
  // Looks at the folder and at none of its files but the beginning of a GGUF one. Throws Error(kIo)
  // where nothing exists. Throws Error(kInput) for a file that is not GGUF, with the folder if that
  // is a model, and for a folder of several GGUF models.
  explicit ModelFolder(std::string path);

  const std::string& path() const { return path_; }

  // Whether this is a model in GGUF: its parts below are read from its one file.
  bool is_gguf() const { return !gguf_file_.empty(); }
  // The key/values of the GGUF file. Only for a model in GGUF; throws as OpenGgufModel does.
  const GgufMetadata& gguf_metadata() const { return gguf().metadata; }
  // The text of the config.json that the GGUF file's keys and tensors stand for. Only for a model
  // in GGUF.
  const std::string& gguf_config() const { return gguf().config; }

  // config.json. Where there is none, throws an Error that says what the folder holds instead: an
  // adapter, models in folders of their own.
  const HfConfig& config() const;
  // The model that it describes. Throws as DescribeModel does. Where config.json gives the tokens
  // of a step one scale of their int8 inputs, each has its own, with a warning
  // (QuantizationConfig::ScaleEachToken). A token's result would else depend on the others.
  const DecoderSpec& spec() const;
  // Asks for one scale for all tokens of a step where config.json says so, before the model is
  // asked for.
  void RequestStepScales() { step_scales_ = true; }
  bool step_scales() const { return step_scales_; }

  // Asks for the layer that predicts tokens, before the tensors are asked for. Throws
  // Error(kUnsupported) if the model has none: godwit::RequestPrediction, or no weights of it.
  void RequestPrediction();

  // The file that the tokenizer comes from, as FindTokenizerFile has it, or a GGUF file.
  std::optional<std::string> tokenizer_file() const;
  // Whether there is one of a kind that is supported: what needs no text does without. Throws as
  // tokenizer() does for a broken one that is no tokenizer.json.
  bool has_tokenizer() const;
  // Throws Error(kUnsupported) with what to do where there is none.
  void RequireTokenizer() const;
  // Throws that, and as LoadTokenizer does.
  std::shared_ptr<const Tokenizer> tokenizer() const;
  // The content of tokenizer.json, or what a vocabulary makes one of. Throws likewise.
  std::string tokenizer_json() const;
  // Ids outside the vocabulary of the spec are left out, with a warning.
  const TokenizerConfig& tokenizer_config() const;
  // The special tokens in the tokenizer's vocabulary, or without a tokenizer those of the config
  // files.
  SpecialTokens special_tokens() const;

  // As ReadChatTemplate does.
  std::optional<ChatTemplateSource> chat_template(const std::string& choice = "") const;
  // As ReadGenerationConfig does.
  SamplerDefaults sampler_defaults() const;

  // Whether there are weights, in whatever format.
  bool has_weights() const;
  // The files. Throws as OpenWeights or OpenGgufModel do.
  const WeightSource& weights() const;
  // Where they come from, sorted: all parts of a GGUF file, or what tensors lie in.
  std::vector<std::filesystem::path> weight_files() const;
  // Where draft heads of the model belong, there or not: draft_heads.safetensors in its folder, and
  // NAME.draft_heads.safetensors beside NAME.gguf, the first part of several.
  std::filesystem::path draft_heads_file() const;
  // The tensors of which the model is made. Throws as ResolveTensors does.
  const ModelTensors& tensors() const;

 private:
  const GgufModel& gguf() const;
  [[noreturn]] void RefuseUnknownFamily() const;

  std::string path_;
  std::filesystem::path gguf_file_;  // empty: the model is a folder
  bool step_scales_ = false;
  mutable std::optional<GgufModel> gguf_;
  mutable std::optional<HfConfig> config_;
  mutable std::optional<DecoderSpec> spec_;
  mutable std::optional<TokenizerConfig> tokenizer_config_;
  mutable std::shared_ptr<const Tokenizer> tokenizer_;
  mutable std::unique_ptr<const WeightSource> weights_;
  mutable std::optional<ModelTensors> tensors_;
};

}  // namespace godwit
