#include "server/waiting_reply.h"

#include <fmt/format.h>

namespace godwit::server {

void WaitingReply::Comment(std::string_view text) {
  Begin("text/event-stream");
  reply_->Write(fmt::format(": {}\n\n", text));
}

void WaitingReply::Send(int status, std::string_view content_type, std::string_view body,
                        Headers headers) {
  if (!begun_) return reply_->Send(status, content_type, body, headers);
  const char* const event = words_ == ErrorWords::kAnthropic ? "event: error\n" : "";
  reply_->Write(fmt::format("{}data: {}\n\n", event, body));
  reply_->End();
}

void WaitingReply::Begin(std::string_view content_type) {
  if (!begun_.exchange(true)) reply_->Begin(content_type);
}

}  // namespace godwit::server
