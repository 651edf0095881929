// The files of a model at a commit, as the hub lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::hub {

struct RemoteFile {
  std::string name;    // safe (IsSafeFileName)
  int64_t bytes = -1;  // -1: not said
  std::string blob;    // names its content, and its file in the cache; empty: not said
  std::string sha256;  // of the content; empty: not said
};

struct Listing {
  std::string repository;  // "org/name", as it was asked for
  std::string commit;      // hexadecimal digits
  std::vector<RemoteFile> files;
};

// Of an answer of /api/models/ORG/NAME/revision/REVISION?blobs=true. Throws Error(kFormat) for what
// is none, for a file whose name leads out of its folder, and for sizes and names of content that
// cannot be.
Listing ParseListing(const std::string& repository, std::string_view json);

// "ETag: W/\"0123\"" names content as 0123 does. Empty for what cannot name a file in the cache.
std::string BlobOfTag(std::string_view tag);

// Whether that is a SHA-256: of large files the hub's names of content are.
bool IsSha256(std::string_view blob);

}  // namespace godwit::hub
