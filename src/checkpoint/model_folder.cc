#include "checkpoint/model_folder.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/gguf_choice.h"
#include "checkpoint/gguf_tokenizer.h"
#include "checkpoint/tensor_differences.h"
#include "model/archs/all.h"
#include "model/archs/nearest_family.h"
#include "model/draft_heads.h"
#include "text/load_tokenizer.h"
#include "text/vocabulary.h"
#include "text/vocabulary_files.h"
#include "weights/gguf_files.h"
#include "weights/open_weights.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExpected =
    "expected a GGUF file, or the folder of a model (config.json, *.safetensors, a tokenizer)";

// Sorted names of a folder's entries for which wanted() is true.
template <typename Wanted>
std::vector<std::string> Entries(const fs::path& folder, const Wanted& wanted) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (wanted(entry.path())) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The first part of a GGUF model: the file itself, or the only GGUF model in a folder without
// safetensors. Empty: there is none.
fs::path GgufIn(const fs::path& folder) {
  if (!fs::is_directory(folder)) return IsGguf(folder) ? folder : fs::path();
  if (HoldsSafetensors(folder)) return {};
  const std::vector<fs::path> models = GgufModelsIn(folder);
  if (models.size() > 1) {
    constexpr int64_t kShown = 8;
    const auto name = [](const fs::path& model) { return QuoteUnlessPlain(model.native()); };
    Throw(ErrorKind::kInput, "{} holds {} GGUF models, expected one: choose one of {}",
          folder.native(), models.size(), FirstNames(Names(models, name), kShown));
  }
  return models.empty() ? fs::path() : models.front();
}

std::string BaseOf(const fs::path& adapter_config) {
  const auto json = nlohmann::json::parse(std::ifstream(adapter_config), nullptr,
                                          /*allow_exceptions=*/false);
  const auto base = json.is_object() ? json.find("base_model_name_or_path") : json.end();
  return json.is_object() && base != json.end() && base->is_string()
             ? " of " + Quote(base->get<std::string>())
             : "";
}

// Refuses a folder without config.json.
[[noreturn]] void RefuseFolder(const fs::path& folder) {
  const std::string& name = folder.native();
  if (IsListed(folder / "adapter_config.json")) {
    Throw(ErrorKind::kUnsupported,
          "{} is an adapter (LoRA){}, which is not supported: expected a whole model; "
          "merge_and_unload of peft makes one",
          name, BaseOf(folder / "adapter_config.json"));
  }
  const auto models =
      Entries(folder, [](const fs::path& p) { return IsListed(p / "config.json"); });
  if (!models.empty()) {
    Throw(ErrorKind::kIo, "{}: no config.json in this folder, but in one inside it: {}", name,
          (folder / models.front()).native());
  }
  Throw(ErrorKind::kIo, "{}: no config.json in this folder, {}", name, kExpected);
}

// Refuses a folder without a tokenizer, or a GGUF file without a vocabulary.
[[noreturn]] void RefuseWithoutTokenizer(const fs::path& folder) {
  if (!GgufIn(folder).empty()) {
    Throw(ErrorKind::kUnsupported, "{} has no vocabulary, so it takes token ids only",
          folder.native());
  }
  if (!IsListed(folder / "config.json")) RefuseFolder(folder);
  for (const char* other :
       {"vocab.json", "merges.txt", "vocab.txt", "spiece.model", "tekken.json", "tiktoken.model"}) {
    if (!IsListed(folder / other)) continue;
    Throw(ErrorKind::kUnsupported,
          "{} has no tokenizer that godwit reads: expected {}, found {}; with transformers "
          "installed, this command makes a tokenizer.json: {}",
          folder.native(), kTokenizerFiles, other, ConversionCommand(folder));
  }
  Throw(ErrorKind::kUnsupported,
        "{} has no tokenizer: expected {}; download it from the source of the model",
        folder.native(), kTokenizerFiles);
}

[[noreturn]] void RefuseFile(const std::string& path) {
  if (IsGgufName(path)) RequireGguf(path);
  const fs::path folder = fs::path(path).parent_path();
  if (IsListed(folder / "config.json")) {
    Throw(ErrorKind::kInput, "{}: expected the folder of the model, which is {}", path,
          folder.empty() ? "." : folder.native());
  }
  Throw(ErrorKind::kInput, "{}: neither a GGUF file nor a folder, {}", path, kExpected);
}

[[noreturn]] void RefuseAbsent(const std::string& path) {
  const char* const what = IsGgufName(path) ? "file" : "file or folder";
  if (IsListed(path)) {
    Throw(ErrorKind::kIo, "{}: a link to a missing {}, {}", path, what, kExpected);
  }
  Throw(ErrorKind::kIo, "{}: no such {}, {}", path, what, kExpected);
}

// The value, made at the first call.
template <typename T, typename Make>
const T& Once(std::optional<T>& value, const Make& make) {
  return value ? *value : value.emplace(make());
}

}  // namespace

ModelFolder::ModelFolder(std::string path) : path_(std::move(path)) {
  gguf_file_ = GgufIn(path_);
  if (is_gguf() || fs::is_directory(path_)) return;
  if (fs::exists(path_)) RefuseFile(path_);
  RefuseAbsent(path_);
}

