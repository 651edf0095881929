#include "model/packed_header.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"

namespace godwit {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMagic = "godwitpk";
constexpr int64_t kLine = 64;
// An expert has two matrices of two parts each. The limit is twice the count of the largest known
// model.
constexpr size_t kMaxValues = 4'000'000;
constexpr uint64_t kMaxJsonBytes = 100'000'000;

struct End {
  uint64_t json_bytes;
  uint64_t checksum;
  char magic[8];
};
static_assert(sizeof(End) == 24);

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ordered_json JsonOf(const PackedHeader& header) {
  const PackedInfo& info = header.info;
  ordered_json sources = ordered_json::array(), parts = ordered_json::array();
  for (const PackedSource& source : info.sources) {
    sources.push_back({{"name", source.name},
                       {"bytes", source.bytes},
                       {"modified_ns", source.modified_ns},
                       {"changed_ns", source.changed_ns},
                       {"checksum", source.checksum}});
  }
  for (const PackedPart& part : header.parts) {
    parts.push_back({part.name, part.offset, part.bytes, part.checksum});
  }
  return {{"godwit", info.godwit},          {"weights", info.weights},
          {"config", info.config_checksum}, {"sources", std::move(sources)},
          {"warnings", info.warnings},      {"parts", std::move(parts)}};
}

// Reads JSON with a right checksum: godwit's own, or an attacker's.
class Reader {
 public:
  Reader(const std::string& file_name, int64_t parts_end)
      : file_name_(file_name), parts_end_(parts_end) {}

  PackedHeader Read(const ordered_json& json) const {
    PackedHeader header;
    header.info = {.godwit = Text(json, "godwit"),
                   .weights = Text(json, "weights"),
                   .config_checksum = Number<uint64_t>(json, "config")};
    for (const ordered_json& source : List(json, "sources")) {
      header.info.sources.push_back({.name = Text(source, "name"),
                                     .bytes = Number<int64_t>(source, "bytes"),
                                     .modified_ns = Number<int64_t>(source, "modified_ns"),
                                     .changed_ns = Number<int64_t>(source, "changed_ns"),
                                     .checksum = Number<uint64_t>(source, "checksum")});
    }
    for (const ordered_json& warning : List(json, "warnings")) {
      if (!warning.is_string()) Refuse("warnings");
      header.info.warnings.push_back(warning.get<std::string>());
    }
    const ordered_json& parts = List(json, "parts");
    header.parts.reserve(parts.size());
    int64_t end = PackedHeader::kAlignment;
    for (const ordered_json& entry : parts) {
      header.parts.push_back(Part(entry, end));
      end = header.parts.back().offset + header.parts.back().bytes;
    }
    if (end != parts_end_) Refuse("parts");
    return header;
  }

 private:
  // behind: the end of the part before this one.
  PackedPart Part(const ordered_json& entry, int64_t behind) const {
    if (!entry.is_array() || entry.size() != 4 || !entry[0].is_string() ||
        !std::all_of(entry.begin() + 1, entry.end(),
                     [](const ordered_json& value) { return value.is_number_unsigned(); })) {
      Refuse("parts");
    }
    const auto bytes = entry[2].get<uint64_t>();
    if (bytes > static_cast<uint64_t>(parts_end_ - behind)) Refuse("parts");
    const PackedPart part{.name = entry[0].get<std::string>(),
                          .offset = PackedHeader::OffsetFor(behind, static_cast<int64_t>(bytes)),
                          .bytes = static_cast<int64_t>(bytes),
                          .checksum = entry[3].get<uint64_t>()};
    if (entry[1].get<uint64_t>() != static_cast<uint64_t>(part.offset) ||
        part.bytes > parts_end_ - part.offset) {
      Refuse("parts");
    }
    return part;
  }
  const ordered_json& At(const ordered_json& json, const char* name) const {
    const auto found = json.is_object() ? json.find(name) : json.end();
    if (!json.is_object() || found == json.end()) Refuse(name);
    return *found;
  }
  const ordered_json& List(const ordered_json& json, const char* name) const {
    const ordered_json& value = At(json, name);
    if (!value.is_array()) Refuse(name);
    return value;
  }
  std::string Text(const ordered_json& json, const char* name) const {
    const ordered_json& value = At(json, name);
    if (!value.is_string()) Refuse(name);
    return value.get<std::string>();
  }
  template <typename T>
  T Number(const ordered_json& json, const char* name) const {
    const ordered_json& value = At(json, name);
    if (!value.is_number_integer()) Refuse(name);
    if (value.is_number_unsigned() ? !std::in_range<T>(value.get<uint64_t>())
                                   : !std::in_range<T>(value.get<int64_t>())) {
      Refuse(name);
    }
    return value.get<T>();
  }
  [[noreturn]] void Refuse(std::string_view name) const {
    Throw(ErrorKind::kFormat, "{}: header: the value of \"{}\" is invalid", file_name_, name);
  }

