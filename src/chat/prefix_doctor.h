// The prefix doctor: where a prompt left the cached text, what stands there on both sides, and the
// likely cause.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "chat/answers.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// Two texts that part: the end of what they have in common, and how each goes on.
struct Parting {
  std::string before, prompt, cache;
  std::string role = {};     // of the message in whose content they part; empty: in none
  bool before_user = false;  // whether they part before the first message of a user
  bool has_tools = false;
};

// The likely cause, in a few words for people.
std::string LikelyCause(const Parting& parting);

// The part of `text` in which its first `same` bytes end, among a request's messages.
struct PlaceInChat {
  int64_t message = -1;  // -1: before the content of the first one
  int64_t byte = 0;      // of the message's content, or of the text
  bool inside = false;   // whether it lies in the content, else in the template's own text
};
PlaceInChat FindPlace(std::string_view text, size_t same, std::span<const Message> messages);

// {"cached_tokens", "alike_tokens", "message", "role", "byte", "prompt", "cache", "lost_s",
// "cause"}. Both sides are excerpts with a few words. session: with the request's own kv and
// prefill.
nlohmann::ordered_json ExplainPrefix(const Engine& engine, const SessionOptions& session,
                                     const CompletionRequest& request, const Prompt& prompt);

}  // namespace godwit::chat
