#include "kv/saved_index.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "base/error.h"
#include "base/new_file.h"
#include "base/quote.h"

namespace godwit {
namespace {

constexpr char kIndexMagic[8] = {'g', 'o', 'd', 'w', 'i', 't', 'i', 'x'};
constexpr uint32_t kIndexVersion = 1;
constexpr int64_t kAlignment = 64;

struct IndexStart {
  char magic[8];
  uint32_t version;
  uint32_t kind_bytes;
  uint64_t tokens;
  uint64_t parts;
  uint64_t checksum;
};
static_assert(sizeof(IndexStart) == 40);

struct Part {
  uint64_t bytes;
  uint64_t checksum;
};

uint64_t AlignUp(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// rest: the header behind its start.
uint64_t ChecksumOf(IndexStart start, std::span<const std::byte> rest) {
  start.checksum = 0;
  const uint64_t parts[] = {Checksum(std::as_bytes(std::span(&start, 1))), Checksum(rest)};
  return Checksum(std::as_bytes(std::span(parts)));
}

[[noreturn]] void Refuse(const std::string& file_name, const char* what) {
  Throw(ErrorKind::kFormat, "{}: damaged: {}", file_name, what);
}

}  // namespace

TextIndex ParseIndex(std::span<const std::byte> file, const std::string& file_name) {
  IndexStart start;
  if (file.size() < sizeof(start)) Refuse(file_name, "it is cut short");
  std::memcpy(&start, file.data(), sizeof(start));
  if (!std::ranges::equal(start.magic, kIndexMagic)) Refuse(file_name, "it is no index");
  if (start.version != kIndexVersion) {
    Throw(ErrorKind::kUnsupported, "{}: of version {} of its format, and this program reads {}",
          file_name, start.version, kIndexVersion);
  }
  const auto rest = file.subspan(sizeof(start));
  if (start.parts > rest.size() / sizeof(Part) ||
      start.kind_bytes > rest.size() - start.parts * sizeof(Part)) {
    Refuse(file_name, "it is cut short");
  }
  const auto header = rest.first(start.parts * sizeof(Part) + start.kind_bytes);
  if (ChecksumOf(start, header) != start.checksum) {
    Refuse(file_name, "its header has another checksum");
  }
  std::vector<Part> parts(start.parts);
  if (!parts.empty()) std::memcpy(parts.data(), header.data(), start.parts * sizeof(Part));
  const auto kind = header.last(start.kind_bytes);
  TextIndex index{.kind = {reinterpret_cast<const char*>(kind.data()), kind.size()},
                  .tokens = static_cast<int64_t>(start.tokens),
                  .parts = {}};
  uint64_t at = AlignUp(sizeof(start) + header.size());
  for (const Part& part : parts) {
    if (at > file.size() || part.bytes > file.size() - at) Refuse(file_name, "it is cut short");
    index.parts.push_back(file.subspan(at, part.bytes));
    if (Checksum(index.parts.back()) != part.checksum) {
      Refuse(file_name, "a part of it has another checksum");
    }
    at += AlignUp(part.bytes);
  }
  if (at != file.size()) Refuse(file_name, "it is cut short, or something follows");
  return index;
}

void WriteIndex(NewFile& file, const TextIndex& index) {
  std::vector<std::byte> rest(index.parts.size() * sizeof(Part) + index.kind.size());
  for (size_t i = 0; i < index.parts.size(); ++i) {
    const Part part{.bytes = index.parts[i].size(), .checksum = Checksum(index.parts[i])};
    std::memcpy(rest.data() + i * sizeof(Part), &part, sizeof(part));
  }
  std::ranges::copy(std::as_bytes(std::span(index.kind)),
                    rest.end() - static_cast<std::ptrdiff_t>(index.kind.size()));
  IndexStart start{.magic = {},
                   .version = kIndexVersion,
                   .kind_bytes = static_cast<uint32_t>(index.kind.size()),
                   .tokens = static_cast<uint64_t>(index.tokens),
                   .parts = index.parts.size(),
                   .checksum = 0};
  std::ranges::copy(kIndexMagic, start.magic);
  start.checksum = ChecksumOf(start, rest);
  file.Write(std::as_bytes(std::span(&start, 1)));
  file.Write(rest);
  file.PadTo(kAlignment);
  for (const auto part : index.parts) {
    file.Write(part);
    file.PadTo(kAlignment);
  }
}

SavedIndex::SavedIndex(const std::filesystem::path& path) : file_(path) {
  const std::string name = QuoteUnlessPlain(path.native());
  constexpr size_t kRunBytes = size_t{2} << 20;  // as much as Snapshot::Verify reads at once
  const size_t size = file_.Span().size();
  for (size_t at = 0; at < size; at += kRunBytes) {
    if (!file_.LoadIntoMemory(at, std::min(kRunBytes, size - at)))
      Refuse(name, "it cannot be read");
  }
  index_ = ParseIndex(file_.Span(), name);
}

}  // namespace godwit
