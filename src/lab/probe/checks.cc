#include "lab/probe/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "base/utf8.h"

namespace godwit::lab::probe {
namespace {

constexpr Check kChecks[] = {
    {"batch", "a greedy answer is the same alone and beside others", CheckBatch},
    {"cache", "prompts that begin alike, repeat and branch have their own answers", CheckCache},
    {"cancel", "streams that are cut hold no place, and spoil no later answer", CheckCancel},
    {"stop", "no beginning of a stop string is shown, whole or streamed", CheckStop},
    {"utf8", "pieces of a stream are whole characters, and add up to the answer", CheckUtf8},
    {"schema", "answers are of their JSON schema, or it is refused", CheckSchema},
    {"logprobs", "log-probabilities are there, and the same streamed", CheckLogprobs},
    {"usage", "tokens are counted, and the same streamed", CheckUsage},
    {"finish", "max_tokens is kept to, and the end is told once", CheckFinish},
    {"seed", "one seed draws one text", CheckSeed},
    {"n", "two answers come where two are asked for", CheckChoices},
    {"length", "a prompt that is too long is refused, and not cut", CheckLength},
    {"hostile", "requests that make no sense get a 4xx, and the next one its answer", CheckHostile},
};

}  // namespace

std::span<const Check> AllChecks() { return kChecks; }

void MustBeSame(std::string_view how, std::string_view text, std::string_view other_how,
                std::string_view other) {
  if (text == other) return;
  // The excerpts begin a little before the first byte that differs.
  constexpr size_t kBefore = 12, kShown = 40;
  const auto differ = std::mismatch(text.begin(), text.end(), other.begin(), other.end());
  const auto at = static_cast<size_t>(differ.first - text.begin());
  const size_t begin = FirstCharacters(text, at > kBefore ? at - kBefore : 0).size();
  const auto shown = [&](std::string_view whole) {
    const std::string_view rest = whole.substr(begin), first = FirstCharacters(rest, kShown);
    return Quote(first) + (first.size() < rest.size() ? "..." : "");
  };
  throw Fault(
      fmt::format("{} {}, {} {}, from byte {} on", how, shown(text), other_how, shown(other), at));
}

}  // namespace godwit::lab::probe
