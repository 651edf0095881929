// What was derived from the keys of a text, beside its snapshots (snapshot.h): an index that is a
// small part of the keys, and that would take a look at all of them to make anew.
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
  // Of what it was made, and how: one of another kind is of no use.
  std::string kind;
  int64_t tokens = 0;  // the first ones of the text, from whose keys it comes; 0: there is none
  std::vector<std::span<const std::byte>> parts;
};

// Throws Error(kIo).
void WriteIndex(NewFile& file, const TextIndex& index);

// Of a whole file, in which its parts lie. Throws Error(kFormat) that says what of it is wrong, and
// begins with file_name; Error(kUnsupported) for one of another version.
TextIndex ParseIndex(std::span<const std::byte> file, const std::string& file_name);

// One in a file, all of which is read and held against its checksums.
class SavedIndex {
 public:
  // Throws Error(kIo), and what ParseIndex throws.
  explicit SavedIndex(const std::filesystem::path& path);

  // The parts lie in the mapped file.
  const TextIndex& index() const { return index_; }
  // It is of use for no more of the first tokens.
  void Limit(int64_t tokens) { index_.tokens = std::min(index_.tokens, tokens); }

 private:
  MappedFile file_;
  TextIndex index_;
};

}  // namespace godwit
