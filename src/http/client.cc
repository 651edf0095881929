#include "http/client.h"

#include <algorithm>
#include <array>
#include <exception>
#include <system_error>

#include "base/ascii.h"
#include "base/quote.h"
#include "base/split_text.h"
#include "http/curl_library.h"
#include "http/url.h"

namespace godwit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxHeaderBytes = size_t{1} << 20;
// The most bytes of an unneeded body to read: more cost more than another connection.
constexpr int64_t kMaxUnreadBytes = 64 << 10;
constexpr int kLookMs = 50;

struct EasyDeleter {
  void operator()(CURL* easy) const { Curl().easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { Curl().multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { Curl().slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

void Append(HeaderList& list, const std::string& line) {
  curl_slist* longer = Curl().slist_append(list.get(), line.c_str());
  if (longer == nullptr)
    throw Error(ErrorKind::kMemory, "not enough memory for the headers of a request");
  (void)list.release();
  list.reset(longer);
}

bool IsToken(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7f &&
           std::string_view("()<>@,;:\\\"/[]?={}").find(static_cast<char>(c)) ==
               std::string_view::npos;
  });
}

bool IsHeaderValue(std::string_view value) {
  return std::none_of(value.begin(), value.end(),
                      [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; });
}

// Whether a header may also go to another host.
bool IsForAnyHost(std::string_view name) {
  const std::string lower = Lower(name);
  return lower == "accept" || lower == "range" || lower == "user-agent";
}

HeaderList HeaderLines(const HttpRequest& request, bool same_origin) {
  HeaderList lines;
  Append(lines, "Expect:");  // or libcurl would wait a second before a long body
  for (const auto& [name, value] : request.headers) {
    if (!IsToken(name) || !IsHeaderValue(value)) {
      Throw(ErrorKind::kInput,
            "the header {} cannot be sent: expected a name without blanks and a "
            "value on one line",
            Quote(name));
    }
    if (!same_origin && !IsForAnyHost(name)) continue;
    // libcurl writes "Name;" as a header without a value, and omits a header "Name:".
    Append(lines, value.empty() ? name + ";" : name + ": " + value);
  }
  if (!IsHeaderValue(request.bearer_token)) {
    throw Error(ErrorKind::kInput, "the token cannot be sent: expected one line of characters");
  }
  if (same_origin && !request.bearer_token.empty()) {
    Append(lines, "Authorization: Bearer " + request.bearer_token);
  }
  return lines;
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// One request and its answer, while libcurl works on it.
class Exchange {
 public:
  Exchange(CURL* easy, HttpResponse& response, const HttpCallbacks& callbacks,
           const HttpClientOptions& options, bool may_redirect)
      : easy_(easy),
        response_(response),
        callbacks_(callbacks),
        options_(options),
        may_redirect_(may_redirect) {
    Curl().easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeaderLine);
    Curl().easy_setopt(easy, CURLOPT_HEADERDATA, this);
    Curl().easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBytes);
    Curl().easy_setopt(easy, CURLOPT_WRITEDATA, this);
  }

  bool redirected() const { return redirected_; }
  bool has_headers() const { return has_headers_; }
  // Whether this side ended the transfer, not the other.
  bool ended_here() const { return response_.stopped || failure_ || skips_body_; }
  const std::exception_ptr& failure() const { return failure_; }

  // The time of the last byte, sent bytes included.
  Clock::time_point last_byte() {
    curl_off_t sent = 0;
    Curl().easy_getinfo(easy_, CURLINFO_SIZE_UPLOAD_T, &sent);
    if (sent != sent_) {
      sent_ = sent;
      last_byte_ = Clock::now();
    }
    return last_byte_;
  }

 private:
  // Runs action and returns whether the transfer continues. No exception may pass through libcurl,
  // which is C.
  template <typename Action>
  size_t Guarded(size_t bytes, Action action) {
    last_byte_ = Clock::now();
    try {
      if (action()) return bytes;
    } catch (...) {
      failure_ = std::current_exception();
    }
    return bytes + 1;  // any other count than given is an error to libcurl
  }

  static size_t OnHeaderLine(char* text, size_t size, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    return exchange.Guarded(
        size * count, [&] { return exchange.HeaderLine(std::string_view(text, size * count)); });
  }

  static size_t OnBytes(char* text, size_t size, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    return exchange.Guarded(size * count,
                            [&] { return exchange.Bytes(std::string_view(text, size * count)); });
  }

  bool HeaderLine(std::string_view line) {
    if (has_headers_) return true;  // trailers behind the body
    header_bytes_ += line.size();
    if (header_bytes_ > kMaxHeaderBytes) {
      Throw(ErrorKind::kFormat, "the headers of an answer take more than {} bytes",
            kMaxHeaderBytes);
    }
    line = Stripped(line);
    if (line.empty()) return Headers();
    if (line.starts_with("HTTP/")) {  // after one of 1xx
      response_.headers.clear();
      return true;
    }
    const size_t colon = line.find(':');
    if (colon != line.npos) {
      response_.headers.emplace_back(Stripped(line.substr(0, colon)),
                                     Stripped(line.substr(colon + 1)));
    }
    return true;
  }

  bool Headers() {
    long status = 0;
    Curl().easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) return true;
    has_headers_ = true;
    response_.status = static_cast<int>(status);
    redirected_ =
        may_redirect_ && IsRedirect(response_.status) && response_.Header("Location") != nullptr;
    if (redirected_ || !callbacks_.on_headers) return true;
    response_.stopped = !callbacks_.on_headers(response_);
    return !response_.stopped;
  }

