#include "checkpoint/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "model/archs/all.h"
#include "text/load_tokenizer.h"
#include "text/vocabulary_files.h"
#include "weights/open_weights.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExpected =
    "expected the folder of a model: config.json, *.safetensors, a tokenizer";
constexpr std::string_view kGguf =
    "GGUF is not supported; expected Hugging Face's files of the model: config.json, "
    "*.safetensors, a tokenizer";

bool IsGguf(const fs::path& path) {
  if (!fs::is_regular_file(path)) return false;
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

// Names of what is wanted in a folder, sorted.
template <typename Wanted>
std::vector<std::string> Entries(const fs::path& folder, const Wanted& wanted) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (wanted(entry.path())) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string BaseOf(const fs::path& adapter_config) {
  const auto json = nlohmann::json::parse(std::ifstream(adapter_config), nullptr,
                                          /*allow_exceptions=*/false);
  const auto base = json.is_object() ? json.find("base_model_name_or_path") : json.end();
  return json.is_object() && base != json.end() && base->is_string()
             ? " of " + Quote(base->get<std::string>())
             : "";
}

// A folder without config.json.
[[noreturn]] void RefuseFolder(const fs::path& folder) {
  const std::string& name = folder.native();
  if (IsListed(folder / "adapter_config.json")) {
    Throw(ErrorKind::kUnsupported,
          "{} is an adapter (LoRA){}: adapters are not supported; expected a whole model, such as "
          "merge_and_unload of peft makes of it",
          name, BaseOf(folder / "adapter_config.json"));
  }
  const auto gguf = Entries(folder, [](const fs::path& p) { return p.extension() == ".gguf"; });
  if (!gguf.empty()) {
    Throw(ErrorKind::kUnsupported, "{} holds {}: {}", name, Quote(gguf.front()), kGguf);
  }
  const auto models =
      Entries(folder, [](const fs::path& p) { return IsListed(p / "config.json"); });
  if (!models.empty()) {
    Throw(ErrorKind::kIo, "{}: no config.json there, but in a folder of it: {}", name,
          (folder / models.front()).native());
  }
  Throw(ErrorKind::kIo, "{}: no config.json there, {}", name, kExpected);
}

// A folder without a tokenizer.
[[noreturn]] void RefuseWithoutTokenizer(const fs::path& folder) {
  if (!IsListed(folder / "config.json")) RefuseFolder(folder);
  for (const char* other :
       {"vocab.json", "merges.txt", "vocab.txt", "spiece.model", "tekken.json", "tiktoken.model"}) {
    if (!IsListed(folder / other)) continue;
    Throw(ErrorKind::kUnsupported,
          "{} has no tokenizer, which text needs: expected {}, found {}; with transformers "
          "installed, this makes a tokenizer.json of what it can read: {}",
          folder.native(), kTokenizerFiles, other, ConversionCommand(folder));
  }
  Throw(ErrorKind::kUnsupported,
        "{} has no tokenizer, which text needs: expected {}; it comes from where the model came "
        "from",
        folder.native(), kTokenizerFiles);
}

[[noreturn]] void RefuseFile(const std::string& path) {
  if (IsGguf(path)) Throw(ErrorKind::kUnsupported, "{} is a GGUF file: {}", path, kGguf);
  const fs::path folder = fs::path(path).parent_path();
  if (IsListed(folder / "config.json")) {
    Throw(ErrorKind::kInput, "{}: not a folder; the model is its folder, {}", path,
          folder.empty() ? "." : folder.native());
  }
  Throw(ErrorKind::kInput, "{}: not a folder, {}", path, kExpected);
}

// The value, made at the first call.
template <typename T, typename Make>
const T& Once(std::optional<T>& value, const Make& make) {
  return value ? *value : value.emplace(make());
}

}  // namespace

ModelFolder::ModelFolder(std::string path) : path_(std::move(path)) {
  if (fs::is_directory(path_)) return;
  if (fs::exists(path_)) RefuseFile(path_);
  Throw(ErrorKind::kIo, "{}: no such folder, {}", path_, kExpected);
}

const HfConfig& ModelFolder::config() const {
  return Once(config_, [&] {
    const fs::path file = fs::path(path_) / "config.json";
    if (!IsListed(file)) RefuseFolder(path_);
    return HfConfig::Load(file);
  });
}

const DecoderSpec& ModelFolder::spec() const {
  return Once(spec_, [&] { return DescribeModel(config()); });
}

std::optional<std::string> ModelFolder::tokenizer_file() const { return FindTokenizerFile(path_); }

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
    tokenizer_ = LoadTokenizer(path_);
  }
  return tokenizer_;
}

const TokenizerConfig& ModelFolder::tokenizer_config() const {
  return Once(tokenizer_config_, [&] { return ReadTokenizerConfig(path_, spec().vocab_size); });
}

SpecialTokens ModelFolder::special_tokens() const {
  const TokenizerConfig& config = tokenizer_config();
  if (!has_tokenizer()) return {.bos_id = config.bos_id, .eos_ids = config.eos_ids};
  return FindSpecialTokens(config, *tokenizer());
}

bool ModelFolder::has_weights() const {
  return std::ranges::any_of(fs::directory_iterator(path_), [](const fs::directory_entry& file) {
    return HoldsWeights(file.path());
  });
}

const WeightSource& ModelFolder::weights() const {
  if (weights_ == nullptr) weights_ = OpenWeights(path_);
  return *weights_;
}

const ModelTensors& ModelFolder::tensors() const {
  return Once(tensors_, [&] { return ResolveTensors(spec(), weights()); });
}

}  // namespace godwit
