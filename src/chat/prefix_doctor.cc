#include "chat/prefix_doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/utf8.h"
#include "chat/continued_message.h"
#include "chat/result_json.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownBytes = 48, kBeforeBytes = 24;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordByte(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("-:/._+,").find(c) != std::string_view::npos;
}

// The word of a text around a place, with what stands beside it.
struct Word {
  std::string text;
  std::string around;  // the word, and a few bytes on both sides
};
Word WordAt(std::string_view before, std::string_view after) {
  size_t begin = before.size(), end = 0;
  while (begin > 0 && IsWordByte(before[begin - 1])) --begin;
  while (end < after.size() && IsWordByte(after[end])) ++end;
  constexpr size_t kBeside = 10;
  const std::string_view left = before.substr(begin > kBeside ? begin - kBeside : 0);
  return {.text = std::string(before.substr(begin)) + std::string(after.substr(0, end)),
          .around = std::string(left) + std::string(after.substr(0, end + kBeside))};
}

bool HasDigit(std::string_view text) { return std::ranges::any_of(text, IsDigit); }

// Whether a pattern occurs, in which 9 stands for a digit and any other character for itself.
bool Occurs(std::string_view text, std::string_view pattern) {
  for (size_t at = 0; at + pattern.size() <= text.size(); ++at) {
    const bool fits = std::ranges::equal(
        text.substr(at, pattern.size()), pattern,
        [](char found, char wanted) { return wanted == '9' ? IsDigit(found) : found == wanted; });
    if (fits) return true;
  }
  return false;
}

