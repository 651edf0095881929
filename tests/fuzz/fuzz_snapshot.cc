#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "kv/saved_index.h"
#include "kv/snapshot_header.h"
#include "tests/fuzz/targets.h"

namespace godwit::fuzz {
namespace {

constexpr size_t kBlockBytes = SnapshotHeader::kAlignment;

template <class T>
void Put(std::vector<std::byte>& file, size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof(value));
}

// A file as snapshot_header.h describes it. Its checksum is right, because otherwise no input would
// get further.
std::vector<std::byte> FileOf(std::string_view json, size_t tokens, size_t pages, size_t blocks) {
  const size_t written = 40 + json.size() + 4 * tokens + 8 * pages;
  const size_t header = (written + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  std::vector<std::byte> file(header + blocks * kBlockBytes);
  std::memcpy(file.data(), "godwitkv", 8);
  Put<uint32_t>(file, 8, 1);
  Put(file, 12, static_cast<uint32_t>(json.size()));
  Put<uint64_t>(file, 16, tokens);
  Put<uint64_t>(file, 24, pages);
  if (!json.empty()) std::memcpy(file.data() + 40, json.data(), json.size());
  const std::span<const std::byte> all = file;
  const uint64_t parts[] = {Checksum(all.first(40)), Checksum(all.subspan(40, header - 40))};
  Put(file, 32, Checksum(std::as_bytes(std::span(parts))));
  return file;
}

// An index as saved_index.h describes it. The input is the header behind the checksum, and the
// rest.
void FuzzIndex(size_t parts, size_t kind_bytes, std::span<const uint8_t> input) {
  std::vector<std::byte> file(40 + input.size());
  std::memcpy(file.data(), "godwitix", 8);
  Put<uint32_t>(file, 8, 1);
  Put(file, 12, static_cast<uint32_t>(kind_bytes));
  Put<uint64_t>(file, 24, parts);
  if (!input.empty()) std::memcpy(file.data() + 40, input.data(), input.size());
  const size_t header = std::min(input.size(), 16 * parts + kind_bytes);
  const std::span<const std::byte> all = file;
  const uint64_t sums[] = {Checksum(all.first(40)), Checksum(all.subspan(40, header))};
  Put(file, 32, Checksum(std::as_bytes(std::span(sums))));
  Accepts([&] {
    const TextIndex index = ParseIndex(file, "f");
    Require(index.parts.size() == parts && index.kind.size() == kind_bytes, "all of it is there");
    for (const auto part : index.parts) {
      Require(part.data() >= file.data() && part.data() + part.size() <= file.data() + file.size(),
              "parts lie in the file");
    }
  });
}

}  // namespace

// The first three bytes are the tiles, pages and blocks behind the header; the JSON follows.
void FuzzSnapshot(std::span<const uint8_t> input) {
  Accepts([&] { ParseSnapshotHeader(std::as_bytes(input), "f"); });  // any bytes
  Accepts([&] { ParseIndex(std::as_bytes(input), "f"); });
  if (input.size() < 3) return;
  FuzzIndex(input[0], input[1], input.subspan(2));
  const auto file = FileOf(AsText(input.subspan(3)), 64 * size_t{input[0]}, input[1], input[2]);
  Accepts([&] {
    const SnapshotHeader header = ParseSnapshotHeader(file, "f");
    const SnapshotInfo& info = header.info;
    Require(info.Name().size() == 32, "it has a name");
    Require(header.file_bytes() == std::ssize(file), "it is as long as it says");
    Require(info.begin % 64 == 0 && info.end() % 64 == 0, "it has whole tiles");
    for (int64_t layer = 0; layer < info.layout.layers; ++layer) {
      for (int64_t tile = 0; tile < info.held_tiles(); ++tile) {
        const int64_t at = header.OffsetOf(layer, tile);
        Require(at >= header.data_begin && at + info.page_bytes() <= std::ssize(file),
                "pages lie in the file");
      }
    }
  });
}

}  // namespace godwit::fuzz
