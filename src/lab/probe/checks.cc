#include "lab/probe/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "base/utf8.h"

namespace godwit::lab::probe {
namespace {

constexpr Check kChecks[] = {
    {"batch", "a greedy answer is the same alone and beside other requests", CheckBatch},
    {"cache", "prompts that begin alike, repeat and branch have their own answers", CheckCache},
    {"cancel", "cancelled streams free their place and spoil no later answer", CheckCancel},
    {"stop", "no part of a stop string is shown, whole or streamed", CheckStop},
    {"utf8", "pieces of a stream are whole characters and add up to the answer", CheckUtf8},
    {"schema", "answers follow their JSON schema, or it is refused", CheckSchema},
    {"logprobs", "log-probabilities are present, and the same when streamed", CheckLogprobs},
    {"usage", "tokens are counted, and the same when streamed", CheckUsage},
    {"finish", "max_tokens limits the answer, and its end is reported once", CheckFinish},
    {"seed", "a seed always gives the same text", CheckSeed},
    {"n", "a request for two answers gets two", CheckChoices},
    {"length", "a prompt that is too long is refused, not cut", CheckLength},
    {"hostile", "malformed requests get a 4xx, and the next request its answer", CheckHostile},
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
