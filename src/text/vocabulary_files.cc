#include "text/vocabulary_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "text/added_tokens.h"
#include "text/config_document.h"
#include "text/sentencepiece_model.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Three times the largest known.
constexpr size_t kMaxFileBytes = size_t{16} << 20;

constexpr const char* kEndOfText = "<|endoftext|>";

// Tokenizers of vocab.json and merges.txt, with properties that only their class tells.
struct MergesClass {
  std::string_view name;
  std::string_view pre_tokenizer;
  RoleDefaults roles;
  bool framed = false;  // between BOS and EOS
};

const std::vector<MergesClass>& MergesClasses() {
  static const RoleDefaults gpt2 = {
      {"bos_token", kEndOfText}, {"eos_token", kEndOfText}, {"unk_token", kEndOfText}};
  static const RoleDefaults roberta = {{"bos_token", "<s>"},   {"eos_token", "</s>"},
                                       {"unk_token", "<unk>"}, {"sep_token", "</s>"},
                                       {"pad_token", "<pad>"}, {"cls_token", "<s>"}};
  static const std::vector<MergesClass> all = {
      {"GPT2Tokenizer", "gpt-2", gpt2},
      {"CodeGenTokenizer", "gpt-2", gpt2},
      {"GPTNeoXTokenizer", "mpt", gpt2},
      {"Qwen2Tokenizer", "qwen2", {{"eos_token", kEndOfText}, {"pad_token", kEndOfText}}},
      {"RobertaTokenizer", "gpt-2", roberta, /*framed=*/true},
      {"BartTokenizer", "gpt-2", roberta, /*framed=*/true},
  };
  return all;
}

// Tokenizers that use the ids of tokenizer.model as they are. Others shift them (XGLM,
// XLM-RoBERTa), or put tokens in between (T5).
constexpr std::array<std::string_view, 9> kPieceClasses = {
    "LlamaTokenizer",     "CodeLlamaTokenizer",  "InternLMTokenizer",
    "InternLM2Tokenizer", "BaichuanTokenizer",   "BaiChuanTokenizer",
    "YiTokenizer",        "PreTrainedTokenizer", "GemmaTokenizer"};

// The tokenizer class that transformers takes for a model without a tokenizer_class.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kClassesOfModels = {{
    {"gpt2", "GPT2Tokenizer"},
    {"gptj", "GPT2Tokenizer"},
    {"gpt_neo", "GPT2Tokenizer"},
    {"gpt_neox", "GPTNeoXTokenizer"},
    {"opt", "GPT2Tokenizer"},
    {"qwen2", "Qwen2Tokenizer"},
    {"qwen2_moe", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"bart", "BartTokenizer"},
    {"llama", "LlamaTokenizer"},
    {"mistral", "LlamaTokenizer"},
    {"mixtral", "LlamaTokenizer"},
    {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
}};

// The class without "Fast", which says how it is run. Empty if neither file names one.
std::string TokenizerClass(const ConfigDocument& main, const fs::path& folder) {
  const ConfigDocument config = ReadConfigDocument(folder, "config.json");
  for (const ConfigDocument* document : {&main, &config}) {
    const json& name = document->At("tokenizer_class");
    if (!name.is_string()) continue;
    auto text = name.get<std::string>();
    if (text.ends_with("Fast")) text.resize(text.size() - 4);
    return text;
  }
  const json& type = config.At("model_type");
  for (const auto& [model, name] : kClassesOfModels) {
    if (type == model) return std::string(name);
  }
  return "";
}

template <typename Names>
[[noreturn]] void RefuseClass(const fs::path& folder, std::string_view file, std::string_view found,
                              const Names& known) {
  Throw(ErrorKind::kUnsupported,
        "{}: {} {} is not supported, expected one of {}; with transformers installed, this makes a "
        "tokenizer.json of it: {}",
        folder.native(), file,
        found.empty() ? "without a tokenizer_class" : "of the tokenizer_class " + Quote(found),
        NameList(known, [](std::string_view name) { return std::string(name); }),
        ConversionCommand(folder));
}

// Whether lines hold a token in base64 and its number.
bool IsTiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size()) return false;
  return std::ranges::all_of(line.substr(0, space),
                             [](char c) {
                               return std::isalnum(static_cast<unsigned char>(c)) || c == '+' ||
                                      c == '/' || c == '=';
                             }) &&
         std::ranges::all_of(line.substr(space + 1), [](char c) { return c >= '0' && c <= '9'; });
}

