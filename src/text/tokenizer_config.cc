#include "text/tokenizer_config.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quote.h"

namespace godwit {
namespace {

using nlohmann::json;

constexpr size_t kMaxConfigBytes = size_t{64} << 20;
constexpr size_t kMaxTemplateBytes = size_t{4} << 20;

// A JSON file together with its name, for messages. Absent files are empty objects.
struct Document {
  std::string name;
  json root = json::object();

  // Null where the key is missing or null.
  const json& At(const char* key) const {
    static const json null;
    const auto found = root.find(key);
    return found == root.end() ? null : *found;
  }

  [[noreturn]] void Bad(std::string_view key, std::string_view expected, const json& found) const {
    Throw(ErrorKind::kFormat, "{}: {} must be {}, found {}", name, Quote(key), expected,
          Quote(found.dump(-1, ' ', false, json::error_handler_t::replace)));
  }
};

Document Read(const std::filesystem::path& folder, const char* name) {
  Document document{(folder / name).string()};
  if (!IsListed(folder / name)) return document;
  document.root = ParseJson(ReadTextFile(folder / name, kMaxConfigBytes), document.name);
  if (!document.root.is_object()) {
    Throw(ErrorKind::kFormat, "{}: expected a JSON object", document.name);
  }
  return document;
}

// A token is a string or a serialised AddedToken.
std::optional<std::string> TokenText(const Document& document, const char* key) {
  const json& value = document.At(key);
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  document.Bad(key, "a string or an object with a string \"content\"", value);
}

std::optional<bool> Flag(const Document& document, const char* key) {
  const json& value = document.At(key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_boolean()) document.Bad(key, "true or false", value);
  return value.get<bool>();
}

// One id or a list; -1 is how some models say "none".
std::vector<int32_t> Ids(const Document& document, const char* key, int64_t vocab_size) {
  const json& value = document.At(key);
  std::vector<int32_t> ids;
  if (value.is_null()) return ids;
  const json list = value.is_array() ? value : json::array({value});
  for (const json& id : list) {
    // By its value as a double: an integer of JSON may be larger than any of ours.
    if (!id.is_number_integer() || id.get<double>() < -1 ||
        id.get<double>() >= static_cast<double>(vocab_size)) {
      document.Bad(
          key, fmt::format("a token id from 0 to {} (-1: none) or a list of them", vocab_size - 1),
          value);
    }
    if (id.get<int64_t>() >= 0) ids.push_back(id.get<int32_t>());
  }
  return ids;
}

std::optional<std::string> NamedTemplate(const Document& document) {
  const json& value = document.At("chat_template");
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  constexpr std::string_view kExpected =
      "a template or a list of {\"name\", \"template\"} with one named \"default\"";
  if (!value.is_array()) document.Bad("chat_template", kExpected, value);
  for (const json& entry : value) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template") ||
        !entry["template"].is_string()) {
      document.Bad("chat_template", kExpected, value);
    }
    if (entry["name"] == "default") return entry["template"].get<std::string>();
  }
  document.Bad("chat_template", kExpected, value);
}

void ReadChatTemplate(const std::filesystem::path& folder, const Document& main,
                      TokenizerConfig& config) {
  const std::filesystem::path file = folder / "chat_template.jinja";
  if (IsListed(file)) {
    config.chat_template = ReadTextFile(file, kMaxTemplateBytes);
    config.chat_template_file = file.string();
    return;
  }
  config.chat_template = NamedTemplate(main);
  config.chat_template_file = main.name;
}

}  // namespace

TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder, int64_t vocab_size) {
  TokenizerConfig config;
  const Document main = Read(folder, "tokenizer_config.json");
  const Document map = Read(folder, "special_tokens_map.json");
  if (const json& name = main.At("tokenizer_class"); name.is_string()) {
    config.tokenizer_class = name.get<std::string>();
  }
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    std::optional<std::string> token = TokenText(main, key);
    // A null in tokenizer_config.json is a statement: this model has no such token.
    if (!token && !main.root.contains(key)) token = TokenText(map, key);
    if (token) config.named_tokens[key] = *token;
  }
  config.add_bos_token = Flag(main, "add_bos_token");
  config.add_eos_token = Flag(main, "add_eos_token");
  ReadChatTemplate(folder, main, config);

  for (const char* name : {"generation_config.json", "config.json"}) {
    const Document document = Read(folder, name);
    // Both are checked, whichever counts.
    const std::vector<int32_t> bos = Ids(document, "bos_token_id", vocab_size);
    const std::vector<int32_t> eos = Ids(document, "eos_token_id", vocab_size);
    if (!config.bos_id && !bos.empty()) config.bos_id = bos.front();
    if (config.eos_ids.empty()) config.eos_ids = eos;
  }
  return config;
}

}  // namespace godwit
