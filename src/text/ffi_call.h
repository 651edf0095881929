// The room's only door to the Rust crate: the handles as unique_ptr, statuses as Error.
//
// Internal to src/text. Views handed to the crate are borrowed for the call.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/ffi/godwit_text.h"

namespace godwit {

template <auto kFree>
struct FfiFree {
  template <typename T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};

using FfiTokenizer = std::unique_ptr<godwit_tokenizer, FfiFree<godwit_tokenizer_free>>;
using FfiStream = std::unique_ptr<godwit_stream, FfiFree<godwit_stream_free>>;

inline godwit_text_view ToFfi(std::string_view text) { return {text.data(), text.size()}; }

// Frees what the crate returned, also where copying it throws.
class FfiString {
 public:
  FfiString() = default;
  FfiString(const FfiString&) = delete;
  FfiString& operator=(const FfiString&) = delete;
  ~FfiString() { godwit_text_string_free(text_); }

  godwit_text_string* get() { return &text_; }
  std::string Copy() const { return text_.size == 0 ? "" : std::string(text_.data, text_.size); }

 private:
  godwit_text_string text_ = {nullptr, 0};
};

// `call` takes the place for the error message and returns the status. `what` names the thing that
// failed. A template that refuses its messages is the request's fault; anything else is the file's.
template <typename Call>
void CheckFfi(std::string_view what, Call call) {
  FfiString error;
  const godwit_text_status status = call(error.get());
  if (status == GODWIT_TEXT_OK) return;
  Throw(status == GODWIT_TEXT_RAISED ? ErrorKind::kInput : ErrorKind::kFormat, "{}: {}", what,
        error.Copy());
}

}  // namespace godwit
