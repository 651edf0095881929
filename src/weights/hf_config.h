// HfConfig: config.json of a Hugging Face model. Its typed access checks every value against the
// range that the caller states, so that no size from the file reaches arithmetic unchecked.
//
// Immutable and cheap to copy, but for a note of the keys whose values were asked for. All copies
// and nested objects share that note: one thread at a time. A key whose value is null counts as
// absent. Every accessor throws Error(kFormat) naming file, key, what was expected and what was
// found. Those with a default return it only for an absent key, never for a bad value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "godwit/error.h"

namespace godwit {

struct IntRange {
  int64_t min;
  int64_t max;
};

struct FloatRange {
  double min;
  double max;
};

// "a whole number from 1 to 8", for messages.
std::string Describe(IntRange range);
std::string Describe(FloatRange range);

class HfConfig {
 public:
  static HfConfig Parse(std::string_view text, const std::string& file_name);
  static HfConfig Load(const std::filesystem::path& file);

  std::string model_type() const { return String("model_type"); }

  bool Has(std::string_view key) const;
  // Whether `key` is there with the value null: for a field whose default is not what null means.
  bool IsNull(std::string_view key) const;
  bool IsObject(std::string_view key) const;
  bool IsList(std::string_view key) const;

  int64_t Int(std::string_view key, IntRange range) const;
  int64_t IntOr(std::string_view key, int64_t fallback, IntRange range) const;
  double Float(std::string_view key, FloatRange range) const;
  double FloatOr(std::string_view key, double fallback, FloatRange range) const;
  bool BoolOr(std::string_view key, bool fallback) const;
  std::string String(std::string_view key) const;
  std::string StringOr(std::string_view key, std::string_view fallback) const;

  // One number or a list of them, as eos_token_id may be; empty if absent.
  std::vector<int64_t> Ints(std::string_view key, IntRange range) const;
  // A list of numbers; empty if absent.
  std::vector<double> Floats(std::string_view key, FloatRange range) const;
  std::vector<std::string> Strings(std::string_view key) const;

  // A nested object, such as rope_scaling; its messages name the whole path.
  std::optional<HfConfig> Object(std::string_view key) const;

  // The same config, of which nothing was read.
  HfConfig Unread() const;

  // The keys of this object, in alphabetical order.
  std::vector<std::string> Keys() const;

  // Whether an accessor was asked for the value of `key`; Has and IsNull do not count.
  bool WasRead(std::string_view key) const;
  // Counts `key` as read: its value does not matter beside the other values read.
  void MarkAsRead(std::string_view key) const;
  // Whether the value of `key` is among `values` (a JSON list), or a list of such values; an absent
  // one is.
  bool IsAmong(std::string_view key, std::string_view values) const;
  // "config.json: rope_theta: 10000", for a message.
  std::string Spell(std::string_view key) const;

  // Throws the error that a bad value of `key` gets, for rules that span several keys.
  [[noreturn]] void Refuse(std::string_view key, std::string_view expected,
                           ErrorKind kind = ErrorKind::kFormat) const;

 private:
  using KeySet = std::set<std::string, std::less<>>;

  HfConfig(std::shared_ptr<const nlohmann::json> object, std::string where,
           std::shared_ptr<KeySet> read);

  const nlohmann::json* Find(std::string_view key) const;
  const nlohmann::json* Read(std::string_view key) const;  // Find, which is noted
  const nlohmann::json& Need(std::string_view key, std::string_view expected) const;

  std::shared_ptr<const nlohmann::json> object_;
  std::string where_;             // "file: " or "file: rope_scaling."
  std::shared_ptr<KeySet> read_;  // where_ + key
};

// Fields that must be what they are here. All throw Error(kUnsupported) that names the key,
// NeedObject Error(kFormat).
void ExpectOneOf(const HfConfig& config, std::string_view key, std::string_view found,
                 std::initializer_list<std::string_view> accepted);
void ExpectString(const HfConfig& config, std::string_view key, std::string_view expected,
                  std::string_view fallback);
void ExpectBool(const HfConfig& config, std::string_view key, bool expected, bool fallback);
HfConfig NeedObject(const HfConfig& config, std::string_view key);

}  // namespace godwit
