// The header of a packed copy of a model's weights: the content of the file, and its sources.
//
//   "godwitpk", version u32, zeros to kAlignment; the parts, each from a multiple of kAlignment on
//   if it is as large, else of 64; JSON; bytes of the JSON u64, checksum u64 of it, "godwitpk".
//   Little-endian.
//
// The JSON stands behind the parts, so that they are written as they are made. It says for which
// files the copy was made, and where its parts lie, each with a checksum. Kernels read the parts as
// they lie, the same on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace godwit {

// A file from which weights are read.
struct PackedSource {
  std::string name;  // without a folder
  int64_t bytes = 0;
  // The times at which its content was written, and at which anything of it was changed; the latter
  // cannot be set. Nanoseconds since 1970.
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  uint64_t checksum = 0;  // of all of it (checkpoint/packed_copy.cc)

  bool operator==(const PackedSource&) const = default;
};

struct PackedInfo {
  std::string godwit;   // the version that packed it
  std::string weights;  // as --weights spells it
  // The checksum of config.json; 0: there is none, the files of weights say the same.
  uint64_t config_checksum = 0;
  std::vector<PackedSource> sources;
  std::vector<std::string> warnings;  // given while it was packed

  bool operator==(const PackedInfo&) const = default;
};

struct PackedPart {
  std::string name;
  int64_t offset = 0;
  int64_t bytes = 0;
  uint64_t checksum = 0;

  bool operator==(const PackedPart&) const = default;
};

struct PackedHeader {
  static constexpr int64_t kAlignment = 4096;
  // The version. Raise it with any change of the file's content, or of the weights that LoadDecoder
  // makes of a checkpoint: tests/golden/packed_copy_test.cc notices.
  static constexpr uint32_t kVersion = 2;

  PackedInfo info;
  std::vector<PackedPart> parts;  // in the order of the file

  // The offset of a part: the first of its alignment behind what is there.
  static int64_t OffsetFor(int64_t file_bytes, int64_t part_bytes);
};

// The beginning of the file, kAlignment bytes, and its end.
std::vector<std::byte> PackedBeginning();
std::vector<std::byte> PackedEnd(const PackedHeader& header);

// Whether a file begins as one, of whatever version.
bool BeginsAsPacked(std::span<const std::byte> file);

// Parses the header of a whole file. Throws Error(kFormat) that begins with file_name and says what
// is wrong; Error(kUnsupported) for another version.
PackedHeader ParsePackedHeader(std::span<const std::byte> file, const std::string& file_name);

}  // namespace godwit