bool LooksLikeDate(const Word& word) {
  for (const char* const pattern :
       {"9999-99", "99:99", "9:99", "9/9", "99.99.99", "9.9.99", "99.9.99"}) {
    if (Occurs(word.text, pattern)) return true;
  }
  // A number beside the name of a month or of a day.
  if (!HasDigit(word.around)) return false;
  for (const char* const name :
       {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon",
        "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}) {
    if (word.around.find(name) != std::string::npos) return true;
  }
  return false;
}

bool LooksLikeId(std::string_view word) {
  const auto digits = std::ranges::count_if(word, IsDigit);
  return digits > 0 && (word.size() >= 8 || 2 * digits >= std::ssize(word));
}

bool HasThought(std::string_view text) {
  for (const char* const mark : {"<think", "</think", "[THINK]", "<thought", "<|channel|>analysis",
                                 "<seed:think", "<|inner_prefix|>"}) {
    if (text.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

std::string InMessage(const std::string& role) {
  return role.empty() ? "the text" : fmt::format("the {} message", role);
}

// The last bytes of a text, from a character on.
std::string_view Last(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t begin = text.size() - bytes;
  while (begin < text.size() && ContinuesCharacter(text[begin])) ++begin;
  return text.substr(begin);
}

size_t CommonBytes(std::string_view a, std::string_view b) {
  const auto differ = std::ranges::mismatch(a, b);
  auto same = static_cast<size_t>(differ.in1 - a.begin());
  while (same > 0 && same < a.size() && ContinuesCharacter(a[same])) --same;
  return same;
}

}  // namespace

std::string LikelyCause(const Parting& parting) {
  const auto& [before, prompt, cache, role, before_user, has_tools] = parting;
  if (cache.empty()) return "the prompt goes on where the cached text ends";
  if (prompt.empty()) return "the prompt ends before the cached text does";
  if (HasThought(cache) != HasThought(prompt)) {
    return "the chat template leaves out thoughts of earlier answers";
  }
  const Word mine = WordAt(before, prompt), theirs = WordAt(before, cache);
  if (LooksLikeDate(mine) && LooksLikeDate(theirs)) {
    return fmt::format("a date or a time in {}", InMessage(role));
  }
  if (role.empty() && has_tools && before_user) return "an edited list of tools";
  if (LooksLikeId(mine.text) && LooksLikeId(theirs.text)) {
    return fmt::format("a number that changes, in {}", InMessage(role));
  }
  if (role == "assistant") return "an answer that comes back in other words than it was written";
  if (!role.empty()) return fmt::format("another text in the {} message", role);
  return "another text";
}

PlaceInChat FindPlace(std::string_view text, size_t same, std::span<const Message> messages) {
  PlaceInChat place{.byte = static_cast<int64_t>(same)};
  size_t from = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& content = messages[i].content;
    const size_t begin = content.empty() ? from : text.find(content, from);
    if (begin == text.npos) continue;  // the template writes it in another way
    if (begin > same) break;
    from = begin + content.size();
    place = {.message = static_cast<int64_t>(i),
             .byte = static_cast<int64_t>(same - begin),
             .inside = same < from};
  }
  // Behind a content stands what the template writes for the next message.
  if (place.message >= 0 && !place.inside) place.byte = static_cast<int64_t>(same);
  return place;
}

Json ExplainPrefix(const Engine& engine, const SessionOptions& session,
                   const CompletionRequest& request, const Prompt& prompt) {
  GenerateOptions generate = request.generate;
  generate.query_tokens = prompt.query_tokens;
  const PrefixReport report = engine.ExplainPrefix(prompt.tokens, generate, session);
  Json json{{"cached_tokens", report.cached_tokens}, {"alike_tokens", report.alike_tokens}};
  if (report.other_tokens == 0) {
    json["cause"] = "no text in memory begins as this prompt does";
    return json;
  }
  json["lost_s"] = RoundedSeconds(report.lost_ms);
  // The engine may have put a sink token in front.
  const auto in_front = report.prompt_tokens - std::ssize(prompt.tokens);
  const auto alike = static_cast<size_t>(std::max<int64_t>(0, report.alike_tokens - in_front));
  std::string before = engine.Detokenize(std::span(prompt.tokens).first(alike));
  std::string mine = engine.Detokenize(report.mine), theirs = engine.Detokenize(report.other);
  const size_t common = CommonBytes(mine, theirs);
  before += mine.substr(0, common);
  mine.erase(0, common);
  theirs.erase(0, common);

  Parting parting{.before = std::string(Last(before, kBeforeBytes)),
                  .prompt = std::string(FirstCharacters(mine, kShownBytes)),
                  .cache = std::string(FirstCharacters(theirs, kShownBytes)),
                  .has_tools = !request.tools.list.empty()};
  // Tokens may spell more in front of the text than it has.
  const auto bytes_of = [&](const std::string& text) {
    const size_t in_front_of_text =
        engine.Detokenize(prompt.tokens).find(text.substr(0, kShownBytes));
    return in_front_of_text == text.npos || in_front_of_text > before.size()
               ? before.size()
               : before.size() - in_front_of_text;
  };
  const auto* const plain = std::get_if<std::string>(&request.prompt);
  json["byte"] = plain == nullptr ? before.size() : bytes_of(*plain);
  if (const auto* const messages = std::get_if<std::vector<Message>>(&request.prompt)) {
    const std::string text =
        RenderOpen(engine, *messages, request.continues, request.template_variables.dump(),
                   request.tools.list.dump());
    const PlaceInChat place = FindPlace(text, bytes_of(text), *messages);
    const auto first_user = std::ranges::find(*messages, "user", &Message::role);
    parting.before_user = place.message < first_user - messages->begin();
    if (place.message >= 0) {
      const std::string& role = (*messages)[static_cast<size_t>(place.message)].role;
      if (place.inside) parting.role = role;
      json["message"] = place.message;
      json["role"] = role;
    }
    json["byte"] = place.byte;
    json["in_message"] = place.inside;
  }
  json["before"] = parting.before;
  json["prompt"] = parting.prompt;
  json["cache"] = parting.cache;
  json["cause"] = report.cached_tokens + kQuestionTokens < report.alike_tokens
                      ? "the common beginning was read in another way (kv, prefill, draft) or its "
                        "memory was given away"
                      : LikelyCause(parting);
  return json;
}

}  // namespace godwit::chat
