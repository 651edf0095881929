#include "text/added_tokens.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>

#include "text/config_document.h"

namespace godwit {
namespace {

using nlohmann::json;

constexpr const char* kAddedTokens = "added_tokens_decoder";
constexpr const char* kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};
constexpr const char* kLists[] = {"additional_special_tokens", "extra_special_tokens"};

// A token from JSON: its text alone, or an object with flags.
AddedToken ReadToken(const ConfigDocument& document, const char* key, const json& value) {
  AddedToken token;
  if (value.is_string()) {
    token.text = value.get<std::string>();
    return token;
  }
  const auto bad = [&] {
    document.Bad(key, "made of tokens: strings, or objects with a string \"content\" and flags",
                 value);
  };
  if (!value.is_object() || !value.contains("content") || !value["content"].is_string()) bad();
  token.text = value["content"].get<std::string>();
  const auto flag = [&](const char* name, bool& to) {
    const auto found = value.find(name);
    if (found == value.end()) return;
    if (!found->is_boolean()) bad();
    to = found->get<bool>();
  };
  flag("special", token.special);
  flag("single_word", token.single_word);
  flag("lstrip", token.lstrip);
  flag("rstrip", token.rstrip);
  flag("normalized", token.normalized);
  return token;
}

// The added tokens of all files, by id and by text.
class Additions {
 public:
  explicit Additions(const Vocabulary& vocabulary) {
    for (const VocabularyToken& token : vocabulary.tokens) {
      ids_.emplace(token.text, static_cast<int32_t>(ids_.size()));
    }
    next_ = static_cast<int32_t>(vocabulary.tokens.size());
  }

  void Add(int32_t id, AddedToken token) {
    token.id = id;
    ids_[token.text] = id;
    next_ = std::max(next_, id == INT32_MAX ? id : id + 1);
    by_id_[id] = std::move(token);
  }

  bool Has(std::string_view text) const { return ids_.contains(std::string(text)); }

  // Adds a token of added_tokens.json. It is searched for in normalized text, unless it has a role.
  void AddOld(int32_t id, const std::string& text) {
    Add(id, {.text = text, .normalized = true});
    old_.insert(id);
  }

  // The id of a token with a role.
  int32_t AddSpecial(AddedToken token) {
    const auto known = ids_.find(token.text);
    const int32_t id = known != ids_.end() ? known->second : next_;
    if (!by_id_.contains(id)) Add(id, std::move(token));
    by_id_[id].special = true;
    if (old_.contains(id)) by_id_[id].normalized = false;
    return id;
  }

  std::vector<AddedToken> Take() {
    std::vector<AddedToken> all;
    for (auto& [id, token] : by_id_) all.push_back(std::move(token));
    return all;
  }

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::map<int32_t, AddedToken> by_id_;
  std::set<int32_t> old_;
  int32_t next_ = 0;
};

void AddDecoder(const ConfigDocument& document, Additions& additions) {
  const json& all = document.At(kAddedTokens);
  if (!all.is_object()) document.Bad(kAddedTokens, "an object of ids and tokens", all);
  for (const auto& [key, value] : all.items()) {
    int32_t id = 0;
    const char* end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, id);
    if (parsed.ptr != end || parsed.ec != std::errc() || id < 0) {
      document.Bad(kAddedTokens, "an object of ids and tokens", key);
    }
    additions.Add(id, ReadToken(document, kAddedTokens, value));
  }
}

// Adds an old file's tokens, which are text and id.
void AddFile(const ConfigDocument& document, Additions& additions) {
  for (const auto& [text, id] : document.root.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) {
      document.Bad(text, "a token id", id);
    }
    additions.AddOld(id.get<int32_t>(), text);
  }
}

}  // namespace

void AddTokens(const std::filesystem::path& folder, const RoleDefaults& defaults,
               Vocabulary& vocabulary) {
  const ConfigDocument main = ReadConfigDocument(folder, "tokenizer_config.json");
  const ConfigDocument map = ReadConfigDocument(folder, "special_tokens_map.json");
  Additions additions(vocabulary);
  if (main.At(kAddedTokens).is_null()) {
    AddFile(ReadConfigDocument(folder, "added_tokens.json"), additions);
  } else {
    AddDecoder(main, additions);
  }
  std::map<std::string_view, int32_t> roles;
  for (const char* role : kRoles) {
    const ConfigDocument& document = main.root.contains(role) ? main : map;
    if (const json& value = document.At(role); !value.is_null()) {
      roles[role] = additions.AddSpecial(ReadToken(document, role, value));
      continue;
    }
    for (const auto& [key, text] : defaults) {
      if (role != std::string_view(key) || document.root.contains(role)) continue;
      if (additions.Has(text)) roles[role] = additions.AddSpecial({.text = std::string(text)});
    }
  }
  for (const char* list : kLists) {
    const ConfigDocument& document = main.root.contains(list) ? main : map;
    for (const json& value : document.At(list)) {
      additions.AddSpecial(ReadToken(document, list, value));
    }
  }
  vocabulary.added = additions.Take();
  const auto set = [&](const char* role, std::optional<int32_t>& id) {
    if (const auto found = roles.find(role); found != roles.end()) {
      id = found->second;
    } else if (main.root.contains(role)) {
      id = std::nullopt;
    }
  };
  set("bos_token", vocabulary.bos_id);
  set("eos_token", vocabulary.eos_id);
}

}  // namespace godwit
