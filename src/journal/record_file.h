// RecordFile: a file of records that a killed process leaves readable.
//
//   "godwitjn", version u32, 0 u32; then for each record: checksum u64, bytes u32, kind u32, and
//   the bytes. Little-endian.
//
// A checksum covers the record's number, its kind and its bytes. Reading ends before the first
// record that is torn or damaged. The records that are read thus begin what was written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/open_file.h"

namespace godwit::journal {

struct Record {
  uint32_t kind;
  std::string bytes;
};

struct Records {
  std::vector<Record> records;
  int64_t bytes = 0;      // of the file, up to the end of the last whole record
  bool has_tail = false;  // bytes follow that are no record
};

// The most bytes of a record.
inline constexpr int64_t kMaxRecordBytes = int64_t{1} << 30;

// Reads a file. Throws Error(kIo). Throws Error(kFormat) for a file that is none of records or of
// another version. A file that ends within its header, or has zeros there, has no records.
Records ReadRecords(const std::filesystem::path& path);

// The bytes of a file's beginning, and of its record with this number, from 0 on.
std::string FileHeader();
std::string RecordBytes(int64_t number, uint32_t kind, std::string_view bytes);

// Numbers as bytes of a record, and back. Bytes that are no whole number are left out.
std::string BytesOf(std::span<const int32_t> tokens);
std::vector<int32_t> TokensOf(std::string_view bytes);

// The part of an output's next tokens that lies behind the first `written` of the output. count:
// the output's tokens so far, to which these are added.
std::span<const int32_t> NotWritten(std::span<const int32_t> tokens, size_t written, size_t& count);

}  // namespace godwit::journal
