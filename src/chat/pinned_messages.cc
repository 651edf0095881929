#include "chat/pinned_messages.h"

#include "attention/policies/sinks_spec.h"
#include "base/error.h"

namespace godwit::chat {

std::string WithPinnedMessages(const std::string& spec, const Conversation& conversation,
                               std::optional<int32_t> sink_token) {
  constexpr std::string_view kSinks = "sinks:";
  if (!spec.starts_with(kSinks)) return spec;
  SinksSpec sinks = ParseSinksSpec(std::string_view(spec).substr(kSinks.size()));
  if (sinks.pin == 0) return spec;
  sinks.pin = conversation.MessageEnd(sinks.pin);
  const auto prompt = conversation.prompt();
  if (sink_token && !prompt.empty() && prompt.front() != *sink_token) ++sinks.pin;
  if (sinks.rolling() < 1) {
    Throw(ErrorKind::kInput,
          "{} pins whole messages, here the first {} tokens, in a cache of {}: nothing is left for "
          "the window",
          spec, sinks.pin, sinks.cache());
  }
  return sinks.ToString();
}

}  // namespace godwit::chat
