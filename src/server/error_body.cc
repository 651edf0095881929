#include "server/error_body.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace godwit::server {
int StatusOf(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kInput:
    case ErrorKind::kFormat:
    case ErrorKind::kUnsupported:
      return 400;
    case ErrorKind::kMemory:  // a text too long for all memory stays too long
      return error.data().code == ErrorCode::kPromptTooLong ? 400 : 503;
    default:
      return 500;
  }
}

nlohmann::ordered_json ErrorJson(int status, std::string_view message, std::string_view code,
                                 ErrorWords words) {
  const bool is_anthropic = words == ErrorWords::kAnthropic;
  const char* type = status == 403                   ? "permission_error"
                     : status == 401                 ? "authentication_error"
                     : status == 404                 ? "not_found_error"
                     : status == 429                 ? "rate_limit_error"
                     : status == 503 && is_anthropic ? "overloaded_error"
                     : status >= 500                 ? (is_anthropic ? "api_error" : "server_error")
                                                     : "invalid_request_error";
  nlohmann::ordered_json error{{"message", message}, {"type", type}};
  if (!is_anthropic) error.update({{"param", nullptr}, {"code", nullptr}});
  if (!code.empty()) error["code"] = code;
  nlohmann::ordered_json body;
  if (is_anthropic) body["type"] = "error";
  body["error"] = std::move(error);
  return body;
}

std::string ErrorBody(int status, std::string_view message, std::string_view code,
                      ErrorWords words) {
  return DumpJson(ErrorJson(status, message, code, words));
}

std::string ErrorBody(const Error& error, std::string_view message, ErrorWords words) {
  const bool too_long = error.data().code == ErrorCode::kPromptTooLong;
  auto body = ErrorJson(StatusOf(error), message, too_long ? "context_length_exceeded" : "", words);
  if (too_long) {
    body["error"]["n_prompt_tokens"] = error.data().found;
    body["error"]["n_ctx"] = error.data().limit;
  }
  return DumpJson(body);
}

}  // namespace godwit::server
