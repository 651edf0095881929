// The parts of a URL that name the server, and percent-encoding.
#pragma once

#include <string>
#include <string_view>

namespace godwit {

struct HttpOrigin {
  std::string scheme;  // http or https
  std::string host;    // in lower case; an IPv6 address in brackets
  std::string port;    // also where the URL leaves it out

  bool operator==(const HttpOrigin&) const = default;
};

// The origin of a URL. Throws Error(kInput) for anything but a URL of http or https, and for one
// with a user's name.
HttpOrigin OriginOf(const std::string& url);

// The host: "host", or "host:port" where the port is not the scheme's own.
std::string HostAndPort(const HttpOrigin& origin);

// Encodes everything except letters, digits and "-._~" as %XX; keep_slashes: except "/", too.
std::string PercentEncoded(std::string_view text, bool keep_slashes = false);

}  // namespace godwit
