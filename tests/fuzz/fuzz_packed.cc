#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checksum.h"
#include "model/packed_header.h"
#include "tests/fuzz/targets.h"

namespace godwit::fuzz {
namespace {

constexpr auto kAlignment = static_cast<size_t>(PackedHeader::kAlignment);

// A file as packed_header.h describes it. Its checksum is right, because otherwise no input would
// get further.
std::vector<std::byte> FileOf(size_t parts_bytes, std::span<const std::byte> json) {
  std::vector<std::byte> file = PackedBeginning();
  file.resize(kAlignment + parts_bytes);
  file.insert(file.end(), json.begin(), json.end());
  const uint64_t numbers[] = {json.size(), Checksum(json)};
  const auto end = std::as_bytes(std::span(numbers));
  file.insert(file.end(), end.begin(), end.end());
  const std::vector<std::byte> beginning = PackedBeginning();
  file.insert(file.end(), beginning.begin(), beginning.begin() + 8);
  return file;
}

void CheckHeader(std::span<const std::byte> file) {
  const PackedHeader header = ParsePackedHeader(file, "f");
  int64_t end = PackedHeader::kAlignment;
  for (const PackedPart& part : header.parts) {
    Require(part.offset >= end && part.bytes >= 0, "parts follow one another");
    Require(part.offset % 64 == 0, "parts are aligned");
    end = part.offset + part.bytes;
    Require(end <= std::ssize(file), "parts lie in the file");
  }
  // Writing the parsed header again gives the same bytes.
  std::vector<std::byte> again(file.begin(), file.begin() + end);
  const std::vector<std::byte> written = PackedEnd(header);
  again.insert(again.end(), written.begin(), written.end());
  const PackedHeader same = ParsePackedHeader(again, "f");
  Require(same.info == header.info && same.parts == header.parts, "it comes back");
}

}  // namespace

// The first two bytes are the number of bytes of the parts; the JSON follows.
void FuzzPacked(std::span<const uint8_t> input) {
  const auto bytes = std::as_bytes(input);
  Accepts([&] { ParsePackedHeader(bytes, "f"); });  // any bytes
  if (input.size() < 2) return;
  const size_t parts_bytes = input[0] + 256 * size_t{input[1]};
  const std::vector<std::byte> file = FileOf(parts_bytes, bytes.subspan(2));
  Accepts([&] { CheckHeader(file); });
}

}  // namespace godwit::fuzz