// Tokens in the order of their ids.
std::vector<VocabularyToken> ReadVocabJson(const fs::path& file) {
  const json root =
      ParseJson(ReadTextFile(file, kMaxFileBytes), file.native(), {.reject_duplicate_keys = true});
  if (!root.is_object() || root.empty()) {
    Throw(ErrorKind::kFormat, "{}: expected an object of tokens and ids", file.native());
  }
  std::vector<VocabularyToken> tokens(root.size());
  std::vector<bool> seen(root.size());
  for (const auto& [text, id] : root.items()) {
    const bool is_id = id.is_number_unsigned() && id.get<uint64_t>() < tokens.size();
    if (!is_id || seen[id.get<size_t>()]) {
      Throw(ErrorKind::kFormat, "{}: expected the ids 0 to {}, each once; {} has {}", file.native(),
            tokens.size() - 1, Quote(text), Quote(DumpJson(id)));
    }
    seen[id.get<size_t>()] = true;
    tokens[id.get<size_t>()].text = text;
  }
  return tokens;
}

// Reads a pair from each line. The first line may state a version.
std::vector<std::string> ReadMerges(const fs::path& file) {
  const std::string text = ReadTextFile(file, kMaxFileBytes);
  std::vector<std::string> merges;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) merges.emplace_back(line);
  }
  return merges;
}

Vocabulary ReadPieces(const fs::path& folder, const ConfigDocument& main) {
  const fs::path file = folder / "tokenizer.model";
  const std::string kind = TokenizerClass(main, folder);
  if (!kind.empty() && std::ranges::find(kPieceClasses, kind) == kPieceClasses.end()) {
    RefuseClass(folder, "a tokenizer.model", kind, kPieceClasses);
  }
  const std::string bytes = ReadTextFile(file, kMaxFileBytes);
  if (IsTiktoken(bytes)) {
    Throw(ErrorKind::kUnsupported,
          "{} is a list of tiktoken's, expected a model of SentencePiece; with transformers and "
          "tiktoken installed, this makes a tokenizer.json of it: {}",
          file.native(), ConversionCommand(folder));
  }
  Vocabulary vocabulary = ParseSentencePieceModel(bytes, file.native());
  const bool llama = kind == "LlamaTokenizer" || kind == "CodeLlamaTokenizer";
  if (llama || kind == "GemmaTokenizer") {
    // These classes normalize nothing, and overrule the file about the space in front.
    vocabulary.charsmap.clear();
    vocabulary.remove_extra_whitespaces = false;
    vocabulary.space_prefix = SpacePrefix::kNone;
  }
  if (llama && main.Flag("add_prefix_space").value_or(true)) {
    const bool legacy = main.Flag("legacy").value_or(true);
    vocabulary.space_prefix = legacy ? SpacePrefix::kStretch : SpacePrefix::kText;
  }
  vocabulary.add_bos = main.Flag("add_bos_token");
  vocabulary.add_eos = main.Flag("add_eos_token").value_or(false);
  AddTokens(folder, {}, vocabulary);
  return vocabulary;
}

Vocabulary ReadPairs(const fs::path& folder, const ConfigDocument& main) {
  const std::string kind = TokenizerClass(main, folder);
  const auto found = std::ranges::find(MergesClasses(), kind, &MergesClass::name);
  if (found == MergesClasses().end()) {
    RefuseClass(folder, "vocab.json with merges.txt", kind,
                Names(MergesClasses(), &MergesClass::name));
  }
  Vocabulary vocabulary{.kind = VocabularyKind::kByteLevelBpe,
                        .tokens = ReadVocabJson(folder / "vocab.json"),
                        .merges = ReadMerges(folder / "merges.txt"),
                        .pre_tokenizer = std::string(found->pre_tokenizer)};
  if (main.Flag("add_prefix_space").value_or(false)) {
    vocabulary.space_prefix = SpacePrefix::kStretch;
  }
  vocabulary.add_bos = found->framed || main.Flag("add_bos_token").value_or(false);
  vocabulary.add_eos = found->framed || main.Flag("add_eos_token").value_or(false);
  AddTokens(folder, found->roles, vocabulary);
  return vocabulary;
}

}  // namespace

std::optional<std::string> FindTokenizerFile(const fs::path& folder) {
  for (const char* file : {"tokenizer.json", "tokenizer.model"}) {
    if (IsListed(folder / file)) return file;
  }
  if (IsListed(folder / "vocab.json") && IsListed(folder / "merges.txt")) return "vocab.json";
  return std::nullopt;
}

std::string ConversionCommand(const fs::path& folder) {
  std::string name = folder.native();
  // In single quotes a shell interprets only single quotes.
  for (size_t at = 0; (at = name.find('\'', at)) != std::string::npos; at += 4) {
    name.replace(at, 1, R"('\'')");
  }
  return "python3 -c 'import sys, transformers; "
         "transformers.AutoTokenizer.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])' '" +
         Printable(name) + "'";
}

Vocabulary ReadVocabulary(const fs::path& folder) {
  const ConfigDocument main = ReadConfigDocument(folder, "tokenizer_config.json");
  return IsListed(folder / "tokenizer.model") ? ReadPieces(folder, main) : ReadPairs(folder, main);
}

}  // namespace godwit
