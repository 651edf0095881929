// Client, for tests: the other side of a connection.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/open_file.h"

namespace godwit::server {

// A client that sends the bytes of a test. Signals, such as a fuzzer's clock, do not disturb it.
class Client {
 public:
  // Each client has its own local address: one address has ports for 28,000 connections a minute.
  explicit Client(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    static std::atomic<uint32_t> clients = 0;
    const auto call = [&](auto action, uint32_t host, uint16_t at) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(at);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
      return action(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    };
    connected_ = call(bind, clients++ % 0xffff00, 0) == 0 &&
                 (call(connect, 0, port) == 0 || (errno == EINTR && IsConnected()));
  }

  bool connected() const { return connected_; }

  void Say(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent =
          Whole([&] { return send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL); });
      if (sent <= 0) return;
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // The received text up to and with `expected`, or up to the connection's end.
  std::string ReceiveUntil(std::string_view expected) {
    size_t from = 0, at;
    while ((at = received_.find(expected, from)) == received_.npos) {
      from = received_.size() - std::min(received_.size(), expected.size());
      if (!ReceiveMore()) return std::exchange(received_, "");
    }
    std::string heard = received_.substr(0, at + expected.size());
    received_.erase(0, heard.size());
    return heard;
  }
  std::string ReceiveAll() {
    while (ReceiveMore()) continue;
    return std::exchange(received_, "");
  }

  void CloseSending() { shutdown(socket_.get(), SHUT_WR); }

 private:
  template <typename Call>
  static ssize_t Whole(Call call) {
    ssize_t result;
    do {
      result = call();
    } while (result < 0 && errno == EINTR);
    return result;
  }

  // An interrupted connect goes on without its caller.
  bool IsConnected() const {
    pollfd waiting{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    return Whole([&] { return poll(&waiting, 1, -1); }) == 1 && (waiting.revents & POLLERR) == 0;
  }

  bool ReceiveMore() {
    std::vector<char> bytes(1 << 16);
    const ssize_t heard = Whole([&] { return recv(socket_.get(), bytes.data(), bytes.size(), 0); });
    if (heard > 0) received_.append(bytes.data(), static_cast<size_t>(heard));
    return heard > 0;
  }

  FileDescriptor socket_;
  bool connected_ = false;
  std::string received_;
};

}  // namespace godwit::server
