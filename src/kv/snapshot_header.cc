#include "kv/snapshot_header.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"

namespace godwit {
namespace {

using nlohmann::ordered_json;

constexpr char kSnapshotMagic[8] = {'g', 'o', 'd', 'w', 'i', 't', 'k', 'v'};
constexpr uint32_t kSnapshotVersion = 1;
constexpr int64_t kMaxJsonBytes = 1 << 20, kMaxLayers = 1 << 16;
constexpr int64_t kMaxStateFloats = int64_t{1} << 32, kMaxPageBytes = int64_t{1} << 32;

struct SnapshotStart {
  char magic[8];
  uint32_t version;
  uint32_t json_bytes;
  uint64_t tokens;
  uint64_t pages;
  uint64_t checksum;
};
static_assert(sizeof(SnapshotStart) == 40);

std::span<const std::byte> Bytes(const auto& values) { return std::as_bytes(std::span(values)); }

int64_t AlignUp(int64_t bytes) {
  constexpr int64_t kAlignment = SnapshotHeader::kAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

ordered_json JsonOf(const SnapshotInfo& info) {
  ordered_json facts = ordered_json::object();
  for (const auto& [name, value] : info.facts) facts[name] = value;
  ordered_json json{{"facts", std::move(facts)},        {"begin", info.begin},
                    {"layers", info.layout.pages()},    {"kv_heads", info.layout.kv_heads},
                    {"head_dim", info.layout.head_dim}, {"dtype", Name(info.layout.dtype)}};
  if (info.layout.values_in_keys) json["values_in_keys"] = true;
  if (info.layout.centred) json["centred"] = true;
  if (info.layout.mixed_bytes > 0) json["page_bytes"] = info.layout.mixed_bytes;
  if (info.layout.index_dim > 0) json["index_dim"] = info.layout.index_dim;
  if (!info.parent.empty()) json["parent"] = info.parent;
  if (info.dropped.end > info.dropped.begin) {
    json["dropped"] = {info.dropped.begin, info.dropped.end};
  }
  for (const auto& [begin, end] : info.skipped) json["skipped"].push_back({begin, end});
  if (!info.states.empty()) {
    json["state_layers"] = info.layout.states.layers;
    json["state_floats"] = info.layout.states.floats;
    json["states"] = info.states;
  }
  return json;
}

// The checksum of the header as it stands in the file, with zeros in place of the checksum.
uint64_t ChecksumOf(std::span<const std::byte> header) {
  SnapshotStart start;
  std::memcpy(&start, header.data(), sizeof(start));
  start.checksum = 0;
  const uint64_t parts[] = {Checksum(std::as_bytes(std::span(&start, 1))),
                            Checksum(header.subspan(sizeof(start)))};
  return Checksum(Bytes(parts));
}

std::optional<DType> TypeNamed(std::string_view name) {
  for (const KvType& type : kKvTypes) {
    if (Name(type.dtype) == name) return type.dtype;
  }
  return std::nullopt;
}

// Reads a header with a right checksum: godwit's own, or an attacker's.
class Reader {
 public:
  Reader(const std::string& file_name, const nlohmann::ordered_json& json)
      : file_name_(file_name), json_(json) {}

  int64_t Int(const char* name, int64_t most) const {
    const auto found = json_.find(name);
    if (found == json_.end() || !found->is_number_integer()) Refuse(name);
    const bool fits = found->is_number_unsigned() ? found->get<uint64_t>() <= INT64_MAX : true;
    const int64_t value = fits ? found->get<int64_t>() : -1;
    if (value < 0 || value > most) Refuse(name);
    return value;
  }
  int64_t IntOr(const char* name, int64_t absent, int64_t most) const {
    return json_.contains(name) ? Int(name, most) : absent;
  }
  std::string Text(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) return "";
    if (!found->is_string()) Refuse(name);
    return found->get<std::string>();
  }
  bool Flag(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) return false;
    if (!found->is_boolean()) Refuse(name);
    return found->get<bool>();
  }
  SnapshotFacts Facts() const {
    const auto found = json_.find("facts");
    if (found == json_.end() || !found->is_object()) Refuse("facts");
    SnapshotFacts facts;
    for (const auto& [name, value] : found->items()) {
      if (!value.is_string()) Refuse("facts");
      facts.emplace_back(name, value.get<std::string>());
    }
    return facts;
  }
  ops::KvRange Dropped() const {
    const auto found = json_.find("dropped");
    return found == json_.end() ? ops::KvRange{0, 0} : Tiles(*found, "dropped");
  }
  // Ranges of whole tiles within [begin, end), ascending.
  std::vector<ops::KvRange> Skipped(int64_t begin, int64_t end) const {
    const auto found = json_.find("skipped");
    if (found == json_.end()) return {};
    if (!found->is_array() || found->empty()) Refuse("skipped");
    std::vector<ops::KvRange> skipped;
    for (const auto& each : *found) {
      const ops::KvRange range = Tiles(each, "skipped");
      if (range.begin < begin || range.begin == range.end || range.end > end) Refuse("skipped");
      skipped.push_back(range);
      begin = range.end;
    }
    return skipped;
  }
  // Positions of whole tiles, ascending from behind `begin` to `end`, or none.
  std::vector<int64_t> States(int64_t begin, int64_t end) const {
    const auto found = json_.find("states");
    if (found == json_.end()) return {};
    if (!found->is_array() || found->empty()) Refuse("states");
    std::vector<int64_t> states;
    for (const auto& at : *found) {
      if (!at.is_number_unsigned() || at.get<uint64_t>() > INT64_MAX) Refuse("states");
      const auto position = at.get<int64_t>();
      if (position <= (states.empty() ? begin : states.back()) || position % kTileTokens != 0) {
        Refuse("states");
      }
      states.push_back(position);
    }
    if (states.back() != end) Refuse("states");
    return states;
  }
  [[noreturn]] void Refuse(std::string_view name) const {
    Throw(ErrorKind::kFormat, "{}: header: \"{}\" has an impossible value", file_name_, name);
  }

