// What a request that cannot be answered is told beside what is wrong: what is near, and what
// helps.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "chat/completion_request.h"
#include "godwit/error.h"

namespace godwit::server {

struct Endpoint {
  std::string_view method, path;
};

// Of a path at which there is nothing: what others have there, and what is near here. endpoints:
// all that there are, one at least.
std::string NothingAt(std::string_view path, std::span<const Endpoint> endpoints);

// The error's message, and where a prompt is too long, what helps; defaults: what requests may
// name.
std::string WithAdvice(const Error& error, const chat::CompletionDefaults& defaults);

// An error's message without the folders of this machine, which are nobody's business elsewhere:
// files are called by their own names. model: its folder or file, as the operator has named it.
std::string WithoutFolders(const Error& error, std::string message, const std::string& model);

}  // namespace godwit::server
