#include "weights/gguf_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"

namespace godwit {
namespace {

// Element i of a value with elements of type T.
template <typename T>
T At(const GgufValue& value, uint64_t i) {
  T element;
  std::memcpy(&element, value.bytes.data() + i * sizeof(T), sizeof(T));
  return element;
}

std::optional<int64_t> IntAt(const GgufValue& value, uint64_t i) {
  switch (value.type) {
    case GgufType::kU8:
      return At<uint8_t>(value, i);
    case GgufType::kI8:
      return At<int8_t>(value, i);
    case GgufType::kU16:
      return At<uint16_t>(value, i);
    case GgufType::kI16:
      return At<int16_t>(value, i);
    case GgufType::kU32:
      return At<uint32_t>(value, i);
    case GgufType::kI32:
      return At<int32_t>(value, i);
    case GgufType::kI64:
      return At<int64_t>(value, i);
    case GgufType::kU64: {
      const auto wide = At<uint64_t>(value, i);
      return wide <= uint64_t{INT64_MAX} ? std::optional(static_cast<int64_t>(wide)) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> FloatAt(const GgufValue& value, uint64_t i) {
  if (value.type == GgufType::kF32) return At<float>(value, i);
  if (value.type == GgufType::kF64) return At<double>(value, i);
  const auto integer = IntAt(value, i);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

std::string FoundValue(const GgufValue& value) {
  if (value.list) return fmt::format("a list of {} of type {}", value.count, Name(value.type));
  if (const auto number = IntAt(value, 0)) return fmt::format("{}", *number);
  if (const auto number = FloatAt(value, 0)) return fmt::format("{}", *number);
  return fmt::format("{}", Name(value.type));
}

bool IsIn(std::optional<int64_t> number, IntRange range) {
  return number && *number >= range.min && *number <= range.max;
}

}  // namespace

void GgufMetadata::Refuse(std::string_view key, std::string_view expected, std::string_view found,
                          ErrorKind kind) const {
  Throw(kind, "{}: {}: expected {}, found {}", file_name_, key, expected, found);
}

const GgufValue& GgufMetadata::Need(std::string_view key, std::string_view expected) const {
  const auto found = values_.find(key);
  if (found == values_.end()) Refuse(key, expected, "none");
  return found->second;
}

std::string GgufMetadata::ArchitectureKey(std::string_view key) const {
  return fmt::format("{}.{}", String("general.architecture"), key);
}

int64_t GgufMetadata::Int(std::string_view key, IntRange range) const {
  const GgufValue& value = Need(key, Describe(range));
  const auto first = value.count > 0 ? IntAt(value, 0) : std::nullopt;
  if (!IsIn(first, range)) Refuse(key, Describe(range), FoundValue(value));
  for (uint64_t i = 1; i < value.count; ++i) {
    if (IntAt(value, i) == first) continue;
    Refuse(key, "the same number for every layer", FoundValue(value), ErrorKind::kUnsupported);
  }
  return *first;
}

int64_t GgufMetadata::IntOr(std::string_view key, int64_t fallback, IntRange range) const {
  return Has(key) ? Int(key, range) : fallback;
}

double GgufMetadata::Float(std::string_view key, FloatRange range) const {
  const GgufValue& value = Need(key, Describe(range));
  const auto number = value.list ? std::nullopt : FloatAt(value, 0);
  // Comparisons in this order refuse NaN as well.
  if (!number || !(*number >= range.min && *number <= range.max)) {
    Refuse(key, Describe(range), FoundValue(value));
  }
  return *number;
}

double GgufMetadata::FloatOr(std::string_view key, double fallback, FloatRange range) const {
  return Has(key) ? Float(key, range) : fallback;
}

bool GgufMetadata::BoolOr(std::string_view key, bool fallback) const {
  if (!Has(key)) return fallback;
  const GgufValue& value = Need(key, "");
  const bool is_bool = value.type == GgufType::kBool && !value.list;
  const auto byte = is_bool ? At<uint8_t>(value, 0) : uint8_t{2};
  if (byte > 1) Refuse(key, "true or false", FoundValue(value));
  return byte == 1;
}

std::string GgufMetadata::String(std::string_view key) const {
  const GgufValue& value = Need(key, "text");
  if (value.type != GgufType::kString || value.list) Refuse(key, "text", FoundValue(value));
  const auto text = value.bytes.subspan(sizeof(uint64_t));
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

std::string GgufMetadata::StringOr(std::string_view key, std::string_view fallback) const {
  return Has(key) ? String(key) : std::string(fallback);
}

std::vector<int64_t> GgufMetadata::Ints(std::string_view key, IntRange range) const {
  if (!Has(key)) return {};
  const GgufValue& value = Need(key, "");
  std::vector<int64_t> numbers;
  for (uint64_t i = 0; i < value.count; ++i) {
    const auto number = value.list ? IntAt(value, i) : std::nullopt;
    if (!IsIn(number, range)) {
      Refuse(key, fmt::format("a list of numbers from {} to {}", range.min, range.max),
             FoundValue(value));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<float> GgufMetadata::Floats(std::string_view key) const {
  if (!Has(key)) return {};
  const GgufValue& value = Need(key, "");
  if (!value.list || value.type != GgufType::kF32) Refuse(key, "a list of f32", FoundValue(value));
  std::vector<float> numbers(value.count);
  if (!numbers.empty()) std::memcpy(numbers.data(), value.bytes.data(), value.bytes.size());
  return numbers;
}

std::vector<bool> GgufMetadata::Bools(std::string_view key) const {
  if (!Has(key)) return {};
  const GgufValue& value = Need(key, "");
  if (!value.list || value.type != GgufType::kBool)
    Refuse(key, "a list of bool", FoundValue(value));
  std::vector<bool> list;
  for (uint64_t i = 0; i < value.count; ++i) {
    const auto byte = At<uint8_t>(value, i);
    if (byte > 1) Refuse(key, "a list of true and false", FoundValue(value));
    list.push_back(byte == 1);
  }
  return list;
}

bool GgufMetadata::IsList(std::string_view key) const { return Has(key) && Need(key, "").list; }

std::vector<std::string_view> GgufMetadata::Strings(std::string_view key) const {
  if (!Has(key)) return {};
  const GgufValue& value = Need(key, "");
  if (!value.list || value.type != GgufType::kString)
    Refuse(key, "a list of text", FoundValue(value));
  std::vector<std::string_view> texts;
  const char* at = reinterpret_cast<const char*>(value.bytes.data());
  for (uint64_t i = 0; i < value.count; ++i) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, at, sizeof(bytes));
    texts.emplace_back(at + sizeof(bytes), static_cast<size_t>(bytes));
    at += sizeof(bytes) + bytes;
  }
  return texts;
}

}  // namespace godwit
