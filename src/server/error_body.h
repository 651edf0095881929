// What went wrong with a request, as OpenAI's API tells it.
#pragma once

#include <string>
#include <string_view>

#include "godwit/error.h"

namespace godwit::server {

// 400 where the request is wrong, 503 where it does not fit now, else 500.
int StatusOf(const Error& error);

// {"error": {"message", "type", "param": null, "code"}}; no code: null.
std::string ErrorBody(int status, std::string_view message, std::string_view code = "");
// Of an error that is told in other words, with its code: of a prompt that is too long
// "context_length_exceeded", with "n_prompt_tokens" and "n_ctx".
std::string ErrorBody(const Error& error, std::string_view message);

}  // namespace godwit::server
