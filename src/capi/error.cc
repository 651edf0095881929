#include <string>

#include "capi/guard.h"

namespace godwit::capi {
namespace {

struct OwnedError : godwit_error {
  std::string message_text;
  std::string unit_text;
};

// The error for lack of memory, which is never freed.
godwit_error out_of_memory = {.struct_size = sizeof(godwit_error),
                              .kind = GODWIT_ERROR_MEMORY,
                              .code = GODWIT_CODE_OTHER,
                              .message = "out of memory",
                              .found = 0,
                              .limit = 0,
                              .fits = 0,
                              .learned_positions = 0,
                              .ranks = 1,
                              .unit = "tokens"};

static_assert(static_cast<int>(ErrorKind::kInput) + 1 == GODWIT_ERROR_INPUT);
static_assert(static_cast<int>(ErrorKind::kIo) + 1 == GODWIT_ERROR_IO);
static_assert(static_cast<int>(ErrorKind::kFormat) + 1 == GODWIT_ERROR_FORMAT);
static_assert(static_cast<int>(ErrorKind::kUnsupported) + 1 == GODWIT_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(ErrorKind::kMemory) + 1 == GODWIT_ERROR_MEMORY);
static_assert(static_cast<int>(ErrorKind::kCancelled) + 1 == GODWIT_ERROR_CANCELLED);
static_assert(static_cast<int>(ErrorCode::kOther) == GODWIT_CODE_OTHER);
static_assert(static_cast<int>(ErrorCode::kWindowTooLong) == GODWIT_CODE_WINDOW_TOO_LONG);
static_assert(static_cast<int>(ErrorCode::kTextTooLong) == GODWIT_CODE_TEXT_TOO_LONG);
static_assert(static_cast<int>(ErrorCode::kPromptTooLong) == GODWIT_CODE_PROMPT_TOO_LONG);
static_assert(static_cast<int>(ErrorCode::kStreamTooLong) == GODWIT_CODE_STREAM_TOO_LONG);
static_assert(static_cast<int>(ErrorCode::kNeedsInt8Kv) == GODWIT_CODE_NEEDS_INT8_KV);
static_assert(static_cast<int>(ErrorCode::kQuantizedOtherwise) == GODWIT_CODE_QUANTIZED_OTHERWISE);
static_assert(static_cast<int>(ErrorCode::kNeverReached) == GODWIT_CODE_NEVER_REACHED);
static_assert(static_cast<int>(ErrorCode::kNoDraftHeads) == GODWIT_CODE_NO_DRAFT_HEADS);
static_assert(static_cast<int>(ErrorCode::kNoPrediction) == GODWIT_CODE_NO_PREDICTION);
static_assert(static_cast<int>(ErrorCode::kNoEagle3) == GODWIT_CODE_NO_EAGLE3);
static_assert(static_cast<int>(ErrorCode::kWeightsTooLarge) == GODWIT_CODE_WEIGHTS_TOO_LARGE);
static_assert(static_cast<int>(ErrorCode::kOtherRank) == GODWIT_CODE_OTHER_RANK);
static_assert(static_cast<int>(ErrorCode::kNoDraftModel) == GODWIT_CODE_NO_DRAFT_MODEL);

godwit_error* New(int32_t kind, const char* message, const ErrorData& data) noexcept {
  try {
    auto* const error = new OwnedError{};
    error->struct_size = sizeof(godwit_error);
    error->kind = kind;
    error->code = static_cast<int32_t>(data.code);
    error->message_text = message;
    error->message = error->message_text.c_str();
    error->found = data.found;
    error->limit = data.limit;
    error->fits = data.fits;
    error->learned_positions = data.learned_positions;
    error->ranks = data.ranks;
    error->unit_text = data.unit;
    error->unit = error->unit_text.c_str();
    return error;
  } catch (...) {
    return OutOfMemory();
  }
}

}  // namespace

godwit_error* NewError(const Error& error) noexcept {
  return New(static_cast<int32_t>(error.kind()) + 1, error.what(), error.data());
}

godwit_error* NewInternalError(const char* message) noexcept {
  return New(GODWIT_ERROR_INTERNAL, message, {});
}

godwit_error* OutOfMemory() noexcept { return &out_of_memory; }

void FreeError(godwit_error* error) noexcept {
  if (error != &out_of_memory) delete static_cast<OwnedError*>(error);
}

}  // namespace godwit::capi

void godwit_error_free(godwit_error* error) { godwit::capi::FreeError(error); }
