// SavedIndex: data that was derived from the keys of a text, in a file beside its snapshots
// (snapshot.h). Such an index is a small part of the keys, and making it anew would read all of
// them.
//
//   "godwitix", version u32, bytes of the kind u32, tokens u64, parts u64, checksum u64 of all of
//   the header but itself; of each part its bytes u64 and a checksum u64; the kind; and the parts.
//   Little-endian, each part at a multiple of 64.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace godwit {

class NewFile;

struct TextIndex {
  // The kind of data from which it was made, and how. An index of another kind is of no use.
  std::string kind;
  int64_t tokens = 0;  // first tokens of the text, from whose keys it comes; 0: no index
  std::vector<std::span<const std::byte>> parts;
};

// Throws Error(kIo).
void WriteIndex(NewFile& file, const TextIndex& index);

// Parses a whole file, in which the index's parts lie. Throws Error(kFormat) that begins with
// file_name and says what is wrong; Error(kUnsupported) for another version.
TextIndex ParseIndex(std::span<const std::byte> file, const std::string& file_name);

// An index in a file, all of which is read and compared with its checksums.
class SavedIndex {
 public:
  // Throws Error(kIo), and what ParseIndex throws.
  explicit SavedIndex(const std::filesystem::path& path);

  // The parts lie in the mapped file.
  const TextIndex& index() const { return index_; }
  // Limits the index to so many of the first tokens.
  void Limit(int64_t tokens) { index_.tokens = std::min(index_.tokens, tokens); }

 private:
  MappedFile file_;
  TextIndex index_;
};

}  // namespace godwit
