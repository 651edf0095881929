#include "weights/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/quote.h"
#include "weights/gguf_types.h"

namespace godwit {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr size_t kMaxNameBytes = 1024;  // of a key or a tensor; 65535 and 64 in the format
// Several times the counts of the largest known models.
constexpr uint64_t kMaxKeys = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 19;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
// The least bytes of a key: the length of its name, a type and a value of one byte. The least bytes
// of a tensor: the length of its name, a number of dimensions, a type and an offset.
constexpr uint64_t kMinKeyBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

struct TypeFacts {
  std::string_view name;
  size_t bytes;  // 0: variable
};
constexpr std::array<TypeFacts, 13> kValueTypes = {{{"u8", 1},
                                                    {"i8", 1},
                                                    {"u16", 2},
                                                    {"i16", 2},
                                                    {"u32", 4},
                                                    {"i32", 4},
                                                    {"f32", 4},
                                                    {"bool", 1},
                                                    {"text", 0},
                                                    {"list", 0},
                                                    {"u64", 8},
                                                    {"i64", 8},
                                                    {"f64", 8}}};

// A tensor's entry; its place is known once all entries are read.
struct Entry {
  TensorInfo info;
  uint64_t begin = 0;  // in the data
  uint64_t bytes = 0;
};

// Reads the file from its front. A value that is cut short or out of range ends the reading, with
// the place and the value that was expected there.
class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& file_name)
      : file_(file), file_name_(file_name) {}

  GgufContents Read() {
    const uint64_t tensors = ReadHeader();
    GgufContents contents{.values = ReadValues(), .tensors = {}};
    const uint64_t alignment = Alignment(contents.values);
    std::vector<Entry> entries = ReadEntries(tensors);
    Place(std::move(entries), alignment, contents);
    return contents;
  }

 private:
  template <typename... Args>
  [[noreturn]] void Refuse(fmt::format_string<Args...> format, Args&&... args) const {
    Throw(ErrorKind::kFormat, "{}: {}", file_name_,
          fmt::format(format, std::forward<Args>(args)...));
  }

  uint64_t left() const { return file_.size() - at_; }

  std::span<const std::byte> Take(uint64_t bytes, std::string_view what) {
    if (bytes > left()) {
      Refuse(
          "{}: expected {} bytes from byte {} on, found {}: the file is cut short, or a length is "
          "wrong",
          what, bytes, at_, left());
    }
    const auto taken = file_.subspan(at_, bytes);
    at_ += static_cast<size_t>(bytes);
    return taken;
  }

  template <typename T>
  T Number(std::string_view what) {
    T value;
    std::memcpy(&value, Take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string ReadName(std::string_view what) {
    const auto bytes = Number<uint64_t>(what);
    if (bytes == 0 || bytes > kMaxNameBytes) {
      Refuse("{}: expected a name of 1 to {} bytes at byte {}, found a length of {}", what,
             kMaxNameBytes, at_ - sizeof(uint64_t), bytes);
    }
    const auto name = Take(bytes, what);
    return {reinterpret_cast<const char*>(name.data()), name.size()};
  }

  void CheckCount(std::string_view what, uint64_t count, uint64_t most, uint64_t min_bytes) {
    if (count > most || count > left() / min_bytes) {
      Refuse("expected at most {} {} by the format and the {} bytes of the file, found {}",
             std::min(most, left() / min_bytes), what, left(), count);
    }
  }

  // Returns the number of tensors.
  uint64_t ReadHeader() {
    CheckGgufMagic(file_, file_name_);
    Take(kMagic.size(), "header");
    const auto version = Number<uint32_t>("version");
    if (version != 2 && version != 3) {
      Refuse("expected version 2 or 3 of GGUF, found {}{}", version,
             version != 0 && version % 65536 == 0 ? ": a big-endian file" : "");
    }
    const auto tensors = Number<uint64_t>("number of tensors");
    keys_ = Number<uint64_t>("number of keys");
    CheckCount("tensors", tensors, kMaxTensors, kMinTensorBytes);
    CheckCount("keys", keys_, kMaxKeys, kMinKeyBytes);
    return tensors;
  }

  GgufType ReadType(const std::string& what) {
    const auto number = Number<uint32_t>(what);
    if (number >= kValueTypes.size()) {
      Refuse("{}: expected a type from 0 to {}, found {}", what, kValueTypes.size() - 1, number);
    }
    return static_cast<GgufType>(number);
  }

  GgufValues ReadValues() {
    GgufValues values;
    for (uint64_t i = 0; i < keys_; ++i) {
      std::string key = ReadName(fmt::format("key {}", i));
      const std::string what = "key " + Quote(key);
      const GgufValue value = ReadValue(what);
      if (!values.emplace(std::move(key), value).second) {
        Refuse("{}: expected once, found twice", what);
      }
    }
    return values;
  }

  GgufValue ReadValue(const std::string& what) {
    GgufValue value{.type = ReadType(what)};
    if (value.type == GgufType::kArray) {
      value.list = true;
      value.type = ReadType(what);
      if (value.type == GgufType::kArray) {
        Refuse("{}: expected a list of numbers or text, found a list of lists", what);
      }
      value.count = Number<uint64_t>(what);
    }
    const size_t size = kValueTypes[static_cast<size_t>(value.type)].bytes;
    const size_t least = size == 0 ? sizeof(uint64_t) : size;
    if (value.count > left() / least) {
      Refuse("{}: expected at most {} elements, for which the file has bytes, found {}", what,
             left() / least, value.count);
    }
    const size_t begin = at_;
    if (size != 0) {
      Take(value.count * size, what);
    } else {
      for (uint64_t i = 0; i < value.count; ++i) Take(Number<uint64_t>(what), what);
    }
    value.bytes = file_.subspan(begin, at_ - begin);
    return value;
  }

  uint64_t Alignment(const GgufValues& values) const {
    const auto found = values.find("general.alignment");
    if (found == values.end()) return kDefaultAlignment;
    uint32_t alignment = 0;
    if (found->second.type == GgufType::kU32 && !found->second.list) {
      std::memcpy(&alignment, found->second.bytes.data(), sizeof(alignment));
    }
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
      Refuse("general.alignment: expected a power of two up to {}, as u32, found {}", kMaxAlignment,
             alignment);
    }
    return alignment;
  }

  std::vector<Entry> ReadEntries(uint64_t count) {
    CheckCount("tensors", count, kMaxTensors, kMinTensorBytes);
    std::vector<Entry> entries;
    std::set<std::string, std::less<>> names;
    for (uint64_t i = 0; i < count; ++i) {
      entries.push_back(ReadEntry(ReadName(fmt::format("tensor {}", i))));
      if (!names.insert(entries.back().info.name).second) {
        Refuse("tensor {}: expected once, found twice", Quote(entries.back().info.name));
      }
    }
    return entries;
  }

  Entry ReadEntry(std::string name) {
    const std::string what = "tensor " + Quote(name);
    Entry entry;
    entry.info.name = std::move(name);
    const auto dims = Number<uint32_t>(what);
    if (dims > kMaxDims) {
      Refuse("{}: expected at most {} dimensions, found {}", what, kMaxDims, dims);
    }
    for (uint32_t i = 0; i < dims; ++i) {
      const auto dim = Number<uint64_t>(what);
      if (dim == 0 || dim > uint64_t{INT64_MAX}) {
        Refuse("{}: expected dimensions from 1 to 2^63-1, found {}", what, dim);
      }
      // The innermost dimension comes first.
      entry.info.shape.insert(entry.info.shape.begin(), static_cast<int64_t>(dim));
    }
    const auto number = Number<uint32_t>(what);
    const GgufTensorType* type = FindGgufTensorType(number);
    if (type == nullptr) {
      Refuse("{}: expected a type of the format, such as 0 (F32) or 12 (Q4_K), found {}", what,
             number);
    }
    entry.info.dtype = type->dtype;
    entry.info.dtype_name = type->name;
    entry.info.blocks = FindBlockFormat(type->name);
    entry.begin = Number<uint64_t>(what);
    entry.bytes = BytesOf(entry.info, *type, what);
    return entry;
  }

  uint64_t BytesOf(const TensorInfo& info, const GgufTensorType& type, const std::string& what) {
    const int64_t row = info.shape.empty() ? 1 : info.shape.back();
    if (row % type.elements != 0) {
      Refuse("{}: expected rows of whole blocks of {} elements, found {}", what, type.elements,
             info.Describe());
    }
    std::optional<int64_t> count = 1;
    for (const int64_t dim : info.shape) count = count ? CheckedMul(*count, dim) : count;
    const auto bytes = count ? CheckedMul(*count / type.elements, type.bytes) : std::nullopt;
    if (!bytes) Refuse("{}: expected a size below 2^63 bytes, found {}", what, info.Describe());
    return static_cast<uint64_t>(*bytes);
  }

  // Finds the bytes of every tensor behind the entries.
  void Place(std::vector<Entry> entries, uint64_t alignment, GgufContents& contents) {
    if (entries.empty()) return;
    const uint64_t padding = (alignment - at_ % alignment) % alignment;
    Take(padding, "padding in front of the data");
    const std::span<const std::byte> data = file_.subspan(at_);
    std::ranges::stable_sort(entries, {}, &Entry::begin);
    uint64_t covered = 0;
    const Entry* last = nullptr;
    for (Entry& entry : entries) {
      const std::string what = "tensor " + Quote(entry.info.name);
      if (entry.begin % alignment != 0) {
        Refuse("{}: expected an offset that is a multiple of {}, found {}", what, alignment,
               entry.begin);
      }
      if (entry.begin > data.size() || entry.bytes > data.size() - entry.begin) {
        Refuse(
            "{}: expected {} bytes ({}) at offset {} of {} bytes of data: the file is cut short, "
            "or the offset is wrong",
            what, entry.bytes, entry.info.Describe(), entry.begin, data.size());
      }
      if (entry.begin < covered) {
        Refuse("{}: expected to begin at {} or later, where {} ends, found {}: they overlap", what,
               covered, Quote(last->info.name), entry.begin);
      }
      covered = entry.begin + entry.bytes;
      last = &entry;
      entry.info.bytes = data.subspan(entry.begin, entry.bytes);
      entry.info.file = file_name_;
      entry.info.offset_bytes = at_ + entry.begin;
    }
    for (Entry& entry : entries) contents.tensors.push_back(std::move(entry.info));
  }

  const std::span<const std::byte> file_;
  const std::string& file_name_;
  size_t at_ = 0;
  uint64_t keys_ = 0;
};

}  // namespace

std::string_view Name(GgufType type) { return kValueTypes[static_cast<size_t>(type)].name; }

void CheckGgufMagic(std::span<const std::byte> file, const std::string& file_name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with(kMagic)) return;
  if (text.starts_with("version https://git-lfs")) {
    Throw(
        ErrorKind::kFormat,
        "{}: no GGUF magic: found a Git LFS pointer, the weights were not downloaded (git lfs pull "
        "fetches them)",
        file_name);
  }
  Throw(ErrorKind::kFormat, "{}: no GGUF magic: expected a file that begins with {}, found {}",
        file_name, Quote(kMagic), Quote(text.substr(0, kMagic.size())));
}

GgufContents ParseGguf(std::span<const std::byte> file, const std::string& file_name) {
  return Reader(file, file_name).Read();
}

}  // namespace godwit