 private:
  // A range [begin, end) of whole tiles.
  ops::KvRange Tiles(const nlohmann::ordered_json& json, const char* name) const {
    if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() ||
        !json[1].is_number_unsigned()) {
      Refuse(name);
    }
    const ops::KvRange range{json[0].get<int64_t>(), json[1].get<int64_t>()};
    if (range.begin < 0 || range.begin > range.end || range.begin % kTileTokens != 0 ||
        range.end % kTileTokens != 0) {
      Refuse(name);
    }
    return range;
  }

  const std::string& file_name_;
  const nlohmann::ordered_json& json_;
};

SnapshotInfo ReadInfo(const std::string& file_name, std::string_view text, int64_t tokens) {
  const auto json = ParseOrderedJson(text, file_name + ": header", {.max_values = 10'000});
  const Reader reader(file_name, json);
  if (!json.is_object()) reader.Refuse("facts");
  SnapshotInfo info{.label = reader.Text("label"),
                    .facts = reader.Facts(),
                    .parent = reader.Text("parent"),
                    .begin = reader.Int("begin", int64_t{1} << 50),
                    .dropped = reader.Dropped()};
  info.layout = {.layers = reader.Int("layers", kMaxLayers),
                 .kv_heads = reader.Int("kv_heads", kMaxLayers),
                 .head_dim = reader.Int("head_dim", kMaxHeadDim)};
  info.layout.values_in_keys = reader.Flag("values_in_keys");
  info.layout.centred = reader.Flag("centred");
  info.layout.index_dim = reader.IntOr("index_dim", 0, kMaxHeadDim);
  const auto dtype = TypeNamed(reader.Text("dtype"));
  if (!dtype) reader.Refuse("dtype");
  info.layout.dtype = *dtype;
  if (info.layout.layers == 0) reader.Refuse("layers");
  if (json.contains("page_bytes")) {
    info.layout.mixed_bytes = reader.Int("page_bytes", kMaxPageBytes);
    info.layout.mixed_pages = info.layout.layers;
    if (info.layout.mixed_bytes == 0) reader.Refuse("page_bytes");
  }
  if (info.layout.kv_heads == 0) reader.Refuse("kv_heads");
  if (info.layout.head_dim == 0) reader.Refuse("head_dim");
  if (info.begin % kTileTokens != 0 || (info.begin > 0) == info.parent.empty()) {
    reader.Refuse("begin");
  }
  const auto [begin, end] = info.dropped;
  if (end > tokens || (end > begin && !info.parent.empty())) reader.Refuse("dropped");
  info.skipped = reader.Skipped(info.begin, info.begin + tokens);
  if (end > begin && !info.skipped.empty()) reader.Refuse("skipped");
  info.states = reader.States(info.begin, info.begin + tokens);
  if (!info.states.empty()) {
    info.layout.states = {.layers = reader.Int("state_layers", kMaxLayers),
                          .floats = reader.Int("state_floats", kMaxStateFloats)};
    if (info.state_bytes() == 0) reader.Refuse("state_floats");
  }
  return info;
}

}  // namespace

std::string FactNamed(const SnapshotFacts& facts, std::string_view name) {
  for (const auto& [fact, value] : facts) {
    if (fact == name) return value;
  }
  return "";
}

std::vector<ops::KvRange> SnapshotInfo::held() const {
  std::vector<ops::KvRange> held;
  int64_t from = begin;
  const auto add_before = [&](const ops::KvRange& without) {
    if (from < without.begin) held.push_back({from, without.begin});
    from = std::max(from, without.end);
  };
  add_before(dropped);
  for (const ops::KvRange& range : skipped) add_before(range);
  add_before({end(), end()});
  return held;
}

int64_t SnapshotInfo::held_tiles() const {
  int64_t without = dropped.end - dropped.begin;
  for (const auto& [begin, end] : skipped) without += end - begin;
  return (std::ssize(tokens) - without) / kTileTokens;
}

std::string SnapshotInfo::Name() const {
  const std::string json = DumpJson(JsonOf(*this));
  return ContentName({Bytes(json), Bytes(tokens)});
}

int64_t SnapshotHeader::OffsetOf(int64_t layer, int64_t tile) const {
  const int64_t layer_bytes = AlignUp(info.held_tiles() * info.page_bytes());
  return data_begin + layer * layer_bytes + tile * info.page_bytes();
}

int64_t SnapshotHeader::OffsetOfState(int64_t index) const {
  return OffsetOf(info.layout.pages(), 0) + index * AlignUp(info.state_bytes());
}

std::vector<std::byte> MakeSnapshotHeader(const SnapshotInfo& info,
                                          std::span<const uint64_t> checksums) {
  ordered_json described = JsonOf(info);
  described["label"] = info.label;
  const std::string json = DumpJson(described);
  SnapshotStart start{.magic = {},
                      .version = kSnapshotVersion,
                      .json_bytes = static_cast<uint32_t>(json.size()),
                      .tokens = info.tokens.size(),
                      .pages = checksums.size(),
                      .checksum = 0};
  std::copy_n(kSnapshotMagic, sizeof(kSnapshotMagic), start.magic);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&start, 1)), Bytes(json),
                                              Bytes(info.tokens), Bytes(checksums)};
  size_t size = 0;
  for (const auto part : parts) size += part.size();
  std::vector<std::byte> bytes(AlignUp(static_cast<int64_t>(size)));
  size_t at = 0;
  for (const auto part : parts) {
    if (!part.empty()) std::memcpy(bytes.data() + at, part.data(), part.size());
    at += part.size();
  }
  start.checksum = ChecksumOf(bytes);
  std::memcpy(bytes.data(), &start, sizeof(start));
  return bytes;
}

