#include "server/http_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cctype>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "server/error_body.h"

namespace godwit::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

std::string Head(int status, std::string_view content_type, Headers headers, bool keep_alive) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(status));
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nServer: godwit\r\nContent-Type: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: {}\r\n",
      status, std::string_view(reason.data(), reason.size()), content_type,
      keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
  return head;
}

// Headers that tell a browser that a page may ask.
std::string AllowLines(std::string_view origin) {
  return fmt::format("Access-Control-Allow-Origin: {}\r\nVary: Origin\r\n", origin);
}

// Whether a line of these whole header lines continues in the next one.
bool HasFoldedLine(std::string_view lines) {
  return lines.find("\r\n ") != lines.npos || lines.find("\r\n\t") != lines.npos;
}

struct Refusal {
  int status;
  std::string_view message;
};

// Refuses a header that two readers may read differently. A proxy in front could read it in the
// other way, and this server would take somebody's body for the next request.
std::optional<Refusal> RefusalOf(const http::fields& header, bool is_old) {
  const auto count = [&](http::field name) { return header.count(name); };
  if (count(http::field::host) > 1 || (!is_old && count(http::field::host) == 0)) {
    return Refusal{400, "expected one Host header"};
  }
  if (count(http::field::transfer_encoding) > 0) {
    if (is_old) return Refusal{400, "expected no Transfer-Encoding in HTTP/1.0"};
    if (count(http::field::transfer_encoding) > 1 ||
        !beast::iequals(header[http::field::transfer_encoding], "chunked")) {
      return Refusal{501, "expected Transfer-Encoding chunked or none"};
    }
  }
  const auto [begin, end] = header.equal_range(http::field::expect);
  const auto is_known = [](const auto& field) {
    return beast::iequals(field.value(), "100-continue");
  };
  if (!is_old && !std::all_of(begin, end, is_known)) {
    return Refusal{417, "expected Expect 100-continue or none"};
  }
  return std::nullopt;
}

asio::ip::address ParseAddress(const std::string& host) {
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return address;
  Throw(ErrorKind::kInput, "expected an address to listen on, such as 127.0.0.1, found {}",
        Quote(host));
}

}  // namespace

void CheckAddress(const std::string& host) { ParseAddress(host); }

