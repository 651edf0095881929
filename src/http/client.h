// HttpClient: requests to servers over HTTP and HTTPS, by libcurl.
//
// Requests go one at a time, over connections that are kept for the next one. Redirects are
// followed here and not by libcurl, so that one rule says what another host may learn.
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
  // Request headers. A redirect to another host sends only Accept, Range and User-Agent.
  HttpHeaders headers;
  // Sent as "Authorization: Bearer TOKEN" to the scheme, host and port of `url` alone. Empty: none.
  std::string bearer_token;
  std::string body;  // for POST, PUT and PATCH
  // The most redirects of GET and HEAD to follow; https leads to https alone. A redirect that is
  // not followed is the response.
  int max_redirects = 0;
};

struct HttpResponse {
  std::string url;  // the answered URL, after redirects
  int status = 0;
  HttpHeaders headers;  // as they arrived
  std::string body;     // empty where HttpCallbacks::on_body took it
  int64_t body_bytes = 0;
  bool stopped = false;  // a callback ended the transfer

  // The redirects before this response, without bodies.
  struct Redirect {
    std::string url;
    int status;
    HttpHeaders headers;
  };
  std::vector<Redirect> redirects;

  // The value of the first header of that name, in any case. Null: there is none.
  const std::string* Header(std::string_view name) const;
};

const std::string* FindHeader(const HttpHeaders& headers, std::string_view name);

// Callbacks during a transfer. False ends the transfer and its connection. An exception does the
// same, and Send throws it on.
struct HttpCallbacks {
  // Called once the status and all headers have arrived; not for redirects that are followed.
  std::function<bool(const HttpResponse&)> on_headers;
  // Receives bytes of the body as they arrive. Without it the response collects the body.
  std::function<bool(std::string_view)> on_body;
};

struct HttpClientOptions {
  std::chrono::milliseconds connect_time{30'000};
  // The longest wait for the next byte of the response, the first included, or until a byte of the
  // request is taken.
  std::chrono::milliseconds idle_time{60'000};
  // The limit of a body that the response collects.
  size_t max_body_bytes = size_t{64} << 20;
  // Checked every 50 ms.
  const CancelToken* cancel = nullptr;
};

// HttpError: no response, or only its beginning.
class HttpError : public Error {
 public:
  HttpError(ErrorKind kind, const std::string& message, bool is_transient)
      : Error(kind, message), is_transient_(is_transient) {}

  // Whether the same request may succeed a little later: a lost connection, but no bad certificate.
  bool is_transient() const { return is_transient_; }

 private:
  bool is_transient_;
};

// HttpClient: not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(const HttpClientOptions& options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends a request; any status is a response. Throws HttpError(kIo) without a response: no such
  // host, refused, a bad certificate, too long without a byte, cut off. Throws Error(kInput) for a
  // request that cannot be sent, and Error(kCancelled). Throws Error(kFormat) for anything but
  // HTTP, too many redirects, or a body over max_body_bytes.
  HttpResponse Send(const HttpRequest& request, const HttpCallbacks& callbacks = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit
