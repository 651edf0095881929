#include "engine/kv_mode.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"

namespace godwit {
namespace {

// W of "recompute:W"; nothing if the spec is a policy's.
std::optional<int64_t> RecomputeWindow(std::string_view spec) {
  constexpr std::string_view kName = "recompute";
  constexpr int64_t kMost = int64_t{1} << 40;
  if (spec.substr(0, spec.find(':')) != kName) return std::nullopt;
  std::string_view argument = spec.substr(kName.size());
  if (!argument.empty()) argument.remove_prefix(1);
  int64_t window = 0;
  const char* const end = argument.data() + argument.size();
  const auto [last, error] = std::from_chars(argument.data(), end, window);
  if (error != std::errc() || last != end || window < 1 || window > kMost) {
    Throw(ErrorKind::kInput,
          "\"{}\" is not recompute:W with a window of W >= 1 tokens (for example recompute:1024)",
          spec);
  }
  return window;
}

// Each window is a short text of its own, kept whole.
PolicyOptions WindowOptions(PolicyOptions options, int64_t window) {
  options.spec = "dense";
  options.context = window;
  return options;
}

}  // namespace

KvMode::KvMode(const LanguageModel& model, const AttentionGeometry& geometry, PolicyOptions options)
    : model_(model), geometry_(geometry), options_(std::move(options)) {
  const auto window = RecomputeWindow(options_.spec);
  if (!window) return;
  (void)MostKept(geometry_, options_);  // throws for a spec that makes no sense
  recompute_ = std::make_unique<Recompute>(
      model, *window,
      [geometry, inner = WindowOptions(options_, *window)] { return MakePolicy(geometry, inner); });
}

std::unique_ptr<AttentionPolicy> KvMode::NewPolicy() const {
  return recompute_ ? recompute_->NewPolicy() : MakePolicy(geometry_, options_);
}

int64_t MostKept(const AttentionGeometry& geometry, const PolicyOptions& options) {
  const auto window = RecomputeWindow(options.spec);
  return MakePolicy(geometry, window ? WindowOptions(options, *window) : options)
      ->Stats()
      .most_kept;
}

}  // namespace godwit
