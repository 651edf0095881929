// HttpTestServer, for tests only: a server on this machine whose answers, byte for byte, a function
// gives.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/open_file.h"

namespace godwit {

struct TestAnswer {
  std::string bytes;
  enum { kKeep, kClose } then = kKeep;
};

// An answer of "HTTP/1.1 200 OK", the length, and the body.
inline std::string OkAnswer(std::string_view body, std::string_view headers = "") {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{}\r\n{}", body.size(), headers,
                     body);
}

class HttpTestServer {
 public:
  // request: the request's lines and body. Called by a thread for each connection, one at a time.
  using Handler = std::function<TestAnswer(const std::string& request)>;

  explicit HttpTestServer(Handler handler)
      : handler_(std::move(handler)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    setenv("no_proxy", "*", 1);  // no proxy, even if the machine has one
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_.get(), any, size) != 0 || listen(listener_.get(), 16) != 0 ||
        getsockname(listener_.get(), any, &size) != 0) {
      throw Error(ErrorKind::kIo, "no port for a test's server");
    }
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { Accept(); });
  }
  ~HttpTestServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    accepting_.join();
    for (const FileDescriptor& connection : connections_) shutdown(connection.get(), SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
  }
  HttpTestServer(const HttpTestServer&) = delete;
  HttpTestServer& operator=(const HttpTestServer&) = delete;

  uint16_t port() const { return port_; }
  std::string Url(std::string_view path) const {
    return fmt::format("http://127.0.0.1:{}{}", port_, path);
  }
  int connections() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(connections_.size());
  }
  // All requests so far.
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void Accept() {
    for (int fd; (fd = accept(listener_.get(), nullptr, nullptr)) >= 0;) {
      const std::lock_guard lock(mutex_);
      connections_.emplace_back(fd);
      threads_.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int fd) {
    std::string heard;
    while (Hear(fd, heard)) {
      TestAnswer answer;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(std::exchange(heard, ""));
        answer = handler_(requests_.back());
      }
      for (std::string_view left = answer.bytes; !left.empty();) {
        const ssize_t sent = send(fd, left.data(), left.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        left.remove_prefix(static_cast<size_t>(sent));
      }
      if (answer.then == TestAnswer::kClose) shutdown(fd, SHUT_RDWR);
    }
  }

  // Reads a whole request.
  static bool Hear(int fd, std::string& heard) {
    size_t whole = std::string::npos;
    while (heard.size() < whole) {
      std::string bytes(size_t{1} << 16, '\0');
      const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
      if (count <= 0) return false;
      heard.append(bytes, 0, static_cast<size_t>(count));
      const size_t end = heard.find("\r\n\r\n");
      if (end == heard.npos) continue;
      constexpr std::string_view kLength = "Content-Length: ";
      const size_t length = heard.find(kLength);
      whole = end + 4;
      if (length < end) whole += std::strtoull(&heard[length + kLength.size()], nullptr, 10);
    }
    return true;
  }

  Handler handler_;
  FileDescriptor listener_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<FileDescriptor> connections_;
  std::vector<std::thread> threads_;
  std::vector<std::string> requests_;
  std::thread accepting_;
};

}  // namespace godwit
