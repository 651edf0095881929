// HttpServer: HTTP/1.1 for requests that are answered at once or over hours.
//
// One thread serves all connections, and none holds up another. A connection that waits for its
// answer, or for its reader, is only an entry in a list. The server is not for the open internet:
// TLS needs a proxy before it.
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
  std::string path;   // the target without its query
  std::string query;  // the part behind "?"
  // Header values; empty: the header is missing.
  std::string host;
  std::string origin;
  bool allowed_origin = false;  // one of HttpOptions::origins
  std::string authorization;
  std::string api_key;        // X-Api-Key
  std::string last_event_id;  // Last-Event-ID
  std::string body;
};

using Headers = std::span<const std::pair<std::string_view, std::string_view>>;

// The answer to one request, whole or in pieces, from any thread. A reply that is dropped before
// its end breaks the connection.
class HttpReply {
 public:
  virtual ~HttpReply() = default;

  virtual void Send(int status, std::string_view content_type, std::string_view body,
                    Headers headers = {}) = 0;

  // The beginning, pieces and end of an answer in pieces. Write waits while more than
  // kMaxUnsentBytes wait for the reader, except in the server's own thread.
  static constexpr size_t kMaxUnsentBytes = size_t{1} << 20;
  virtual void Begin(std::string_view content_type) = 0;
  virtual void Write(std::string_view piece) = 0;
  virtual void End() = 0;

  // Set once nobody reads the answer any more; bytes sent after that are lost.
  virtual const CancelToken& gone() const = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // an address
  uint16_t port = 8080;            // 0: any free one
  uint64_t max_body_bytes = uint64_t{64} << 20;
  uint64_t max_bodies_bytes = uint64_t{1} << 30;  // of all requests in progress
  uint32_t max_header_bytes = 16 << 10;
  // The most connections. Beyond them, the connection that has waited longest without a whole
  // request ends. If all are being answered, new ones are told to come back.
  int64_t max_connections = 1024;
  // The time for a request's header, from the connection's beginning or the last answer on. Then
  // the time for its body, and for a reader to take any part of an answer.
  std::chrono::milliseconds header_time{30'000};
  std::chrono::milliseconds body_time{120'000};
  std::chrono::milliseconds read_time{60'000};
  // Origins whose pages may ask and read the answers ("https://chat.example"): browsers are told
  // so.
  std::vector<std::string> origins;
};

// Throws Error(kInput) for a host that is no address.
void CheckAddress(const std::string& host);
// Throws Error(kInput) for text that no browser would send as an origin.
void CheckOrigin(std::string_view origin);

class HttpServer {
 public:
  // Called by the server's thread, and must not block it.
  using Handler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

  // Listens. Throws Error(kIo), Error(kInput) for a host that is no address.
  HttpServer(const HttpOptions& options, Handler handler);
  // Breaks all connections. A connection whose answer is complete first sends it, for up to
  // `read_time`.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  // Whether only this machine reaches the server.
  bool is_local() const;

  // Takes no new connections, and no new requests from open ones.
  void StopListening();
  // The number of open connections.
  int64_t connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::server
