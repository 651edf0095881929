#include "hub/listing.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "hub/hub_cache.h"

namespace godwit::hub {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxBytes = uint64_t{1} << 50;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The text at a key. Empty: there is none.
std::string TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

RemoteFile ParseFile(const std::string& repository, const json& entry) {
  const auto refuse = [&](const std::string& what) {
    Throw(ErrorKind::kFormat, "the list of files of {}: {}", repository, what);
  };
  if (!entry.is_object() || TextAt(entry, "rfilename").empty()) refuse("a file without a name");
  RemoteFile file{.name = TextAt(entry, "rfilename")};
  if (!IsSafeFileName(file.name)) {
    refuse(fmt::format("a file is called {}, expected a name inside the model's folder",
                       Quote(file.name)));
  }
  if (const auto size = entry.find("size"); size != entry.end() && !size->is_null()) {
    if (!size->is_number_unsigned() || size->get<uint64_t>() > kMaxBytes) {
      refuse(fmt::format("{} has the size {}, expected a number of bytes", Quote(file.name),
                         size->dump()));
    }
    file.bytes = size->get<int64_t>();
  }
  const auto lfs = entry.find("lfs");
  if (lfs != entry.end() && lfs->is_object()) file.sha256 = TextAt(*lfs, "sha256");
  if (!file.sha256.empty() && !IsSha256(file.sha256)) {
    refuse(fmt::format("{} has the SHA-256 {}, expected 64 hexadecimal digits", Quote(file.name),
                       Quote(file.sha256)));
  }
  file.blob = file.sha256.empty() ? TextAt(entry, "blobId") : file.sha256;
  if (!file.blob.empty() && BlobOfTag(file.blob) != file.blob) {
    refuse(fmt::format("{} has the content name {}, expected letters and digits", Quote(file.name),
                       Quote(file.blob)));
  }
  return file;
}

}  // namespace

bool IsSha256(std::string_view blob) { return blob.size() == 64 && IsHex(blob); }

std::string BlobOfTag(std::string_view tag) {
  constexpr size_t kMost = 200;  // leaves space for ".incomplete"
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag.size() > 1 && tag.front() == '"' && tag.back() == '"') {
    tag = tag.substr(1, tag.size() - 2);
  }
  const bool fits = tag.size() <= kMost && std::all_of(tag.begin(), tag.end(), [](unsigned char c) {
                      return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_');
                    });
  return fits ? std::string(tag) : "";
}

Listing ParseListing(const std::string& repository, std::string_view text) {
  const json root = ParseJson(text, "the list of files of " + repository);
  Listing listing{.repository = repository};
  if (root.is_object()) listing.commit = TextAt(root, "sha");
  const bool is_commit =
      listing.commit.size() >= 7 && listing.commit.size() <= 64 && IsHex(listing.commit);
  if (!is_commit || !root.contains("siblings") || !root["siblings"].is_array()) {
    Throw(ErrorKind::kFormat,
          "the list of files of {}: expected an answer of the hub's API with sha and siblings",
          repository);
  }
  for (const json& entry : root["siblings"]) {
    listing.files.push_back(ParseFile(repository, entry));
  }
  return listing;
}

}  // namespace godwit::hub