SnapshotHeader ParseSnapshotHeader(std::span<const std::byte> file, const std::string& file_name) {
  const auto size = std::ssize(file);
  SnapshotStart start;
  if (size < int64_t{sizeof(start)}) {
    Throw(ErrorKind::kFormat, "{}: cut short: {} bytes, and its header has {}", file_name, size,
          sizeof(start));
  }
  std::memcpy(&start, file.data(), sizeof(start));
  if (!std::ranges::equal(start.magic, kSnapshotMagic)) {
    Throw(ErrorKind::kFormat, "{}: not a file of cached keys and values", file_name);
  }
  if (start.version != kSnapshotVersion) {
    Throw(ErrorKind::kUnsupported, "{}: of version {} of its format, and this program reads {}",
          file_name, start.version, kSnapshotVersion);
  }
  const auto most = static_cast<uint64_t>(size);
  if (start.json_bytes > kMaxJsonBytes || start.tokens > most / 4 || start.pages > most / 8) {
    Throw(ErrorKind::kFormat, "{}: cut short, or its header is damaged", file_name);
  }
  const auto tokens = static_cast<int64_t>(start.tokens);
  const auto pages = static_cast<int64_t>(start.pages);
  const int64_t json_begin = sizeof(start), tokens_begin = json_begin + start.json_bytes;
  const int64_t checksums_begin = tokens_begin + 4 * tokens;
  const int64_t header_bytes = AlignUp(checksums_begin + 8 * pages);
  if (header_bytes > size) {
    Throw(ErrorKind::kFormat, "{}: cut short: {} bytes, and its header has {}", file_name, size,
          header_bytes);
  }
  if (ChecksumOf(file.first(header_bytes)) != start.checksum) {
    Throw(ErrorKind::kFormat, "{}: its header is damaged: the checksum is another one", file_name);
  }
  SnapshotHeader header;
  header.info =
      ReadInfo(file_name,
               {reinterpret_cast<const char*>(file.data()) + json_begin, start.json_bytes}, tokens);
  header.info.tokens.resize(tokens);
  const SnapshotInfo& info = header.info;
  if (tokens == 0 || tokens % kTileTokens != 0 ||
      (info.held_tiles() == 0 && info.skipped.empty()) ||
      CheckedMul(info.held_tiles(), info.layout.pages()) != pages - std::ssize(info.states)) {
    Throw(ErrorKind::kFormat, "{}: header: {} tokens do not take {} pages", file_name, tokens,
          pages - std::ssize(info.states));
  }
  std::memcpy(header.info.tokens.data(), file.data() + tokens_begin, 4 * start.tokens);
  header.checksums.resize(pages);
  if (pages > 0) {
    std::memcpy(header.checksums.data(), file.data() + checksums_begin, 8 * start.pages);
  }
  header.data_begin = header_bytes;
  const int64_t largest = std::max(info.page_bytes(), info.state_bytes());
  const auto data = CheckedMul(AlignUp(largest), pages);  // at most
  if (!data || header.file_bytes() != size) {
    Throw(ErrorKind::kFormat, "{}: {} bytes, expected {}: it is cut short, or something follows",
          file_name, size, data ? header.file_bytes() : 0);
  }
  return header;
}

}  // namespace godwit
