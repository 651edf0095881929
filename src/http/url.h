// Parts of a URL that decide who is spoken to.
#pragma once

#include <string>
#include <string_view>

namespace godwit {

struct HttpOrigin {
  std::string scheme;  // http or https
  std::string host;    // in small letters; an address of IPv6 in brackets
  std::string port;    // also where the URL leaves it out

  bool operator==(const HttpOrigin&) const = default;
};

// Throws Error(kInput) for what is no URL of http or https, or names a user.
HttpOrigin OriginOf(const std::string& url);

// "host", or "host:port" where it is not the port of its scheme.
std::string HostAndPort(const HttpOrigin& origin);

// Everything but letters, digits, and "-._~" as %XX, and "/" where it is kept.
std::string PercentEncoded(std::string_view text, bool keep_slashes = false);

}  // namespace godwit