  const std::string& file_name_;
  int64_t parts_end_;
};

}  // namespace

int64_t PackedHeader::OffsetFor(int64_t file_bytes, int64_t part_bytes) {
  const int64_t alignment = part_bytes >= kAlignment ? kAlignment : kLine;
  return (file_bytes + alignment - 1) / alignment * alignment;
}

std::vector<std::byte> PackedBeginning() {
  std::vector<std::byte> bytes(PackedHeader::kAlignment);
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  std::memcpy(bytes.data() + kMagic.size(), &PackedHeader::kVersion, sizeof(uint32_t));
  return bytes;
}

std::vector<std::byte> PackedEnd(const PackedHeader& header) {
  const std::string json = DumpJson(JsonOf(header));
  End end{.json_bytes = json.size(), .checksum = Checksum(Bytes(json)), .magic = {}};
  std::ranges::copy(kMagic, end.magic);
  std::vector<std::byte> bytes(json.size() + sizeof(end));
  std::memcpy(bytes.data(), json.data(), json.size());
  std::memcpy(bytes.data() + json.size(), &end, sizeof(end));
  return bytes;
}

bool BeginsAsPacked(std::span<const std::byte> file) { return AsText(file).starts_with(kMagic); }

PackedHeader ParsePackedHeader(std::span<const std::byte> file, const std::string& file_name) {
  const std::string_view text = AsText(file);
  if (!BeginsAsPacked(file)) {
    Throw(ErrorKind::kFormat, "{}: not a packed copy of a model", file_name);
  }
  uint32_t version = 0;
  if (file.size() < PackedHeader::kAlignment + sizeof(End)) {
    Throw(ErrorKind::kFormat, "{}: cut short: {} bytes", file_name, file.size());
  }
  std::memcpy(&version, file.data() + kMagic.size(), sizeof(version));
  if (version != PackedHeader::kVersion) {
    Throw(ErrorKind::kUnsupported, "{}: packed in version {} of the layout, expected version {}",
          file_name, version, PackedHeader::kVersion);
  }
  End end;
  std::memcpy(&end, file.data() + file.size() - sizeof(end), sizeof(end));
  const uint64_t room = file.size() - PackedHeader::kAlignment - sizeof(end);
  if (std::string_view(end.magic, sizeof(end.magic)) != kMagic || end.json_bytes > room ||
      end.json_bytes > kMaxJsonBytes) {
    Throw(ErrorKind::kFormat, "{}: cut short or damaged at its end", file_name);
  }
  const size_t parts_end = file.size() - sizeof(end) - end.json_bytes;
  const std::string_view json = text.substr(parts_end, end.json_bytes);
  if (Checksum(Bytes(json)) != end.checksum) {
    Throw(ErrorKind::kFormat, "{}: damaged: its header has another checksum", file_name);
  }
  const std::string what = file_name + ": header";
  return Reader(file_name, static_cast<int64_t>(parts_end))
      .Read(ParseOrderedJson(json, what, {.max_values = kMaxValues}));
}

}  // namespace godwit
