#include "server/error_body.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace godwit::server {

int StatusOf(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kInput:
    case ErrorKind::kFormat:
    case ErrorKind::kUnsupported:
      return 400;
    case ErrorKind::kMemory:
      return 503;
    default:
      return 500;
  }
}

std::string ErrorBody(int status, std::string_view message) {
  const char* type = status == 403   ? "permission_error"
                     : status == 401 ? "authentication_error"
                     : status == 404 ? "not_found_error"
                     : status == 429 ? "rate_limit_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  const nlohmann::ordered_json body{
      {"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}};
  return DumpJson(body);
}

}  // namespace godwit::server
