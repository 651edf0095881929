#include "journal/record_file.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"

namespace godwit::journal {
namespace {

constexpr std::string_view kMagic = "godwitjn";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 16;  // of a file, and of a record
constexpr size_t kMaxFileBytes = size_t{4} << 30;

template <typename Number>
void Put(Number number, std::string& bytes) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    bytes += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i) & 0xff);
  }
}

template <typename Number>
Number Get(std::string_view bytes, size_t at) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    number |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return static_cast<Number>(number);
}

uint64_t ChecksumOf(int64_t number, uint32_t kind, std::string_view bytes) {
  std::string all;
  all.reserve(bytes.size() + sizeof(number) + sizeof(kind));
  Put(number, all);
  Put(kind, all);
  all += bytes;
  return Checksum(std::as_bytes(std::span(all)));
}

}  // namespace

std::string FileHeader() {
  std::string header(kMagic);
  Put(kVersion, header);
  Put(uint32_t{0}, header);
  return header;
}

std::string RecordBytes(int64_t number, uint32_t kind, std::string_view bytes) {
  std::string record;
  record.reserve(kHeaderBytes + bytes.size());
  Put(ChecksumOf(number, kind, bytes), record);
  Put(static_cast<uint32_t>(bytes.size()), record);
  Put(kind, record);
  record += bytes;
  return record;
}

Records ReadRecords(const std::filesystem::path& path) {
  const std::string file = ReadTextFile(path, kMaxFileBytes);
  const std::string header = FileHeader();
  Records found;
  found.has_tail = !file.empty();
  // A power cut may leave a file of its size with zeros in place of its bytes.
  const std::string_view beginning = std::string_view(file).substr(0, kHeaderBytes);
  if (beginning.find_first_not_of('\0') == beginning.npos) return found;
  if (file.size() < kHeaderBytes && header.starts_with(file)) return found;
  if (!file.starts_with(kMagic)) {
    Throw(ErrorKind::kFormat, "{}: expected a journal of godwit", QuoteUnlessPlain(path.native()));
  }
  if (!file.starts_with(header)) {
    Throw(ErrorKind::kFormat, "{}: expected a journal of version {}, found version {}",
          QuoteUnlessPlain(path.native()), kVersion, Get<uint32_t>(file, kMagic.size()));
  }
  size_t at = kHeaderBytes;
  const std::string_view all = file;
  while (all.size() - at >= kHeaderBytes) {
    const auto checksum = Get<uint64_t>(all, at);
    const auto bytes = Get<uint32_t>(all, at + 8), kind = Get<uint32_t>(all, at + 12);
    if (bytes > kMaxRecordBytes || bytes > all.size() - at - kHeaderBytes) break;
    const std::string_view payload = all.substr(at + kHeaderBytes, bytes);
    if (ChecksumOf(std::ssize(found.records), kind, payload) != checksum) break;
    found.records.push_back({.kind = kind, .bytes = std::string(payload)});
    at += kHeaderBytes + bytes;
  }
  found.bytes = static_cast<int64_t>(at);
  found.has_tail = at < all.size();
  return found;
}

std::string BytesOf(std::span<const int32_t> tokens) {
  std::string bytes;
  bytes.reserve(tokens.size() * sizeof(int32_t));
  for (const int32_t token : tokens) Put(token, bytes);
  return bytes;
}

std::vector<int32_t> TokensOf(std::string_view bytes) {
  std::vector<int32_t> tokens(bytes.size() / sizeof(int32_t));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = Get<int32_t>(bytes, i * sizeof(int32_t));
  return tokens;
}

std::span<const int32_t> NotWritten(std::span<const int32_t> tokens, size_t written,
                                    size_t& count) {
  const size_t known = std::min(tokens.size(), written - std::min(written, count));
  count += tokens.size();
  return tokens.subspan(known);
}

}  // namespace godwit::journal
