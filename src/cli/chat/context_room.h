// How much of its context a conversation has used, and what can be done about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::cli {

struct ContextRoom {
  int64_t used_tokens = 0;   // by the conversation so far
  int64_t limit_tokens = 0;  // Session::limit_tokens
  int64_t made_for = 0;      // Engine::max_context
  bool may_forget = true;    // the model takes --kv sinks:S+W
  bool has_turns = false;    // there is something to /undo

  bool endless() const;  // what is kept of the text has a limit, the text has none
  int64_t percent() const;
  bool scarce() const;  // 80 % are used
};

// "the context is 82 % full (420 of 512 tokens): /clear, ... make room"
std::string DescribeScarcity(const ContextRoom& room);

// Behind an answer that filled the context: what makes room for the next one.
std::string DescribeFull(const ContextRoom& room);

// A conversation of `tokens` with its last question that leaves no room for an answer. `room` is
// that before the question. or_more: the question was not read to its end. files: what it is of, if
// not of the question.
std::string DescribeTooLong(const ContextRoom& room, int64_t tokens, bool or_more = false,
                            std::string_view files = "");

}  // namespace godwit::cli
