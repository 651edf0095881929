// ContextUsage: the part of the context that a conversation uses, and advice when it fills up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::cli {

struct ContextUsage {
  int64_t used_tokens = 0;   // the conversation's so far
  int64_t limit_tokens = 0;  // Session::limit_tokens
  int64_t made_for = 0;      // Engine::max_context
  bool may_forget = true;    // the model takes --kv sinks:S+W
  bool has_turns = false;    // there is something to /undo

  bool endless() const;  // the text has no limit, only its kept part has
  int64_t percent() const;
  bool scarce() const;  // at least 80 % are used
};

// "the context is 82 % full (420 of 512 tokens): /clear, ... make room"
std::string DescribeScarcity(const ContextUsage& usage);

// The message after an answer that filled the context, with ways to make space for the next one.
std::string DescribeFull(const ContextUsage& usage);

// The message for a conversation of `tokens`, last question included, that leaves no space for an
// answer. `usage`: the state before the question. or_more: the question was not read to its end.
// files: the files that are too long, if not the question.
std::string DescribeTooLong(const ContextUsage& usage, int64_t tokens, bool or_more = false,
                            std::string_view files = "");

}  // namespace godwit::cli
