#include "text/tokenizer_config.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "text/config_document.h"

namespace godwit {
namespace {

using nlohmann::json;

constexpr size_t kMaxTemplateBytes = size_t{4} << 20;

// One id or a list; some models say -1 for "none". Warns of ids outside the vocabulary.
std::vector<int32_t> Ids(const ConfigDocument& document, const char* key, int64_t vocab_size,
                         std::vector<std::string>& warnings) {
  constexpr int64_t kMaxIds = int64_t{1} << 31;
  const json& value = document.At(key);
  std::vector<int32_t> ids;
  if (value.is_null()) return ids;
  const json list = value.is_array() ? value : json::array({value});
  for (const json& id : list) {
    // The value is compared as a double, because a JSON integer may exceed all of our types.
    if (!id.is_number_integer() || id.get<double>() < -1 ||
        id.get<double>() >= static_cast<double>(kMaxIds)) {
      document.Bad(
          key, fmt::format("a token id from 0 to {} (-1: none) or a list of them", vocab_size - 1),
          value);
    }
    if (id.get<int64_t>() >= vocab_size) {
      warnings.push_back(fmt::format("{}: {} {} is ignored: it is outside the vocabulary of {}",
                                     document.name, key, id.get<int64_t>(), vocab_size));
    } else if (id.get<int64_t>() >= 0) {
      ids.push_back(id.get<int32_t>());
    }
  }
  return ids;
}

using Templates = std::map<std::string, ChatTemplateSource>;

ChatTemplateSource ReadTemplateFile(const std::filesystem::path& file) {
  return {.text = ReadTextFile(file, kMaxTemplateBytes), .what = file.string() + ": chat template"};
}

Templates TemplatesIn(const ConfigDocument& document) {
  const json& value = document.At("chat_template");
  const std::string what = document.name + ": chat template";
  if (value.is_null()) return {};
  if (value.is_string()) return {{"default", {value.get<std::string>(), what}}};
  Templates found;
  const auto bad = [&] {
    document.Bad("chat_template", "a template or a list of {\"name\", \"template\"}", value);
  };
  if (!value.is_array()) bad();
  for (const json& entry : value) {
    const auto is_text = [&](const char* key) {
      return entry.is_object() && entry.contains(key) && entry[key].is_string();
    };
    if (!is_text("name") || !is_text("template")) bad();
    const auto name = entry["name"].get<std::string>();
    found[name] = {entry["template"].get<std::string>(), what + " " + Quote(name)};
  }
  return found;
}

std::map<std::string, std::filesystem::path> TemplateFiles(const std::filesystem::path& folder) {
  std::map<std::string, std::filesystem::path> files;
  if (const auto file = folder / "chat_template.jinja"; IsListed(file)) files["default"] = file;
  std::error_code absent;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder / "additional_chat_templates", absent)) {
    if (entry.path().extension() == ".jinja") files[entry.path().stem().string()] = entry.path();
  }
  return files;
}

}  // namespace

TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder, int64_t vocab_size) {
  TokenizerConfig config;
  const ConfigDocument main = ReadConfigDocument(folder, "tokenizer_config.json");
  const ConfigDocument map = ReadConfigDocument(folder, "special_tokens_map.json");
  if (const json& name = main.At("tokenizer_class"); name.is_string()) {
    config.tokenizer_class = name.get<std::string>();
  }
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    std::optional<std::string> token = main.TokenText(key);
    // A null in tokenizer_config.json is a statement: this model has no such token.
    if (!token && !main.root.contains(key)) token = map.TokenText(key);
    if (token) config.named_tokens[key] = *token;
  }
  config.add_bos_token = main.Flag("add_bos_token");
  config.add_eos_token = main.Flag("add_eos_token");

  for (const char* name : {"generation_config.json", "config.json"}) {
    const ConfigDocument document = ReadConfigDocument(folder, name);
    // Both ids are checked, whichever is used.
    const std::vector<int32_t> bos = Ids(document, "bos_token_id", vocab_size, config.warnings);
    const std::vector<int32_t> eos = Ids(document, "eos_token_id", vocab_size, config.warnings);
    if (!config.bos_id && !bos.empty()) config.bos_id = bos.front();
    if (config.eos_ids.empty()) config.eos_ids = eos;
  }
  return config;
}

std::optional<ChatTemplateSource> ReadChatTemplate(const std::filesystem::path& folder,
                                                   const std::string& choice) {
  const std::string name = choice.empty() ? "default" : choice;
  const auto files = TemplateFiles(folder);
  if (const auto file = files.find(name); file != files.end())
    return ReadTemplateFile(file->second);
  const Templates listed = files.empty()
                               ? TemplatesIn(ReadConfigDocument(folder, "tokenizer_config.json"))
                               : Templates{};
  if (const auto entry = listed.find(name); entry != listed.end()) return entry->second;
  if (!choice.empty() && IsListed(choice)) return ReadTemplateFile(choice);
  if (choice.empty() && files.empty() && listed.empty()) return std::nullopt;

  const auto quoted = [](const auto& named) { return Quote(named.first); };
  const std::string names = files.empty() ? NameList(listed, quoted) : NameList(files, quoted);
  Throw(ErrorKind::kInput, "{} has no chat template called {}{}; those it has: {}", folder.string(),
        Quote(name), choice.empty() ? "" : ", and there is no such file",
        names.empty() ? "none" : names);
}

}  // namespace godwit
