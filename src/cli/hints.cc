#include "cli/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/name_list.h"

namespace godwit::cli {
namespace {

constexpr int64_t kSinks = 4;  // of the streams that remedies name

bool Always(const ErrorData& /*data*/) { return true; }
// Whether a policy that forgets would help. Such a policy moves keys, which learned positions
// forbid, and keys that ranks share are never forgotten.
bool Streams(const ErrorData& data) {
  return data.learned_positions == 0 && data.ranks == 1 && data.streams > kSinks;
}
// Whether a longer context helps: up to the model's positions, or up to its maximum.
bool Extends(const ErrorData& data) {
  return data.learned_positions == 0 || data.found <= data.learned_positions;
}
bool Fits(const ErrorData& data) { return data.found <= data.fits; }
bool HasNarrower(const ErrorData& data) { return data.narrower[0] != '\0'; }

// A remedy's text. "{found}", "{fits}" and "{window}" stand for numbers; the window is the context
// that four sinks leave. "{narrower}" stands for a storage.
struct Remedy {
  ErrorCode code;
  bool (*helps)(const ErrorData& data);
  const char* text;
};
constexpr Remedy kRemedies[] = {
    {ErrorCode::kWindowTooLong, Always, "use --window {fits}"},
    {ErrorCode::kWindowTooLong, Extends,
     "raise the context with -c {found}, even beyond the model's own"},
    {ErrorCode::kTextTooLong, Streams, "stream it with --kv sinks:4+{window}"},
    {ErrorCode::kTextTooLong, Always, "cut it into pieces with --window {fits}"},
    {ErrorCode::kTextTooLong, Extends,
     "raise the context with -c {found}, even beyond the model's own"},
    {ErrorCode::kPromptTooLong, Always, "shorten it"},
    {ErrorCode::kPromptTooLong, Fits, "raise the context with -c {found}"},
    {ErrorCode::kPromptTooLong, HasNarrower, "store its keys and values with --kv-type {narrower}"},
    {ErrorCode::kPromptTooLong, Streams,
     "stream it with --kv sinks:4+{window}, which keeps only the first and the last tokens"},
    {ErrorCode::kStreamTooLong, Streams,
     "keep only its first and last tokens with --kv sinks:4+{window}"},
    {ErrorCode::kStreamTooLong, Always, "make it shorter"},
    {ErrorCode::kStreamTooLong, Extends,
     "raise the context with -c {found}, even beyond the model's own"},
    {ErrorCode::kNeedsInt8Kv, Always, "use --kv-type int8"},
    {ErrorCode::kQuantizedOtherwise, Always, "use --weights int8"},
    {ErrorCode::kWeightsTooLarge, HasNarrower, "use --weights {narrower}"},
    {ErrorCode::kNoDraftHeads, Always, "train draft heads with godwit train-heads"},
    {ErrorCode::kNoPrediction, Always, "start with --draft mtp"},
    {ErrorCode::kNoEagle3, Always, "start with --draft eagle3:FOLDER"},
    {ErrorCode::kNoDraftModel, Always, "start with -md MODEL"},
    {ErrorCode::kNeverReached, Always, "use --keep with its name"},
};

}  // namespace

std::string WithHint(const Error& error) {
  const ErrorData& data = error.data();
  std::vector<std::string> hints;
  for (const Remedy& remedy : kRemedies) {
    if (remedy.code != data.code || !remedy.helps(data)) continue;
    hints.push_back(fmt::format(
        fmt::runtime(remedy.text), fmt::arg("found", data.found), fmt::arg("fits", data.fits),
        fmt::arg("narrower", data.narrower),
        fmt::arg("window", std::max<int64_t>(1, std::min(data.limit, data.streams) - kSinks))));
  }
  if (hints.empty()) return error.what();
  return fmt::format("{}: {}", error.what(), NameList(hints, std::identity(), ", or "));
}

}  // namespace godwit::cli
