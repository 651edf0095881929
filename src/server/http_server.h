// HTTP/1.1 for requests that are answered at once or over hours.
//
// One thread serves all connections, and none of them costs another: a connection that waits for
// its answer, or for whoever reads it, is an entry in a list. It is not for the open internet:
// there is no TLS, which a proxy before it has.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancel.h"

namespace godwit::server {

struct HttpRequest {
  std::string method;
  std::string path;  // of the target, without its query
  // Of the header; empty: there is none.
  std::string host;
  std::string origin;
  bool allowed_origin = false;  // one of HttpOptions::origins
  std::string authorization;
  std::string api_key;  // X-Api-Key
  std::string body;
};

using Headers = std::span<const std::pair<std::string_view, std::string_view>>;

// The answer to one request, whole or in pieces. Any thread may give it. One that is dropped before
// its end breaks the connection.
class HttpReply {
 public:
  virtual ~HttpReply() = default;

  virtual void Send(int status, std::string_view content_type, std::string_view body,
                    Headers headers = {}) = 0;

  // The beginning of one in pieces, its pieces, and its end. Write waits while more than
  // kMostUnsentBytes wait for whoever reads; not for the thread of the server.
  static constexpr size_t kMostUnsentBytes = size_t{1} << 20;
  virtual void Begin(std::string_view content_type) = 0;
  virtual void Write(std::string_view piece) = 0;
  virtual void End() = 0;

  // Set once nobody reads it any more: what is sent then is lost.
  virtual const CancelToken& gone() const = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // an address
  uint16_t port = 8080;            // 0: any that is free
  uint64_t most_body_bytes = uint64_t{64} << 20;
  uint64_t most_bodies_bytes = uint64_t{1} << 30;  // of all requests that are read or answered
  uint32_t most_header_bytes = 16 << 10;
  // Of more, one on which no whole request has come ends, the longest waiting first; where all are
  // being answered, others are told to come back.
  int64_t most_connections = 1024;
  // For a request's header, from its connection's beginning or the last answer on; for its body;
  // and for a reader to take anything of an answer.
  std::chrono::milliseconds header_time{30'000};
  std::chrono::milliseconds body_time{120'000};
  std::chrono::milliseconds read_time{60'000};
  // Sites whose pages may ask and read the answers ("https://chat.example"): a browser is told so.
  std::vector<std::string> origins;
};

// Throws Error(kInput) for a host that is no address.
void CheckAddress(const std::string& host);
// Throws Error(kInput) for what no browser would call an origin.
void CheckOrigin(std::string_view origin);

class HttpServer {
 public:
  // Called by the server's thread, which it is not to hold up.
  using Handler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

  // Listens. Throws Error(kIo), Error(kInput) for a host that is no address.
  HttpServer(const HttpOptions& options, Handler handler);
  // Breaks all connections; one whose answer is whole, once it is sent or `read_time` has passed.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  // Whether none but this machine reaches it.
  bool is_local() const;

  // Takes no new connections, and no new requests from those it has.
  void StopListening();
  // Of those that are served.
  int64_t connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::server