const GgufModel& ModelFolder::gguf() const {
  return Once(gguf_, [&] { return OpenGgufModel(gguf_file_); });
}

const HfConfig& ModelFolder::config() const {
  return Once(config_, [&] {
    if (is_gguf()) return HfConfig::Parse(gguf().config, gguf_file_.native());
    const fs::path file = fs::path(path_) / "config.json";
    if (!IsListed(file)) RefuseFolder(path_);
    return HfConfig::Load(file);
  });
}

const DecoderSpec& ModelFolder::spec() const {
  return Once(spec_, [&] {
    if (FindArchitecture(config().model_type()) == nullptr) RefuseUnknownFamily();
    DecoderSpec spec = DescribeModel(config());
    if (is_gguf()) spec.described_by = "GGUF metadata";
    if (!step_scales_ && spec.quantization.ScaleEachToken()) {
      spec.warnings.emplace_back(
          "config.json gives the tokens of a step one scale of their int8 inputs, so that a text "
          "would depend on how it is cut into steps: each token gets its own scale instead");
    }
    return spec;
  });
}

void ModelFolder::RequestPrediction() {
  (void)spec();
  godwit::RequestPrediction(*spec_);
  if (HasPrediction(*spec_, weights())) return;
  Throw(ErrorKind::kUnsupported,
        "{} has no layer that predicts tokens: expected the tensor {}.weight, found none", path_,
        spec_->prediction->join);
}

void ModelFolder::RefuseUnknownFamily() const {
  const NearestFamily nearest = FindNearestFamily(config());
  std::string tensors;
  try {
    if (nearest.spec && has_weights()) {
      tensors = TensorDifferences(*nearest.spec, weights().Names());
    }
  } catch (const Error&) {
    // Weights that cannot be opened allow no comparison; the family is the reason.
  }
  RefuseFamily(config(), nearest, tensors);
}

std::optional<std::string> ModelFolder::tokenizer_file() const {
  if (!is_gguf()) return FindTokenizerFile(path_);
  if (!gguf().metadata.Has("tokenizer.ggml.model")) return std::nullopt;
  return gguf_file_.filename();
}

bool ModelFolder::has_tokenizer() const {
  const std::optional<std::string> file = tokenizer_file();
  if (!file || *file == "tokenizer.json") return file.has_value();
  try {
    return tokenizer() != nullptr;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    return false;
  }
}

void ModelFolder::RequireTokenizer() const {
  if (!has_tokenizer()) (void)tokenizer();
}

std::shared_ptr<const Tokenizer> ModelFolder::tokenizer() const {
  if (tokenizer_ == nullptr) {
    if (!tokenizer_file()) RefuseWithoutTokenizer(path_);
    if (is_gguf()) {
      tokenizer_ = MakeTokenizer(GgufVocabulary(gguf().metadata), gguf_file_.native());
    } else {
      tokenizer_ = LoadTokenizer(path_);
    }
  }
  return tokenizer_;
}

std::string ModelFolder::tokenizer_json() const {
  if (!is_gguf()) return ReadTokenizerFile(path_);
  return TokenizerJson(GgufVocabulary(gguf().metadata), gguf_file_.native());
}

const TokenizerConfig& ModelFolder::tokenizer_config() const {
  return Once(tokenizer_config_, [&] {
    return is_gguf() ? GgufTokenizerConfig(gguf().metadata, spec().vocab_size)
                     : ReadTokenizerConfig(path_, spec().vocab_size);
  });
}

std::optional<ChatTemplateSource> ModelFolder::chat_template(const std::string& choice) const {
  return is_gguf() ? GgufChatTemplate(gguf().metadata, choice) : ReadChatTemplate(path_, choice);
}

SamplerDefaults ModelFolder::sampler_defaults() const {
  return is_gguf() ? SamplerDefaults{} : ReadGenerationConfig(path_);
}

SpecialTokens ModelFolder::special_tokens() const {
  const TokenizerConfig& config = tokenizer_config();
  if (!has_tokenizer()) return FindSpecialTokens(config);
  return FindSpecialTokens(config, *tokenizer(), spec().vocab_size);
}

bool ModelFolder::has_weights() const {
  if (is_gguf()) return true;
  return std::ranges::any_of(fs::directory_iterator(path_), [](const fs::directory_entry& file) {
    return HoldsWeights(file.path());
  });
}

const WeightSource& ModelFolder::weights() const {
  if (is_gguf()) return *gguf().weights;
  if (weights_ == nullptr) weights_ = OpenWeights(path_);
  return *weights_;
}

std::vector<fs::path> ModelFolder::weight_files() const {
  if (is_gguf()) return GgufParts(gguf_file_);
  std::set<fs::path> files;
  for (const std::string& name : weights().Names()) files.insert(weights().Find(name)->file);
  return {files.begin(), files.end()};
}

fs::path ModelFolder::draft_heads_file() const {
  const std::string name = DraftHeads::kFileName;
  if (!is_gguf()) return fs::path(path_) / name;
  return GgufParts(gguf_file_).front().replace_extension("." + name);
}

const ModelTensors& ModelFolder::tensors() const {
  return Once(tensors_, [&] { return ResolveTensors(spec(), weights()); });
}

}  // namespace godwit