void CheckOrigin(std::string_view origin) {
  const size_t at = origin.find("://");
  const auto is_of_host = [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
  };
  if (at != origin.npos && at > 0 && at + 3 < origin.size() &&
      std::ranges::all_of(origin.substr(at + 3), is_of_host))
    return;
  Throw(ErrorKind::kInput, "expected a site such as https://chat.example, without a path, found {}",
        Quote(origin));
}

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, Handler handler)
      : options_(options), handler_(std::move(handler)), acceptor_(context_) {
    Listen();
    Accept();
    thread_ = std::thread([this] { context_.run(); });
  }

  ~Impl() {
    StopListening();
    asio::post(context_, [this] {
      for (const auto& connection : std::set(connections_)) connection->BreakUnlessItSends();
    });
    {
      std::unique_lock lock(mutex_);
      no_replies_.wait(lock, [&] { return replies_ == 0; });
    }
    asio::post(context_, [this] { work_.reset(); });
    thread_.join();
  }

  uint16_t port() const { return port_; }
  bool is_local() const { return is_local_; }
  int64_t connections() const { return count_.load(std::memory_order_relaxed); }

  void StopListening() {
    asio::post(context_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      stopping_ = true;
      for (const auto& connection : std::set(connections_)) connection->BreakIfIdle();
    });
  }

 private:
  class Connection;

  // Hands an answer to its connection. Its calls reach the server's thread in order.
  class Reply : public HttpReply {
   public:
    // allow_lines: lines of every head. head_alone: no body is sent.
    Reply(Impl& server, std::shared_ptr<Connection> connection, bool head_alone,
          std::string allow_lines = "")
        : server_(server),
          connection_(std::move(connection)),
          head_alone_(head_alone),
          allow_lines_(std::move(allow_lines)) {
      const std::lock_guard lock(server_.mutex_);
      ++server_.replies_;
    }
    // The connection ends on the server's thread, where all its work happens.
    ~Reply() override {
      asio::post(server_.context_, [connection = std::move(connection_), ended = ended_] {
        if (!ended) connection->Break();
      });
      const std::lock_guard lock(server_.mutex_);
      if (--server_.replies_ == 0) server_.no_replies_.notify_all();
    }

    void Send(int status, std::string_view content_type, std::string_view body,
              Headers headers) override {
      std::string text = HeadOf(status, content_type, headers);
      text += fmt::format("Content-Length: {}\r\n\r\n", body.size());
      if (!head_alone_) text += body;
      Put(std::move(text));
      Finish();
    }

    void Begin(std::string_view content_type) override {
      Put(HeadOf(200, content_type, {}) +
          (connection_->takes_chunks() ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n"));
    }

    void Write(std::string_view piece) override {
      if (piece.empty() || head_alone_) return;  // an empty chunk would be the end
      Put(connection_->takes_chunks() ? fmt::format("{:x}\r\n{}\r\n", piece.size(), piece)
                                      : std::string(piece));
      connection_->WaitForReader();
    }

    void End() override {
      if (connection_->takes_chunks() && !head_alone_) Put("0\r\n\r\n");
      Finish();
    }

    const CancelToken& gone() const override { return connection_->gone(); }

   private:
    std::string HeadOf(int status, std::string_view content_type, Headers headers) const {
      return Head(status, content_type, headers, connection_->keeps_alive()) + allow_lines_;
    }
    template <typename Action>
    void PostAction(Action action) {
      asio::post(server_.context_, [connection = connection_,
                                    action = std::move(action)]() mutable { action(*connection); });
    }
    void Put(std::string text) {
      connection_->Count(text.size());
      PostAction([text = std::move(text)](Connection& connection) mutable {
        connection.Put(std::move(text));
      });
    }
    void Finish() {
      ended_ = true;
      PostAction([](Connection& connection) { connection.Finish(); });
    }

    Impl& server_;
    std::shared_ptr<Connection> connection_;
    bool head_alone_;
    std::string allow_lines_;
    bool ended_ = false;
  };

  // Runs on the server's thread, except methods that say otherwise.
  class Connection : public std::enable_shared_from_this<Connection> {
   public:
    Connection(Impl& server, tcp::socket socket)
        : server_(server),
          stream_(std::move(socket)),
          buffer_(kBufferBytes),
          look_(stream_.get_executor()) {}

    void ReadRequest() {
      if (server_.stopping_) return Break();
      ReserveBodyBytes(0);
      waits_at_ = server_.waiting_.insert(server_.waiting_.end(), this);
      state_ = State::kIdle;
      parser_.emplace();
      parser_->header_limit(server_.options_.max_header_bytes);
      parser_->body_limit(server_.options_.max_body_bytes);
      header_bytes_ = 0;
      stream_.expires_after(server_.options_.header_time);
      ReadHeader();
    }

    void Put(std::string text) {
      if (state_ == State::kBroken) return Uncount(text.size());
      unsent_.push_back(std::move(text));
      if (unsent_.size() == 1) SendNext();
    }

    void Finish() {
      finished_ = true;
      if (unsent_.empty()) Ended();
    }

    void Break() {
      if (std::exchange(state_, State::kBroken) == State::kBroken) return;
      error_code ignored;
      stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
      stream_.close();
      look_.cancel();
      {
        const std::lock_guard lock(mutex_);
        gone_.Cancel();
      }
      changed_.notify_all();
      ReserveBodyBytes(0);
      WaitNoMore();
      server_.Remove(shared_from_this());
    }

    void BreakIfIdle() {
      if (state_ == State::kIdle) Break();
    }

    // Breaks the connection, unless a whole answer is still being sent.
    void BreakUnlessItSends() {
      if (state_ != State::kAnswering || !finished_ || unsent_.empty()) Break();
    }

    // The methods down to WaitForReader may be called by any thread.
    const CancelToken& gone() const { return gone_; }
    bool keeps_alive() const { return keeps_alive_; }
    bool takes_chunks() const { return takes_chunks_; }
    void Count(size_t bytes) {
      const std::lock_guard lock(mutex_);
      waiting_bytes_ += bytes;
    }
    void WaitForReader() {
      if (server_.context_.get_executor().running_in_this_thread()) return;
      std::unique_lock lock(mutex_);
      changed_.wait(
          lock, [&] { return waiting_bytes_ <= HttpReply::kMaxUnsentBytes || gone_.cancelled(); });
    }

   private:
    enum class State { kIdle, kReading, kAnswering, kBroken };
    // The most bytes that are read ahead of a client: a header and the bytes behind it.
    static constexpr size_t kBufferBytes = 64 << 10;
    static constexpr size_t kHeaderBytes = 4 << 10;  // one read of a header
    static constexpr std::chrono::milliseconds kLookTime{200};
    static constexpr std::chrono::seconds kLingerTime{2};

    // Reads line by line. The parser joins folded lines silently, and it limits the bytes of one
    // call but not of the whole header.
    void ReadHeader() {
      error_code error = http::error::need_more;
      if (buffer_.size() > 0) {
        const auto bytes = buffer_.cdata();
        const size_t used = parser_->put(bytes, error);
        const bool folded = HasFoldedLine({static_cast<const char*>(bytes.data()), used});
        buffer_.consume(used);
        header_bytes_ += used;
        if (folded) return Refuse(400, "expected each header on one line");
      }
      if (header_bytes_ + buffer_.size() > server_.options_.max_header_bytes &&
          !parser_->is_header_done()) {
        error = http::error::header_limit;
      }
      if (error && error != http::error::need_more) return Refuse(error);
      if (parser_->is_header_done()) return OnHeader();
      stream_.async_read_some(buffer_.prepare(kHeaderBytes),
                              [self = shared_from_this()](error_code wrong, size_t bytes) {
                                if (self->state_ == State::kBroken) return;
                                if (wrong) return self->Break();
                                self->buffer_.commit(bytes);
                                self->ReadHeader();
                              });
    }

    void OnHeader() {
      state_ = State::kReading;
      const bool is_old = parser_->get().version() < 11;
      if (const auto refusal = RefusalOf(parser_->get(), is_old)) {
        return Refuse(refusal->status, refusal->message);
      }
      stream_.expires_after(server_.options_.body_time);
      // A chunked body may become as large as any.
      const auto length = parser_->content_length();
      const uint64_t most = parser_->chunked() ? server_.options_.max_body_bytes : 0;
      if (!ReserveBodyBytes(length ? *length : most)) {
        return Refuse(503, "the running requests take too much memory: try again later");
      }
      if (!is_old && parser_->get().count(http::field::expect) > 0) {
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        return asio::async_write(stream_, asio::buffer(kContinue),
                                 [self = shared_from_this()](error_code wrong, size_t) {
                                   wrong ? self->Break() : self->ReadBody();
                                 });
      }
      ReadBody();
    }

    // Reserves the bytes of a body, in place of the earlier reservation. False: too few are free,
    // and nothing is reserved now.
    bool ReserveBodyBytes(uint64_t bytes) {
      server_.bodies_bytes_ -= std::exchange(reserved_bytes_, 0);
      if (bytes > server_.options_.max_bodies_bytes - server_.bodies_bytes_) return false;
      server_.bodies_bytes_ += bytes;
      reserved_bytes_ = bytes;
      return true;
    }

    void ReadBody() {
      http::async_read(stream_, buffer_, *parser_,
                       [self = shared_from_this()](error_code error, size_t) {
                         if (self->state_ == State::kBroken) return;
                         error ? self->Refuse(error) : self->Answer();
                       });
    }

    // Ends the wait for a request on this connection.
    void WaitNoMore() {
      if (waits_at_) server_.waiting_.erase(*waits_at_);
      waits_at_.reset();
    }

    void Answer() {
      state_ = State::kAnswering;
      WaitNoMore();
      finished_ = false;
      keeps_alive_ = parser_->get().keep_alive() && !server_.stopping_;
      const auto text = [](auto view) { return std::string(view.data(), view.size()); };
      auto& message = parser_->get();
      takes_chunks_ = message.version() >= 11;
      if (!takes_chunks_) keeps_alive_ = false;
      HttpRequest request{.method = text(message.method_string()),
                          .path = text(message.target()),
                          .query = {},
                          .host = text(message[http::field::host]),
                          .origin = text(message[http::field::origin]),
                          .allowed_origin = false,
                          .authorization = text(message[http::field::authorization]),
                          .api_key = text(message["X-Api-Key"]),
                          .last_event_id = text(message["Last-Event-ID"]),
                          .body = std::move(message.body())};
      if (const size_t mark = request.path.find('?'); mark != request.path.npos) {
        request.query = request.path.substr(mark + 1);
        request.path.resize(mark);
      }
      const auto& origins = server_.options_.origins;
      request.allowed_origin = std::ranges::find(origins, request.origin) != origins.end();
      // The handler sees a GET for a HEAD request; the reply sends the head alone.
      const bool head_alone = message.method() == http::verb::head;
      if (head_alone) request.method = "GET";
      auto reply =
          std::make_shared<Reply>(server_, shared_from_this(), head_alone,
                                  request.allowed_origin ? AllowLines(request.origin) : "");
      stream_.expires_never();
      WatchForEnd();
      if (request.allowed_origin && request.method == "OPTIONS") return AnswerPreflight(*reply);
      server_.handler_(std::move(request), std::move(reply));
    }

    // Answers a browser's preflight request.
    static void AnswerPreflight(HttpReply& reply) {
      static constexpr std::pair<std::string_view, std::string_view> kMayAsk[] = {
          {"Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE"},
          {"Access-Control-Allow-Headers",
           "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Last-Event-ID"},
          {"Access-Control-Max-Age", "600"}};
      reply.Send(200, "text/plain", "", kMayAsk);
    }

    // Notices the end of a client that waits for its answer. Such a client sends nothing but its
    // end.
    void WatchForEnd() {
      stream_.socket().async_wait(
          tcp::socket::wait_read, [self = shared_from_this(), answer = answers_](error_code error) {
            if (error || self->state_ != State::kAnswering || self->answers_ != answer) return;
            char byte;
            error_code wrong;
            self->stream_.socket().non_blocking(true, wrong);
            const size_t read = self->stream_.socket().receive(asio::buffer(&byte, 1),
                                                               tcp::socket::message_peek, wrong);
            // The request's own bytes caused the event; they had been read by then.
            if (wrong == asio::error::would_block) return self->WatchForEnd();
            if (wrong || read == 0) return self->Break();
            self->LookForEnd();
          });
    }

    // Polls for the client's end. Behind unread bytes, an end makes nothing newly readable.
    void LookForEnd() {
      look_.expires_after(kLookTime);
      look_.async_wait([self = shared_from_this(), answer = answers_](error_code error) {
        if (error || self->state_ != State::kAnswering || self->answers_ != answer) return;
        pollfd file{
            .fd = self->stream_.socket().native_handle(), .events = POLLRDHUP, .revents = 0};
        poll(&file, 1, 0);
        file.revents == 0 ? self->LookForEnd() : self->Break();
      });
    }

    void SendNext() {
      stream_.expires_after(server_.options_.read_time);
      asio::async_write(stream_, asio::buffer(unsent_.front()),
                        [self = shared_from_this()](error_code error, size_t) {
                          self->Uncount(self->unsent_.front().size());
                          self->unsent_.pop_front();
                          if (error) return self->Break();
                          self->stream_.expires_never();
                          if (!self->unsent_.empty()) return self->SendNext();
                          if (self->finished_) self->Ended();
                        });
    }

    void Uncount(size_t bytes) {
      {
        const std::lock_guard lock(mutex_);
        waiting_bytes_ -= bytes;
      }
      changed_.notify_all();
    }

    void Ended() {
      if (state_ != State::kAnswering) return Break();
      ++answers_;
      error_code ignored;
      stream_.socket().cancel(ignored);  // WatchForEnd
      look_.cancel();
      if (keeps_alive_) return ReadRequest();
      // A client that still sends would not see the answer if the connection were closed at once.
      stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      stream_.expires_after(kLingerTime);
      ReadToEnd();
    }

    void ReadToEnd() {
      buffer_.clear();
      stream_.async_read_some(buffer_.prepare(kBufferBytes),
                              [self = shared_from_this()](error_code error, size_t) {
                                error ? self->Break() : self->ReadToEnd();
                              });
    }

    // Refuses a malformed request. A client that is gone or too slow gets no answer.
    void Refuse(error_code error) {
      const auto& of_http = http::make_error_code(http::error::bad_version).category();
      if (error.category() != of_http || error == http::error::end_of_stream ||
          error == http::error::partial_message) {
        return Break();
      }
      if (error == http::error::header_limit || error == http::error::buffer_overflow) {
        return Refuse(431, "the header of the request is too long");
      }
      if (error == http::error::body_limit) {
        return Refuse(413, "the body of the request is too long");
      }
      Refuse(400, "expected an HTTP request");
    }

    void Refuse(int status, std::string_view message) {
      keeps_alive_ = false;
      state_ = State::kAnswering;
      WaitNoMore();
      Reply(server_, shared_from_this(), parser_->get().method() == http::verb::head)
          .Send(status, "application/json", ErrorBody(status, message), {});
    }

    Impl& server_;
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    asio::steady_timer look_;
    size_t header_bytes_ = 0;  // of the header so far
    std::optional<http::request_parser<http::string_body>> parser_;
    State state_ = State::kIdle;
    std::deque<std::string> unsent_;
    bool finished_ = false;
    uint64_t reserved_bytes_ = 0;
    std::optional<std::list<Connection*>::iterator> waits_at_;
    std::atomic<bool> keeps_alive_ = true;
    std::atomic<bool> takes_chunks_ = true;
    int64_t answers_ = 0;
    CancelToken gone_;
    std::mutex mutex_;  // of the fields below
    std::condition_variable changed_;
    size_t waiting_bytes_ = 0;
  };

  void Listen() {
    error_code error;
    const auto address = ParseAddress(options_.host);
    is_local_ = address.is_loopback();
    const tcp::endpoint endpoint(address, options_.port);
    const auto require = [&](const char* action) {
      if (!error) return;
      Throw(ErrorKind::kIo, "cannot {} {} port {}: {}", action, options_.host, options_.port,
            error.message());
    };
    acceptor_.open(endpoint.protocol(), error);
    require("open");
    acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    acceptor_.bind(endpoint, error);
    require("listen on");
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
    require("listen on");
    port_ = acceptor_.local_endpoint(error).port();
  }

  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) {  // such as too many open files: retry later, without spinning
        BreakLongestWaiting();
        retry_.expires_after(std::chrono::milliseconds(100));
        return retry_.async_wait([this](error_code) { Accept(); });
      }
      Serve(std::move(socket));
      Accept();
    });
  }

  void Serve(tcp::socket socket) {
    error_code ignored;
    if (std::ssize(connections_) >= options_.max_connections && !BreakLongestWaiting()) {
      static constexpr std::string_view kBusy =
          "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n"
          "Connection: close\r\n\r\n";
      socket.non_blocking(true, ignored);
      socket.send(asio::buffer(kBusy), 0, ignored);
      return;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    const auto connection = std::make_shared<Connection>(*this, std::move(socket));
    connections_.insert(connection);
    count_ = std::ssize(connections_);
    connection->ReadRequest();
  }

  // Breaks the connection that has waited longest for a request, so that idle clients do not take
  // all places. False: none waits.
  bool BreakLongestWaiting() {
    if (waiting_.empty()) return false;
    waiting_.front()->Break();
    return true;
  }

  void Remove(const std::shared_ptr<Connection>& connection) {
    connections_.erase(connection);
    count_ = std::ssize(connections_);
  }

  HttpOptions options_;
  Handler handler_;
  asio::io_context context_{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_{
      asio::make_work_guard(context_)};
  tcp::acceptor acceptor_;
  asio::steady_timer retry_{context_};
  uint16_t port_ = 0;
  bool is_local_ = false;
  // Fields of the server's thread.
  std::set<std::shared_ptr<Connection>> connections_;
  std::list<Connection*> waiting_;  // those without a request, the longest wait first
  bool stopping_ = false;
  uint64_t bodies_bytes_ = 0;
  std::atomic<int64_t> count_ = 0;
  std::mutex mutex_;  // of the fields below
  std::condition_variable no_replies_;
  int64_t replies_ = 0;
  std::thread thread_;
};

HttpServer::HttpServer(const HttpOptions& options, Handler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const { return impl_->port(); }
bool HttpServer::is_local() const { return impl_->is_local(); }
void HttpServer::StopListening() { impl_->StopListening(); }
int64_t HttpServer::connections() const { return impl_->connections(); }

}  // namespace godwit::server
