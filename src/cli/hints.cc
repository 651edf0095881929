#include "cli/hints.h"

#include <fmt/format.h>

#include <algorithm>

namespace godwit::cli {
namespace {

// "{found}", "{fits}" and "{window}" stand for numbers: the last for what a context can hold behind
// four sinks.
struct Hint {
  ErrorCode code;
  const char* text;
};
constexpr Hint kHints[] = {
    {ErrorCode::kWindowTooLong,
     "take --window {fits}, or go beyond the context knowingly with -c {found}"},
    {ErrorCode::kTextTooLong,
     "stream it with --kv sinks:4+{window}, cut it into pieces with --window {fits}, or go beyond "
     "the context knowingly with -c {found}"},
    {ErrorCode::kPromptTooLong,
     "shorten it, or stream it with --kv sinks:4+{window}, which keeps the beginning and the last "
     "tokens only"},
    {ErrorCode::kPromptFitsLargerContext,
     "shorten it, raise the context with -c {found}, or stream it with --kv sinks:4+{window}, "
     "which "
     "keeps the beginning and the last tokens only"},
    {ErrorCode::kPromptFitsLargerTable, "shorten it, or raise the context with -c {found}"},
    {ErrorCode::kStreamTooLong,
     "keep its beginning and its end with --kv sinks:4+{window}, make it shorter, or go beyond the "
     "context knowingly with -c {found}"},
    {ErrorCode::kNeedsInt8Kv, "--kv-type int8 stores them so"},
    {ErrorCode::kQuantizedOtherwise, "--weights int8 does that"},
    {ErrorCode::kNeverReached, "--keep with its name does that"},
};

}  // namespace

std::string WithHint(const Error& error) {
  const ErrorData& data = error.data();
  const auto hint = std::ranges::find(kHints, data.code, &Hint::code);
  if (hint == std::end(kHints)) return error.what();
  return fmt::format("{}: {}", error.what(),
                     fmt::format(fmt::runtime(hint->text), fmt::arg("found", data.found),
                                 fmt::arg("fits", data.fits),
                                 fmt::arg("window", std::max<int64_t>(1, data.limit - 4))));
}

}  // namespace godwit::cli
