// The one exception type of the library: what ended a request, and why.
#pragma once

#include <cstdint>
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

// Errors to which a program can add which of its own settings would help.
enum class ErrorCode {
  kOther,
  kWindowTooLong,  // found, limit: tokens of a window of a text, and of the context;
                   // fits: the longest window
  kTextTooLong,    // the same, for a text that is read whole
  kPromptTooLong,  // found, limit: tokens of a prompt, and of the context; fits: those that the
                   // model was made for; narrower: a storage of keys in which it would fit
  kStreamTooLong,  // found, limit: tokens that a stream may grow to, and of the context
  kNeedsInt8Kv,    // int8 attention with keys and values that are stored otherwise
  kQuantizedOtherwise,  // a checkpoint whose quantization is not supported
  kNeverReached,        // a layer that needs a fixed scale and got none from the calibration text
  kNoDraftHeads,        // draft heads that the model does not have
  kNoPrediction,        // a layer that predicts tokens and was not loaded
  kNoEagle3,            // an EAGLE-3 head that was not loaded
  kWeightsTooLarge,     // weights that memory does not hold; narrower: those that it would hold
  kOtherRank,           // another rank has ended, and told why itself
  kNoDraftModel,        // a draft model that was not loaded
};

// The numbers of the message, which count `unit`.
struct ErrorData {
  ErrorCode code = ErrorCode::kOther;
  int64_t found = 0;
  int64_t limit = 0;
  int64_t fits = 0;
  int64_t learned_positions = 0;  // the model's, as Session::learned_positions
  int64_t streams = INT64_MAX;    // tokens of which memory holds a text that forgets the others
  int ranks = 1;                  // ranks that share the text
  const char* unit = "tokens";
  const char* narrower = "";  // another storage, as LoadOptions or SessionOptions spell it, or none
};

// An error with a message that names the thing, what was expected and what was found. The message
// stands alone: only the program knows how its settings are called.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, const ErrorData& data = {})
      : std::runtime_error(message), kind_(kind), data_(data) {}

  ErrorKind kind() const { return kind_; }
  const ErrorData& data() const { return data_; }

 private:
  ErrorKind kind_;
  ErrorData data_;
};

}  // namespace godwit