  bool Bytes(std::string_view bytes) {
    if (redirected_) {
      unread_bytes_ += static_cast<int64_t>(bytes.size());
      skips_body_ = unread_bytes_ > kMaxUnreadBytes;
      return !skips_body_;
    }
    response_.body_bytes += static_cast<int64_t>(bytes.size());
    if (callbacks_.on_body) {
      response_.stopped = !callbacks_.on_body(bytes);
      return !response_.stopped;
    }
    if (bytes.size() > options_.max_body_bytes - response_.body.size()) {
      Throw(ErrorKind::kFormat, "{}: the answer is longer than {} bytes, the most that is accepted",
            HostAndPort(OriginOf(response_.url)), options_.max_body_bytes);
    }
    response_.body += bytes;
    return true;
  }

  CURL* easy_;
  HttpResponse& response_;
  const HttpCallbacks& callbacks_;
  const HttpClientOptions& options_;
  bool may_redirect_;
  bool redirected_ = false;
  bool has_headers_ = false;
  bool skips_body_ = false;
  size_t header_bytes_ = 0;
  int64_t unread_bytes_ = 0;
  curl_off_t sent_ = 0;
  Clock::time_point last_byte_ = Clock::now();
  std::exception_ptr failure_;
};

std::string Seconds(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

}  // namespace

const std::string* FindHeader(const HttpHeaders& headers, std::string_view name) {
  const std::string lower = Lower(name);
  for (const auto& [key, value] : headers) {
    if (Lower(key) == lower) return &value;
  }
  return nullptr;
}

const std::string* HttpResponse::Header(std::string_view name) const {
  return FindHeader(headers, name);
}

class HttpClient::Impl {
 public:
  explicit Impl(const HttpClientOptions& options) : options_(options) {
    multi_.reset(Curl().multi_init());
    easy_.reset(Curl().easy_init());
    if (multi_ == nullptr || easy_ == nullptr) {
      throw Error(ErrorKind::kMemory, "not enough memory for connections");
    }
  }

  HttpResponse Send(HttpRequest request, const HttpCallbacks& callbacks) {
    const HttpOrigin first = OriginOf(request.url);
    HttpOrigin origin = first;
    HttpResponse response;
    for (;;) {
      response.url = request.url;
      const bool may_redirect =
          request.max_redirects > 0 && (request.method == "GET" || request.method == "HEAD");
      if (!SendOne(request, origin == first, origin, may_redirect, callbacks, response)) {
        return response;
      }
      // libcurl resolves a relative URL.
      const char* next = nullptr;
      Curl().easy_getinfo(easy_.get(), CURLINFO_REDIRECT_URL, &next);
      if (static_cast<int>(response.redirects.size()) == request.max_redirects) {
        Throw(ErrorKind::kFormat, "{}: more than {} redirects", HostAndPort(first),
              request.max_redirects);
      }
      if (next == nullptr) {
        Throw(ErrorKind::kFormat, "{}: found a redirect to {}, expected a URL", HostAndPort(origin),
              Quote(*response.Header("Location")));
      }
      response.redirects.push_back(
          {std::move(response.url), response.status, std::exchange(response.headers, {})});
      request.url = next;
      const HttpOrigin before = std::exchange(origin, OriginOf(request.url));
      if (before.scheme == "https" && origin.scheme != "https") {
        Throw(ErrorKind::kFormat, "{}: found a redirect from https to http, expected https",
              HostAndPort(before));
      }
    }
  }

 private:
  // Sends one request. Returns whether a redirect is to be followed.
  bool SendOne(const HttpRequest& request, bool same_origin, const HttpOrigin& origin,
               bool may_redirect, const HttpCallbacks& callbacks, HttpResponse& response) {
    const HeaderList headers = HeaderLines(request, same_origin);
    Curl().easy_reset(easy_.get());
    SetOptions(request, headers.get());
    Exchange exchange(easy_.get(), response, callbacks, options_, may_redirect);
    const CURLcode code = Transfer(exchange, origin);
    if (exchange.failure()) std::rethrow_exception(exchange.failure());
    if (code != CURLE_OK && !exchange.ended_here()) ThrowFailed(code, origin, response);
    if (!exchange.has_headers()) {
      Throw(ErrorKind::kFormat, "{}: the answer is not HTTP", HostAndPort(origin));
    }
    return exchange.redirected();
  }

