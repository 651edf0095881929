#include "http/url.h"

#include <memory>
#include <optional>

#include "base/ascii.h"
#include "base/error.h"
#include "base/quote.h"
#include "http/curl_library.h"

namespace godwit {
namespace {

struct UrlDeleter {
  void operator()(CURLU* url) const { Curl().url_cleanup(url); }
};
struct CurlDeleter {
  void operator()(char* text) const { Curl().free(text); }
};

std::optional<std::string> Part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* found = nullptr;
  if (Curl().url_get(url, part, &found, flags) != CURLUE_OK) return std::nullopt;
  const std::unique_ptr<char, CurlDeleter> owned(found);
  return std::string(found);
}

}  // namespace

HttpOrigin OriginOf(const std::string& url) {
  const std::string shown = Quote(url);
  const std::unique_ptr<CURLU, UrlDeleter> parts(Curl().url());
  if (parts == nullptr) throw Error(ErrorKind::kMemory, "not enough memory to read a URL");
  // libcurl reads a C string.
  if (url.find('\0') != url.npos || Curl().url_set(parts.get(), CURLUPART_URL, url.c_str(),
                                                   CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) {
    Throw(ErrorKind::kInput, "{} is not a URL, expected https://HOST/... or http://HOST/...",
          shown);
  }
  HttpOrigin origin{.scheme = Lower(Part(parts.get(), CURLUPART_SCHEME).value_or("")),
                    .host = Lower(Part(parts.get(), CURLUPART_HOST).value_or("")),
                    .port = Part(parts.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT).value_or("")};
  if ((origin.scheme != "http" && origin.scheme != "https") || origin.host.empty()) {
    Throw(ErrorKind::kInput, "{}: expected https://HOST/... or http://HOST/...", shown);
  }
  if (Part(parts.get(), CURLUPART_USER) || Part(parts.get(), CURLUPART_PASSWORD)) {
    throw Error(ErrorKind::kInput, "a URL has a user name before its host, expected none");
  }
  return origin;
}

std::string HostAndPort(const HttpOrigin& origin) {
  const bool usual = origin.port == (origin.scheme == "https" ? "443" : "80");
  return usual ? origin.host : origin.host + ":" + origin.port;
}

std::string PercentEncoded(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || IsUpper(c) || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (c == '/' && keep_slashes);
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace godwit
