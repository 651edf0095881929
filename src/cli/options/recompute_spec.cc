#include "cli/options/recompute_spec.h"

#include <charconv>

#include "base/error.h"
#include "base/quote.h"

namespace godwit::cli {
namespace {

constexpr std::string_view kRecomputeName = "recompute";

}  // namespace

std::string ExplainRecompute(int64_t window) {
  return fmt::format(
      "Nothing is cached: for every token the last {} are processed again as a text of their own, "
      "which takes {} times the multiplications of a step. It is the reference for measurements of "
      "streaming.",
      window, window);
}

std::optional<int64_t> RecomputeWindow(std::string_view spec) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (spec.substr(0, spec.find(':')) != kRecomputeName) return std::nullopt;
  std::string_view argument = spec.substr(kRecomputeName.size());
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

void RefuseRecompute(std::string_view spec) {
  if (spec.substr(0, spec.find(':')) != kRecomputeName) return;
  Throw(ErrorKind::kInput,
        "{} keeps no cache to continue from: only godwit perplexity and godwit eval stream take "
        "it, as a reference",
        Quote(spec));
}

}  // namespace godwit::cli
