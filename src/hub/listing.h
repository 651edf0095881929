// The files of a model at a commit, as the hub lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::hub {

struct RemoteFile {
  std::string name;    // safe (IsSafeFileName)
  int64_t bytes = -1;  // -1: unknown
  std::string blob;    // names the content, and the file in the cache; empty: unknown
  std::string sha256;  // of the content; empty: unknown
};

struct Listing {
  std::string repository;  // "org/name", as it was asked for
  std::string commit;      // hexadecimal digits
  std::vector<RemoteFile> files;
};

// Parses an answer of /api/models/ORG/NAME/revision/REVISION?blobs=true. Throws Error(kFormat) for
// another answer, for a file whose name leads out of its folder, and for impossible sizes or
// content names.
Listing ParseListing(const std::string& repository, std::string_view json);

// The content name in an ETag: 0123 for "ETag: W/\"0123\"". Empty for text that cannot name a file
// in the cache.
std::string BlobOfTag(std::string_view tag);

// Whether a content name is a SHA-256, which it is for the hub's large files.
bool IsSha256(std::string_view blob);

}  // namespace godwit::hub
