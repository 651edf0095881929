#include "weights/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_found.h"
#include "base/quote.h"

namespace godwit {
namespace {

using nlohmann::json;

constexpr size_t kMaxConfigBytes = 16 << 20;

// A key for a message, quoted: a file may choose names freely.
std::string Shown(std::string_view key) {
  const std::string quoted = Quote(key);
  return quoted.substr(1, quoted.size() - 2);
}

std::optional<int64_t> AsInt(const json& value, IntRange range) {
  std::optional<int64_t> number;
  if (value.is_number_unsigned()) {
    const auto wide = value.get<uint64_t>();
    if (wide <= uint64_t{INT64_MAX}) number = static_cast<int64_t>(wide);
  } else if (value.is_number_integer()) {
    number = value.get<int64_t>();
  } else if (value.is_number_float()) {
    // Some scripts write 4096.0 for 4096. From 2^53 on a double no longer counts by one.
    const auto real = value.get<double>();
    if (std::trunc(real) == real && std::abs(real) < 0x1p53) number = static_cast<int64_t>(real);
  }
  if (number && (*number < range.min || *number > range.max)) return std::nullopt;
  return number;
}

// Infinity is an object, as transformers writes it.
std::optional<double> AsFloat(const json& value, FloatRange range) {
  if (value.is_object() && value.size() == 1 && value.value("__float__", json()) == "Infinity" &&
      std::isinf(range.max)) {
    return range.max;
  }
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(number >= range.min && number <= range.max)) return std::nullopt;  // refuses NaN as well
  return number;
}

}  // namespace

std::string Describe(IntRange range) {
  return fmt::format("a whole number from {} to {}", range.min, range.max);
}

std::string Describe(FloatRange range) {
  return fmt::format("a number from {:g} to {:g}", range.min, range.max);
}

HfConfig HfConfig::Parse(std::string_view text, const std::string& file_name) {
  auto value = std::make_shared<const json>(
      ParseJson(text, file_name, {.reject_duplicate_keys = true, .pythons_infinity = true}));
  if (!value->is_object()) {
    Throw(ErrorKind::kFormat, "{}: expected an object, found {}", file_name, Found(*value));
  }
  return HfConfig(std::move(value), file_name + ": ", std::make_shared<KeySet>());
}

HfConfig HfConfig::Load(const std::filesystem::path& file) {
  return Parse(ReadTextFile(file, kMaxConfigBytes), file.string());
}

HfConfig::HfConfig(std::shared_ptr<const json> object, std::string where,
                   std::shared_ptr<KeySet> read)
    : object_(std::move(object)), where_(std::move(where)), read_(std::move(read)) {}

