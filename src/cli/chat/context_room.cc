#include "cli/chat/context_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace godwit::cli {
namespace {

// Commands of godwit chat that free context, without those that would be refused.
std::string Remedies(const ContextRoom& room) {
  std::string text = room.has_turns ? "/undo, /clear" : "";
  if (room.may_forget) {
    constexpr int64_t kSinks = 4;
    const int64_t window =
        std::max<int64_t>(1, std::min(room.limit_tokens, room.made_for) - kSinks);
    text += fmt::format(
        "{}/kv sinks:{}+{} (which forgets the text between the first and the last tokens)",
        text.empty() ? "" : " or ", kSinks, window);
  }
  return text;
}

}  // namespace

bool ContextRoom::endless() const { return limit_tokens == std::numeric_limits<int64_t>::max(); }

int64_t ContextRoom::percent() const {
  return endless() || limit_tokens < 1
             ? 0
             : static_cast<int64_t>(100.0 * static_cast<double>(used_tokens) /
                                    static_cast<double>(limit_tokens));
}

bool ContextRoom::scarce() const { return percent() >= 80; }

std::string DescribeScarcity(const ContextRoom& room) {
  const std::string remedies = Remedies(room);
  return fmt::format("the context is {} % full ({} of {} tokens){}{}", room.percent(),
                     room.used_tokens, room.limit_tokens,
                     remedies.empty() ? "" : "; make space with ", remedies);
}

std::string DescribeFull(const ContextRoom& room) {
  const std::string remedies = Remedies(room);
  return fmt::format("stopped: the context of {} tokens is full{}{}", room.limit_tokens,
                     remedies.empty() ? "" : "; make space with ", remedies);
}

std::string DescribeTooLong(const ContextRoom& room, int64_t tokens, bool or_more,
                            std::string_view files) {
  const std::string alone_name =
      files.empty() ? "the question" : fmt::format("the text of {}", files);
  const std::string last = files.empty() ? "this question" : std::string(files);
  std::string text =
      fmt::format("{} has {}{} tokens, which leaves no space for an answer in the context of {}",
                  room.has_turns ? "the conversation with " + last : alone_name,
                  or_more ? "more than " : "", tokens, room.limit_tokens);
  ContextRoom alone = room;
  alone.has_turns = room.has_turns && tokens - room.used_tokens < room.limit_tokens;
  std::string remedies = Remedies(alone);
  if (!files.empty()) remedies = "a part of it" + (remedies.empty() ? "" : " or " + remedies);
  if (tokens < room.made_for && room.limit_tokens < room.made_for) {
    remedies +=
        fmt::format("{}a restart with -c {}", remedies.empty() ? "" : " or ", room.made_for);
  }
  return text + (remedies.empty() ? "" : "; use " + remedies);
}

}  // namespace godwit::cli
