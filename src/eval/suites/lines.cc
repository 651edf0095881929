// Lines, as in LongEval: the number on a line with a name. The depth is the line's place, in % of
// all lines.
//
// The original's question ends with "I need the number. ", for chat models. Here the beginning of
// the line follows, so that a base model can continue it. The answer ends with its line, whereas
// the original counts the last number of the whole output.

#include <fmt/format.h>

#include <algorithm>

#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/haystack.h"
#include "eval/suites/listing.h"
#include "eval/suites/words.h"

namespace godwit::eval::lines {
namespace {

constexpr const char* kBefore =
    "Below is a record of lines I want you to remember. Each line begins with 'line <line index>' "
    "and contains a '<REGISTER_CONTENT>' at the end of the line as a numerical value. For each "
    "line index, memorize its corresponding <REGISTER_CONTENT>. At the end of the record, I will "
    "ask you to retrieve the corresponding <REGISTER_CONTENT> of a certain line index. Now the "
    "record start:\n\n";
constexpr int64_t kMaxNumber = 50000;

PromptWords Words(const std::string& name) {
  return {.before = kBefore,
          .question = fmt::format("\nNow the record is over. Tell me what is the "
                                  "<REGISTER_CONTENT> in line {}? I need the number.",
                                  name),
          .answer = fmt::format("\nline {}: REGISTER_CONTENT is", name)};
}

SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [seed = inputs.seed, max_new_tokens = inputs.max_new_tokens,
          &pieces](const SamplePlace& place) {
    // More lines than will be used: no line is shorter than its words.
    constexpr int64_t kWords = 4;
    Draws name_draws(seed, place.index, "lines: names");
    const std::vector<std::string> names =
        DrawWordPairs(name_draws, std::min(kWordPairs, place.length_tokens / kWords + 1));
    Draws draws(seed, place.index, "lines: numbers");
    std::vector<int64_t> numbers;
    const auto entry = [&](int64_t i) {
      if (i == std::ssize(names)) (void)DrawWordPairs(name_draws, i + 1);  // throws
      numbers.push_back(1 + draws.Below(kMaxNumber));
      return fmt::format("line {}: REGISTER_CONTENT is <{}>\n", names[i], numbers.back());
    };
    const Listing listing{
        .entry = entry, .finish = {}, .words = Words(""), .max_name_tokens = 2 * kMaxWordPairBytes};
    const auto entries = Entries(pieces, listing, place.length_tokens, max_new_tokens);
    const size_t asked = EntryAt(*place.depth, entries.size());
    Sample sample{.expected = {fmt::format("{}", numbers[asked])},
                  .max_new_tokens = max_new_tokens,
                  .stop = {"\n"}};
    AskFor(pieces, entries, asked, Words(names[asked]), sample);
    return sample;
  };
}

double Score(std::string_view answer, const Sample& sample) {
  return LastDigits(answer) == sample.expected.front() ? 1 : 0;
}

constexpr Suite kSuites[] = {
    {"lines", "lines", HayText::kNone, /*data=*/nullptr, /*has_depth=*/true, 16, Open, Score},
};

}  // namespace
}  // namespace godwit::eval::lines

namespace godwit::eval {

std::span<const Suite> LinesSuites() { return lines::kSuites; }

}  // namespace godwit::eval
