// An error of a request, as OpenAI's API tells it, or Anthropic's.
#pragma once

#include <string>
#include <string_view>

#include "godwit/error.h"

namespace godwit::server {

// 400 where the request is wrong, 503 where it does not fit now, else 500.
int StatusOf(const Error& error);

enum class ErrorWords { kOpenAi, kAnthropic };

// {"error": {"message", "type", "param": null, "code"}}, no code: null; in Anthropic's words
// {"type": "error", "error": {"type", "message"}}, with a code beside them where there is one.
std::string ErrorBody(int status, std::string_view message, std::string_view code = "",
                      ErrorWords words = ErrorWords::kOpenAi);
// Of an error that is told in other words, with its code: of a prompt that is too long
// "context_length_exceeded", with "n_prompt_tokens" and "n_ctx".
std::string ErrorBody(const Error& error, std::string_view message, ErrorWords words);

}  // namespace godwit::server
