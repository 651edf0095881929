#include "weights/safetensors_entry.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/json_found.h"
#include "base/quote.h"

namespace godwit {
namespace {

using nlohmann::json;

// A limit of rank, which keeps shapes printable. The format sets none; PyTorch stops at 64 as well.
constexpr size_t kMaxRank = 64;

struct FileDType {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype;
};

// Every type of the format. A type that is not here has no known size, so its file cannot be
// checked.
constexpr FileDType kFileDTypes[] = {
    {"F32", 32, DType::kF32},
    {"F16", 16, DType::kF16},
    {"BF16", 16, DType::kBF16},
    {"I8", 8, DType::kI8},
    {"U8", 8, DType::kU8},
    {"I32", 32, DType::kI32},
    {"I64", 64, DType::kI64},
    {"BOOL", 8, std::nullopt},
    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
    {"I16", 16, std::nullopt},
    {"U16", 16, std::nullopt},
    {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},
    {"F64", 64, std::nullopt},
    {"C64", 64, std::nullopt},
};

const FileDType* FindDType(std::string_view name) {
  for (const FileDType& candidate : kFileDTypes) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

// Reads one value of the header. Each reader adds to `problems` and returns false if it fails.
class EntryReader {
 public:
  EntryReader(const std::string& name, const json& entry, uint64_t data_bytes,
              ProblemList& problems)
      : name_(name), entry_(entry), data_bytes_(data_bytes), problems_(problems) {}

  std::optional<SafetensorsEntry> Read() {
    if (!entry_.is_object()) {
      Problem("entry", "an object", Found(entry_));
      return std::nullopt;
    }
    // The readers are not joined by &&, so that one look shows every fault of the entry.
    const bool dtype = ReadDType();
    const bool shape = ReadShape();
    const bool offsets = ReadOffsets();
    if (!dtype || !shape || !offsets || !SizesAgree()) return std::nullopt;
    result_.info.name = name_;
    return std::move(result_);
  }

 private:
  void Problem(std::string_view part, std::string_view expected, std::string_view found) {
    problems_.Add("tensor {}: {}: expected {}, found {}", Quote(name_), part, expected, found);
  }

  const json* Member(const char* key) {
    const auto it = entry_.find(key);
    if (it != entry_.end()) return &*it;
    Problem(key, "to be there", "none");
    return nullptr;
  }

  bool ReadDType() {
    const json* value = Member("dtype");
    if (value == nullptr) return false;
    const FileDType* found =
        value->is_string() ? FindDType(value->get_ref<const std::string&>()) : nullptr;
    if (found == nullptr) {
      Problem("dtype", "a type of the format, such as F32 or BF16", Found(*value));
      return false;
    }
    bits_ = found->bits;
    result_.info.dtype = found->dtype;
    result_.info.dtype_name = found->name;
    return true;
  }

  bool ReadShape() {
    const json* value = Member("shape");
    if (value == nullptr) return false;
    if (!value->is_array() || value->size() > kMaxRank) {
      Problem("shape", fmt::format("a list of at most {} sizes", kMaxRank), Found(*value));
      return false;
    }
    for (const json& dim : *value) {
      if (!dim.is_number_unsigned() ||
          dim.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
        Problem("shape", "whole numbers from 0 to 2^63-1", Found(dim));
        return false;
      }
      result_.info.shape.push_back(dim.get<int64_t>());
    }
    return true;
  }

  bool ReadOffsets() {
    const json* value = Member("data_offsets");
    if (value == nullptr) return false;
    if (!value->is_array() || value->size() != 2 || !(*value)[0].is_number_unsigned() ||
        !(*value)[1].is_number_unsigned()) {
      Problem("data_offsets", "[begin, end] as whole numbers", Written(*value));
      return false;
    }
    result_.begin = (*value)[0].get<uint64_t>();
    result_.end = (*value)[1].get<uint64_t>();
    if (result_.begin > result_.end || result_.end > data_bytes_) {
      Problem("data_offsets",
              fmt::format("begin <= end <= {}, the bytes of data in the file", data_bytes_),
              Written(*value));
      return false;
    }
    return true;
  }

  // A short list as it stands; any other value in summary.
  static std::string Written(const json& value) {
    if (!value.is_array() || value.size() > 4) return Found(value);
    std::string text = "[";
    for (const json& item : value) text += (text.size() > 1 ? ", " : "") + Found(item);
    return text + "]";
  }

  bool SizesAgree() {
    const std::optional<uint64_t> bits = SizeBits();
    if (!bits) {
      Problem("shape", "a size below 2^63 elements and 2^64 bits", result_.info.Describe());
      return false;
    }
    if (*bits % 8 != 0) {
      Problem("shape", "a whole number of bytes", result_.info.Describe());
      return false;
    }
    if (*bits / 8 != result_.end - result_.begin) {
      Problem("data_offsets", fmt::format("{} bytes for {}", *bits / 8, result_.info.Describe()),
              fmt::format("{} bytes [{}, {}]", result_.end - result_.begin, result_.begin,
                          result_.end));
      return false;
    }
    return true;
  }

  // Zeros come last, so that no partial product of the dims, in any order, can overflow later.
  std::optional<uint64_t> SizeBits() const {
    std::optional<int64_t> count = 1;
    bool empty = false;
    for (const int64_t dim : result_.info.shape) {
      if (dim == 0) empty = true;
      if (dim != 0) count = CheckedMul(*count, dim);
      if (!count) return std::nullopt;
    }
    const std::optional<uint64_t> bits = CheckedMul(static_cast<uint64_t>(*count), bits_);
    if (bits && empty) return 0;
    return bits;
  }

  const std::string& name_;
  const json& entry_;
  const uint64_t data_bytes_;
  ProblemList& problems_;
  SafetensorsEntry result_;
  uint64_t bits_ = 0;
};

}  // namespace

std::optional<SafetensorsEntry> ReadSafetensorsEntry(const std::string& name, const json& entry,
                                                     uint64_t data_bytes, ProblemList& problems) {
  return EntryReader(name, entry, data_bytes, problems).Read();
}

}  // namespace godwit
