#include "eval/jsonl_row.h"

#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_found.h"
#include "base/quote.h"
#include "base/split_text.h"

namespace godwit::eval {
namespace {

constexpr size_t kMaxTexts = 100;

}  // namespace

JsonlRow::JsonlRow(std::string_view line, std::string where)
    : json_(ParseJson(line, where, {.reject_duplicate_keys = true})), where_(std::move(where)) {
  if (!json_.is_object()) {
    Throw(ErrorKind::kFormat, "{}: expected a JSON object, found {}", where_, Found(json_));
  }
}

const nlohmann::json& JsonlRow::Field(const char* key) const {
  const auto field = json_.find(key);
  if (field == json_.end()) {
    std::string keys;
    for (const auto& [name, value] : json_.items()) keys += (keys.empty() ? "" : ", ") + name;
    Throw(ErrorKind::kFormat, "{}: expected a field \"{}\", found only: {}", where_, key,
          keys.empty() ? "none" : Quote(keys));
  }
  return *field;
}

void JsonlRow::Refuse(const char* key, std::string_view expected, std::string_view found) const {
  Throw(ErrorKind::kFormat, "{}: \"{}\": expected {}, found {}", where_, key, expected, found);
}

std::string JsonlRow::AnyText(const char* key) const {
  const nlohmann::json& value = Field(key);
  if (!value.is_string()) Refuse(key, "text", Found(value));
  return value.get<std::string>();
}

std::string JsonlRow::AsText(const nlohmann::json& value, const char* key) const {
  if (!value.is_string()) Refuse(key, "text", Found(value));
  auto text = value.get<std::string>();
  if (Stripped(text).empty()) Refuse(key, "text", "nothing but blanks");
  return text;
}

std::string JsonlRow::Text(const char* key) const { return AsText(Field(key), key); }

std::vector<std::string> JsonlRow::Texts(const char* key) const {
  const nlohmann::json& list = Field(key);
  if (!list.is_array() || list.size() < 2 || list.size() > kMaxTexts) {
    Refuse(key, fmt::format("a list of 2 to {} texts", kMaxTexts), Found(list));
  }
  std::vector<std::string> texts;
  for (const nlohmann::json& value : list) texts.push_back(AsText(value, key));
  return texts;
}

size_t JsonlRow::Index(const char* key, size_t count) const {
  const nlohmann::json& value = Field(key);
  // A number that is negative or has a point is of another JSON type.
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= count) {
    Refuse(key, fmt::format("an integer from 0 to {}", count - 1), Found(value));
  }
  return value.get<size_t>();
}

}  // namespace godwit::eval
