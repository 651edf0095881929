// HttpClient: requests to servers over HTTP and HTTPS, by libcurl.
//
// One request at a time, over connections that are kept for the next. Redirects are followed here
// and not by libcurl, so that one rule says what another host may learn.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"

namespace godwit {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;  // names and values

struct HttpRequest {
  std::string method = "GET";  // GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS
  std::string url;             // http or https, without a user's name in it
  // Where a redirect leads to another host, that one gets none of them but Accept, Range and
  // User-Agent.
  HttpHeaders headers;
  // Sent as "Authorization: Bearer TOKEN" to the scheme, host and port of `url` alone. Empty: none.
  std::string bearer_token;
  std::string body;  // of POST, PUT and PATCH
  // How many redirects of GET and HEAD are followed, from https to https alone. A redirect that is
  // not followed is the response.
  int most_redirects = 0;
};

struct HttpResponse {
  std::string url;  // that was answered, after redirects
  int status = 0;
  HttpHeaders headers;  // as they came
  std::string body;     // empty where HttpCallbacks::on_body took it
  int64_t body_bytes = 0;
  bool stopped = false;  // a callback ended the transfer

  // The responses that led here by a redirect, without bodies.
  struct Redirect {
    std::string url;
    int status;
    HttpHeaders headers;
  };
  std::vector<Redirect> redirects;

  // The first of that name, in letters of any size. Null: there is none.
  const std::string* Header(std::string_view name) const;
};

const std::string* FindHeader(const HttpHeaders& headers, std::string_view name);

// False ends the transfer and its connection. They may throw: Send does the same and throws it on.
struct HttpCallbacks {
  // Once the status and all headers are there; not for redirects that are followed.
  std::function<bool(const HttpResponse&)> on_headers;
  // Bytes of the body, as they arrive. Without it the body is gathered in the response.
  std::function<bool(std::string_view)> on_body;
};

struct HttpClientOptions {
  std::chrono::milliseconds connect_time{30'000};
  // For the next byte of the answer, also its first, or for a byte of the request to be taken.
  std::chrono::milliseconds idle_time{60'000};
  // Of a body that is gathered.
  size_t most_body_bytes = size_t{64} << 20;
  // Looked at every 50 ms.
  const CancelToken* cancel = nullptr;
};

// No answer, or only the beginning of one.
class HttpError : public Error {
 public:
  HttpError(ErrorKind kind, const std::string& message, bool may_pass)
      : Error(kind, message), may_pass_(may_pass) {}

  // Whether the same request may succeed a little later: a lost connection, but no bad certificate.
  bool may_pass() const { return may_pass_; }

 private:
  bool may_pass_;
};

// Not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(const HttpClientOptions& options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any status is an answer. Throws HttpError(kIo) where there is none: no such host, refused, a
  // bad certificate, too long without a byte, cut off; Error(kInput) for a request that cannot be
  // sent; Error(kFormat) for what is no HTTP, too many redirects, or a body over most_body_bytes;
  // Error(kCancelled).
  HttpResponse Send(const HttpRequest& request, const HttpCallbacks& callbacks = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit
