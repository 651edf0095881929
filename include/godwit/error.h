// The one exception type of the library: what ended a request, and why.
#pragma once

#include <stdexcept>
#include <string>

namespace godwit {

// The kind decides the exit code of the command line and the HTTP status of the server.
enum class ErrorKind {
  kInput,        // the request itself is wrong: a flag, a prompt, a token id
  kIo,           // the operating system refused: a missing file, a full disk, a closed pipe
  kFormat,       // a file is not what it claims to be
  kUnsupported,  // valid, but not something this build or this model can do
  kMemory,       // it does not fit
  kCancelled,    // the caller asked to stop
};

// The message names the thing, what was expected and what was found.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace godwit
