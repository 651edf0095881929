// GgufMetadata: the key/values of a GGUF file with typed access, in which every value is checked
// against the range that the caller states.
//
// Every accessor throws Error(kFormat) naming file, key, what was expected and what was found.
// Those with a default return it only for an absent key, never for a bad value. A view into the
// file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf.h"
#include "weights/hf_config.h"

namespace godwit {

class GgufMetadata {
 public:
  GgufMetadata(GgufValues values, std::string file_name)
      : values_(std::move(values)), file_name_(std::move(file_name)) {}

  const std::string& file_name() const { return file_name_; }
  const GgufValues& values() const { return values_; }
  bool Has(std::string_view key) const { return values_.contains(key); }
  // "llama.block_count" of "block_count": keys of models begin with their architecture.
  std::string ArchitectureKey(std::string_view key) const;

  // Any type of integer, and a list whose elements are all the same: some files write for each
  // layer what is the same for all.
  int64_t Int(std::string_view key, IntRange range) const;
  int64_t IntOr(std::string_view key, int64_t fallback, IntRange range) const;
  // F32, F64 or an integer.
  double Float(std::string_view key, FloatRange range) const;
  double FloatOr(std::string_view key, double fallback, FloatRange range) const;
  bool BoolOr(std::string_view key, bool fallback) const;
  std::string String(std::string_view key) const;
  std::string StringOr(std::string_view key, std::string_view fallback) const;

  // Lists; empty where the key is absent.
  std::vector<int64_t> Ints(std::string_view key, IntRange range) const;
  std::vector<float> Floats(std::string_view key) const;
  std::vector<bool> Bools(std::string_view key) const;
  bool IsList(std::string_view key) const;
  std::vector<std::string_view> Strings(std::string_view key) const;

  // Throws the error that a bad value of `key` gets, for rules that span several keys.
  [[noreturn]] void Refuse(std::string_view key, std::string_view expected, std::string_view found,
                           ErrorKind kind = ErrorKind::kFormat) const;

 private:
  const GgufValue& Need(std::string_view key, std::string_view expected) const;

  GgufValues values_;
  std::string file_name_;
};

}  // namespace godwit
