#include "cli/chat/context_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace godwit::cli {
namespace {

// Commands of godwit chat that free context, without those that would be refused.
std::string Remedies(const ContextUsage& usage) {
  std::string text = usage.has_turns ? "/undo, /clear" : "";
  if (usage.may_forget) {
    constexpr int64_t kSinks = 4;
    const int64_t window =
        std::max<int64_t>(1, std::min(usage.limit_tokens, usage.made_for) - kSinks);
    text += fmt::format(
        "{}/kv sinks:{}+{} (which forgets the text between the first and the last tokens)",
        text.empty() ? "" : " or ", kSinks, window);
  }
  return text;
}

}  // namespace

bool ContextUsage::endless() const { return limit_tokens == std::numeric_limits<int64_t>::max(); }

int64_t ContextUsage::percent() const {
  return endless() || limit_tokens < 1
             ? 0
             : static_cast<int64_t>(100.0 * static_cast<double>(used_tokens) /
                                    static_cast<double>(limit_tokens));
}

bool ContextUsage::scarce() const { return percent() >= 80; }

std::string DescribeScarcity(const ContextUsage& usage) {
  const std::string remedies = Remedies(usage);
  return fmt::format("the context is {} % full ({} of {} tokens){}{}", usage.percent(),
                     usage.used_tokens, usage.limit_tokens,
                     remedies.empty() ? "" : "; make space with ", remedies);
}

std::string DescribeFull(const ContextUsage& usage) {
  const std::string remedies = Remedies(usage);
  return fmt::format("stopped: the context of {} tokens is full{}{}", usage.limit_tokens,
                     remedies.empty() ? "" : "; make space with ", remedies);
}

std::string DescribeTooLong(const ContextUsage& usage, int64_t tokens, bool or_more,
                            std::string_view files) {
  const std::string alone_name =
      files.empty() ? "the question" : fmt::format("the text of {}", files);
  const std::string last = files.empty() ? "this question" : std::string(files);
  std::string text =
      fmt::format("{} has {}{} tokens, which leaves no space for an answer in the context of {}",
                  usage.has_turns ? "the conversation with " + last : alone_name,
                  or_more ? "more than " : "", tokens, usage.limit_tokens);
  ContextUsage alone = usage;
  alone.has_turns = usage.has_turns && tokens - usage.used_tokens < usage.limit_tokens;
  std::string remedies = Remedies(alone);
  if (!files.empty()) remedies = "a part of it" + (remedies.empty() ? "" : " or " + remedies);
  if (tokens < usage.made_for && usage.limit_tokens < usage.made_for) {
    remedies +=
        fmt::format("{}a restart with -c {}", remedies.empty() ? "" : " or ", usage.made_for);
  }
  return text + (remedies.empty() ? "" : "; use " + remedies);
}

}  // namespace godwit::cli