  void SetOptions(const HttpRequest& request, curl_slist* headers) {
    const auto set = [&](CURLoption option, auto value) {
      if (Curl().easy_setopt(easy_.get(), option, value) != CURLE_OK) {
        Throw(ErrorKind::kIo, "libcurl refuses option {}", static_cast<int>(option));
      }
    };
    if (!IsToken(request.method)) {
      Throw(ErrorKind::kInput, "{} is no HTTP method", Quote(request.method));
    }
    error_text_.fill(0);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, error_text_.data());
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::max<int64_t>(options_.connect_time.count(), 1)));
    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET") {
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    if (request.method == "POST" || request.method == "PUT" || request.method == "PATCH") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDS, request.body.data());
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    } else if (!request.body.empty()) {
      Throw(ErrorKind::kInput, "a {} request has a body, expected none", request.method);
    }
  }

  // Uses the multi interface: the easy one checks our state only every second or so.
  CURLcode Transfer(Exchange& exchange, const HttpOrigin& origin) {
    struct Added {
      Added(CURLM* multi, CURL* easy) : multi(multi), easy(easy) {
        Curl().multi_add_handle(multi, easy);
      }
      ~Added() { Curl().multi_remove_handle(multi, easy); }
      CURLM* multi;
      CURL* easy;
    } const added(multi_.get(), easy_.get());
    for (int running = 1;;) {
      if (options_.cancel != nullptr) options_.cancel->ThrowIfCancelled();
      if (Curl().multi_perform(multi_.get(), &running) != CURLM_OK) return CURLE_FAILED_INIT;
      int left = 0;
      while (const CURLMsg* message = Curl().multi_info_read(multi_.get(), &left)) {
        if (message->msg == CURLMSG_DONE) return message->data.result;
      }
      if (running == 0) return CURLE_FAILED_INIT;
      const auto idle = Clock::now() - exchange.last_byte();
      if (IsConnected() && idle > options_.idle_time) {
        throw HttpError(
            ErrorKind::kIo,
            fmt::format("{} sent nothing for {}", HostAndPort(origin), Seconds(options_.idle_time)),
            /*is_transient=*/true);
      }
      Curl().multi_poll(multi_.get(), nullptr, 0, kLookMs, nullptr);
    }
  }

  // Whether the connection stands. Until then libcurl checks connect_time.
  bool IsConnected() const {
    curl_off_t after = 0;
    Curl().easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &after);
    return after > 0;
  }

  [[noreturn]] void ThrowFailed(CURLcode code, const HttpOrigin& origin,
                                const HttpResponse& response) const {
    const std::string host = HostAndPort(origin);
    const char* known = error_text_[0] != 0 ? error_text_.data() : Curl().easy_strerror(code);
    const std::string reason = Printable(known);
    std::string message = fmt::format("{}: {}", host, reason);
    bool is_transient = true;
    switch (code) {
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
        message = fmt::format("cannot find the address of {}: no such host, or no network", host);
        break;
      case CURLE_COULDNT_CONNECT:
        message = fmt::format("{} accepts no connection: {}", host, SystemReason(reason));
        break;
      case CURLE_OPERATION_TIMEDOUT:
        message =
            fmt::format("cannot connect to {} within {}", host, Seconds(options_.connect_time));
        break;
      case CURLE_PARTIAL_FILE:
      case CURLE_RECV_ERROR:
      case CURLE_SEND_ERROR:
      case CURLE_GOT_NOTHING:
      case CURLE_HTTP2:
      case CURLE_HTTP2_STREAM:
        message = fmt::format("{} cut the connection after {} of its answer: {}", host,
                              BytesOf(response), reason);
        break;
      case CURLE_SSL_CONNECT_ERROR:
        message = fmt::format("cannot make a secure connection to {}: {}", host, reason);
        break;
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_ISSUER_ERROR:
        message = fmt::format("the certificate of {} cannot be trusted: {}", host, reason);
        is_transient = false;
        break;
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_WEIRD_SERVER_REPLY:
        Throw(ErrorKind::kFormat, "{}: the answer is not HTTP: {}", host, reason);
      default:
        is_transient = false;
    }
    throw HttpError(ErrorKind::kIo, message, is_transient);
  }

  // The reason of the last system call that failed.
  std::string SystemReason(const std::string& otherwise) const {
    long error = 0;
    Curl().easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &error);
    return error == 0 ? otherwise : std::generic_category().message(static_cast<int>(error));
  }

  std::string BytesOf(const HttpResponse& response) const {
    curl_off_t all = -1;
    Curl().easy_getinfo(easy_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &all);
    return all < 0 ? fmt::format("{} bytes", response.body_bytes)
                   : fmt::format("{} of {} bytes", response.body_bytes, all);
  }

  HttpClientOptions options_;
  std::unique_ptr<CURLM, MultiDeleter> multi_;
  // Destroyed before the members above: it may still be among those of multi_.
  std::unique_ptr<CURL, EasyDeleter> easy_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

HttpClient::HttpClient(const HttpClientOptions& options) : impl_(std::make_unique<Impl>(options)) {}

HttpClient::~HttpClient() = default;

HttpResponse HttpClient::Send(const HttpRequest& request, const HttpCallbacks& callbacks) {
  return impl_->Send(request, callbacks);
}

}  // namespace godwit
