// Key-value retrieval, as in InfiniteBench (after Lost in the Middle): the value of a key in a JSON
// object of random pairs. The depth is the pair's place, in % of all pairs.

#include <fmt/format.h>

#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/listing.h"
#include "eval/suites/words.h"

namespace godwit::eval::kv_retrieval {
namespace {

constexpr const char* kBefore =
    "Extract the value corresponding to the specified key in the JSON object below.\n\nJSON "
    "data:\n";
constexpr int64_t kUuidBytes = 36;

// The whole prompt is the user's message, as in the original.
PromptWords Words(const std::string& key) {
  return {.before = kBefore,
          .question =
              fmt::format("\n\nKey: \"{}\"\nThe value associated with the specified key is: ", key),
          .answer = ""};
}

struct Pair {
  std::string key, value;
};

SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [seed = inputs.seed, max_new_tokens = inputs.max_new_tokens,
          &pieces](const SamplePlace& place) {
    Draws draws(seed, place.index, "kv-retrieval");
    std::vector<Pair> pairs;
    const auto entry = [&](int64_t i) {
      pairs.push_back({.key = DrawUuid(draws), .value = DrawUuid(draws)});
      return fmt::format("{}\"{}\": \"{}\",", i == 0 ? "{" : " ", pairs.back().key,
                         pairs.back().value);
    };
    const Listing listing{.entry = entry,
                          .finish = [](std::string& last) { last.back() = '}'; },
                          .words = Words(""),
                          .max_name_tokens = kUuidBytes};
    const auto entries = Entries(pieces, listing, place.length_tokens, max_new_tokens);
    const size_t asked = EntryAt(*place.depth, entries.size());
    Sample sample{.expected = {pairs[asked].value}, .max_new_tokens = max_new_tokens};
    AskFor(pieces, entries, asked, Words(pairs[asked].key), sample);
    return sample;
  };
}

double Score(std::string_view answer, const Sample& sample) {
  return HasWord(answer, sample.expected.front()) ? 1 : 0;
}

constexpr Suite kSuites[] = {
    {"kv-retrieval", "kv-retrieval", HayText::kNone, /*data=*/nullptr, /*has_depth=*/true, 50, Open,
     Score},
};

}  // namespace
}  // namespace godwit::eval::kv_retrieval

namespace godwit::eval {

std::span<const Suite> KvRetrievalSuites() { return kv_retrieval::kSuites; }

}  // namespace godwit::eval
