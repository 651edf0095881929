#include "chat/pinned_messages.h"

#include "attention/policies/sinks_spec.h"
#include "base/error.h"

namespace godwit::chat {

bool KeepsFirstAndLast(const std::string& spec) { return FindSinksSpec(spec).has_value(); }

std::string WithPinnedMessages(const std::string& spec, const Conversation& conversation,
                               std::optional<int32_t> sink_token) {
  const auto found = FindSinksSpec(spec);
  if (!found || found->pin == 0) return spec;
  SinksSpec sinks = *found;
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
