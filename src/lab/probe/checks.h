// Checks of a server by what a client sees, one function for each kind of fault.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lab/probe/client.h"

namespace godwit::lab::probe {

struct Check {
  std::string_view name;
  std::string_view asks;  // one line, for the help
  // Returns in a few words what it saw. Throws Fault or Skip, Error(kCancelled).
  std::string (*run)(const Target& target);
};

std::span<const Check> AllChecks();

// Checks of requests beside each other, or one after another.
std::string CheckBatch(const Target& target);
std::string CheckCache(const Target& target);
std::string CheckCancel(const Target& target);
// Checks of the text of one answer.
std::string CheckStop(const Target& target);
std::string CheckUtf8(const Target& target);
std::string CheckSchema(const Target& target);
// Checks of facts about an answer, and of requests that make no sense.
std::string CheckLogprobs(const Target& target);
std::string CheckUsage(const Target& target);
std::string CheckFinish(const Target& target);
std::string CheckSeed(const Target& target);
std::string CheckChoices(const Target& target);
std::string CheckLength(const Target& target);
std::string CheckHostile(const Target& target);

// The beginning of a story, which any model continues.
inline constexpr std::string_view kStory =
    "Once upon a time there was a little girl named Lily who lived near the forest. One day";

// Request fields for greedy tokens, max_tokens at most.
inline Json Greedily(int max_tokens) {
  Json fields = Json::object();
  fields["temperature"] = 0;
  fields["max_tokens"] = max_tokens;
  return fields;
}

// Throws Fault where two texts that should be one differ: alone "a", beside others "b".
void MustBeSame(std::string_view how, std::string_view text, std::string_view other_how,
                std::string_view other);

}  // namespace godwit::lab::probe
