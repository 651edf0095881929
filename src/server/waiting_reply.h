// WaitingReply: a reply whose stream may begin before its answer, with comments that tell a client
// what it waits for. Thread-safe as the reply that it writes to.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>

#include "server/error_body.h"
#include "server/http_server.h"

namespace godwit::server {

class WaitingReply : public HttpReply {
 public:
  WaitingReply(std::shared_ptr<HttpReply> reply, ErrorWords words)
      : reply_(std::move(reply)), words_(words) {}

  // Begins the stream, unless that was done. Before the answer, by one thread.
  void Comment(std::string_view text);

  // Behind a comment, a body becomes the last event: an error, as only errors come whole then.
  void Send(int status, std::string_view content_type, std::string_view body,
            Headers headers) override;
  void Begin(std::string_view content_type) override;
  void Write(std::string_view piece) override { reply_->Write(piece); }
  void End() override { reply_->End(); }
  const CancelToken& gone() const override { return reply_->gone(); }

 private:
  const std::shared_ptr<HttpReply> reply_;
  const ErrorWords words_;
  std::atomic<bool> begun_ = false;
};

}  // namespace godwit::server
