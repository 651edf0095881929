// Messages for requests that cannot be answered: besides the fault, the nearest alternative and
// help.
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

// The message for an unknown path: the server that has it and what replaces it here, or else the
// nearest path. endpoints: all that exist, at least one.
std::string UnknownPathMessage(std::string_view path, std::span<const Endpoint> endpoints);

// The error's message, with advice where a prompt is too long. defaults: the values that requests
// may name.
std::string WithAdvice(const Error& error, const chat::CompletionDefaults& defaults);

// The error's message without folders of this machine, which clients must not learn: files keep
// their own names. model: its folder or file, as the operator named it.
std::string WithoutFolders(const Error& error, std::string message, const std::string& model);

}  // namespace godwit::server
