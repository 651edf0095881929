// The error of a request in the form of OpenAI's API, or Anthropic's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "godwit/error.h"

namespace godwit::server {

// The HTTP status: 400 where the request is wrong, 503 where it does not fit now, else 500.
int StatusOf(const Error& error);

enum class ErrorWords { kOpenAi, kAnthropic };

// The body {"error": {"message", "type", "param": null, "code"}}; no code: null. In Anthropic's
// form {"type": "error", "error": {"type", "message"}}, with a code beside them where there is one.
std::string ErrorBody(int status, std::string_view message, std::string_view code = "",
                      ErrorWords words = ErrorWords::kOpenAi);
// The same as JSON, for errors that tell more.
nlohmann::ordered_json ErrorJson(int status, std::string_view message, std::string_view code,
                                 ErrorWords words);
// The body of an error under another message, with the error's code. A prompt that is too long has
// "context_length_exceeded", with "n_prompt_tokens" and "n_ctx".
std::string ErrorBody(const Error& error, std::string_view message, ErrorWords words);

}  // namespace godwit::server
