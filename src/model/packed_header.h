// A packed copy of a model's weights: what stands in the file, and for what it was made.
//
//   "godwitpk", version u32, zeros to kAlignment; the parts, each from a multiple of kAlignment on
//   if it is as large, else of 64; JSON; bytes of the JSON u64, checksum u64 of it, "godwitpk".
//   Little-endian.
//
// The JSON stands behind the parts, so that they are written as they are made. It says for which
// files the copy was made, and where its parts lie, each with a checksum. Kernels read them as they
// lie, the same on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace godwit {

// Of a file that weights are read from.
struct PackedSource {
  std::string name;  // without a folder
  int64_t bytes = 0;
  // When its content was written, and when anything of it was changed: nobody sets the latter.
  // Nanoseconds since 1970.
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  uint64_t checksum = 0;  // of all of it (checkpoint/packed_copy.cc)

  bool operator==(const PackedSource&) const = default;
};

struct PackedInfo {
  std::string godwit;   // the version that packed it
  std::string weights;  // as --weights spells it
  // Of config.json; 0: the files of weights say what it would.
  uint64_t config_checksum = 0;
  std::vector<PackedSource> sources;
  std::vector<std::string> warnings;  // that came up while it was packed

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
  // Raised by whoever changes what stands in the file, or what LoadDecoder makes of a checkpoint:
  // tests/golden/packed_copy_test.cc notices.
  static constexpr uint32_t kVersion = 2;

  PackedInfo info;
  std::vector<PackedPart> parts;  // in the order of the file

  // Of a part, whose offset is the first of its alignment behind what is there.
  static int64_t OffsetFor(int64_t file_bytes, int64_t part_bytes);
};

// What the file begins with, kAlignment bytes, and what it ends with.
std::vector<std::byte> PackedBeginning();
std::vector<std::byte> PackedEnd(const PackedHeader& header);

// Whether a file begins as one, of whatever version.
bool BeginsAsPacked(std::span<const std::byte> file);

// Of a whole file. Throws Error(kFormat) that says what of it is wrong, and begins with file_name;
// Error(kUnsupported) for one of another version.
PackedHeader ParsePackedHeader(std::span<const std::byte> file, const std::string& file_name);

}  // namespace godwit