const json* HfConfig::Find(std::string_view key) const {
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

const json* HfConfig::Read(std::string_view key) const {
  MarkAsRead(key);
  return Find(key);
}

void HfConfig::MarkAsRead(std::string_view key) const { read_->insert(where_ + std::string(key)); }

bool HfConfig::WasRead(std::string_view key) const {
  return read_->contains(where_ + std::string(key));
}

bool HfConfig::IsAmong(std::string_view key, std::string_view values) const {
  const json* value = Find(key);
  if (value == nullptr) return true;
  const json accepted = json::parse(values);
  const auto is_accepted = [&](const json& item) {
    return std::ranges::find(accepted, item) != accepted.end();
  };
  return value->is_array() ? std::ranges::all_of(*value, is_accepted) : is_accepted(*value);
}

std::string HfConfig::Spell(std::string_view key) const {
  const json* value = Find(key);
  return fmt::format("{}{}: {}", where_, Shown(key), value ? Found(*value) : "null");
}

void HfConfig::Refuse(std::string_view key, std::string_view expected, ErrorKind kind) const {
  const json* value = Find(key);
  Throw(kind, "{}{}: expected {}, found {}", where_, Shown(key), expected,
        value ? Found(*value) : "none");
}

const json& HfConfig::Need(std::string_view key, std::string_view expected) const {
  const json* value = Read(key);
  if (value == nullptr) Refuse(key, expected);
  return *value;
}

bool HfConfig::Has(std::string_view key) const { return Find(key) != nullptr; }

bool HfConfig::IsNull(std::string_view key) const {
  const auto it = object_->find(key);
  return it != object_->end() && it->is_null();
}

bool HfConfig::IsObject(std::string_view key) const {
  const json* value = Find(key);
  return value != nullptr && value->is_object();
}

bool HfConfig::IsList(std::string_view key) const {
  const json* value = Find(key);
  return value != nullptr && value->is_array();
}

int64_t HfConfig::Int(std::string_view key, IntRange range) const {
  const auto number = AsInt(Need(key, Describe(range)), range);
  if (!number) Refuse(key, Describe(range));
  return *number;
}

int64_t HfConfig::IntOr(std::string_view key, int64_t fallback, IntRange range) const {
  return Has(key) ? Int(key, range) : fallback;
}

double HfConfig::Float(std::string_view key, FloatRange range) const {
  const auto number = AsFloat(Need(key, Describe(range)), range);
  if (!number) Refuse(key, Describe(range));
  return *number;
}

double HfConfig::FloatOr(std::string_view key, double fallback, FloatRange range) const {
  return Has(key) ? Float(key, range) : fallback;
}

bool HfConfig::BoolOr(std::string_view key, bool fallback) const {
  const json* value = Read(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) Refuse(key, "true or false");
  return value->get<bool>();
}

std::string HfConfig::String(std::string_view key) const {
  const json& value = Need(key, "text");
  if (!value.is_string()) Refuse(key, "text");
  return value.get<std::string>();
}

std::string HfConfig::StringOr(std::string_view key, std::string_view fallback) const {
  return Has(key) ? String(key) : std::string(fallback);
}

std::vector<int64_t> HfConfig::Ints(std::string_view key, IntRange range) const {
  const json* value = Read(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {Int(key, range)};
  std::vector<int64_t> numbers;
  for (const json& item : *value) {
    const auto number = AsInt(item, range);
    if (!number) {
      Throw(ErrorKind::kFormat, "{}{}[{}]: expected {}, found {}", where_, key, numbers.size(),
            Describe(range), Found(item));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<double> HfConfig::Floats(std::string_view key, FloatRange range) const {
  const json* value = Read(key);
  if (value == nullptr) return {};
  if (!value->is_array()) Refuse(key, "a list of numbers");
  std::vector<double> numbers;
  for (const json& item : *value) {
    const auto number = AsFloat(item, range);
    if (!number) {
      Throw(ErrorKind::kFormat, "{}{}[{}]: expected {}, found {}", where_, key, numbers.size(),
            Describe(range), Found(item));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::string> HfConfig::Strings(std::string_view key) const {
  const json* value = Read(key);
  if (value == nullptr) return {};
  if (!value->is_array()) Refuse(key, "a list of text");
  std::vector<std::string> texts;
  for (const json& item : *value) {
    if (!item.is_string()) {
      Throw(ErrorKind::kFormat, "{}{}[{}]: expected text, found {}", where_, key, texts.size(),
            Found(item));
    }
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::optional<HfConfig> HfConfig::Object(std::string_view key) const {
  const json* value = Read(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) Refuse(key, "an object");
  // The result shares ownership of the whole document: no copy, and it may outlive this object.
  return HfConfig(std::shared_ptr<const json>(object_, value),
                  fmt::format("{}{}.", where_, Shown(key)), read_);
}

HfConfig HfConfig::Unread() const { return HfConfig(object_, where_, std::make_shared<KeySet>()); }

std::vector<std::string> HfConfig::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_->items()) keys.push_back(key);
  return keys;
}

void ExpectOneOf(const HfConfig& config, std::string_view key, std::string_view found,
                 std::initializer_list<std::string_view> accepted) {
  if (std::ranges::find(accepted, found) != accepted.end()) return;
  config.Refuse(key, fmt::format("{}", fmt::join(accepted, " or ")), ErrorKind::kUnsupported);
}

void ExpectString(const HfConfig& config, std::string_view key, std::string_view expected,
                  std::string_view fallback) {
  ExpectOneOf(config, key, config.StringOr(key, fallback), {expected});
}

void ExpectBool(const HfConfig& config, std::string_view key, bool expected, bool fallback) {
  if (config.BoolOr(key, fallback) == expected) return;
  config.Refuse(key, expected ? "true" : "false", ErrorKind::kUnsupported);
}

HfConfig NeedObject(const HfConfig& config, std::string_view key) {
  auto object = config.Object(key);
  if (!object) config.Refuse(key, "an object");
  return *std::move(object);
}

}  // namespace godwit
