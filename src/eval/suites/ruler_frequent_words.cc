// RULER's frequent words, fwe: a coded word's frequency falls with the square of its rank. The word
// of the first rank is three dots, and the next three are asked for.
//
// Unlike in the original, the text grows by the word, not by a 32nd of itself. Each sample has its
// own shuffle, and the three words are the same at every length.

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <string>
#include <vector>

#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/budget.h"
#include "eval/suites/draws.h"

namespace godwit::eval::ruler_frequent_words {
namespace {

constexpr int64_t kLetters = 6;
constexpr int64_t kCoded = 308'915'776;  // 26^6
// With fewer words, the fourth and the fifth rank could be equally frequent.
constexpr int64_t kFewestWords = 53;

std::string CodedWord(int64_t which) {
  std::string word;
  for (int64_t i = 0; i < kLetters; ++i, which /= 26) word += static_cast<char>('a' + which % 26);
  return word;
}

// How often the word of a rank, from 1, stands in a text of `words` words: rank^-2 / zeta(2).
int64_t TimesOf(int64_t rank, int64_t words) {
  constexpr double kZeta2 = std::numbers::pi * std::numbers::pi / 6;
  return static_cast<int64_t>(static_cast<double>(words) / static_cast<double>(rank * rank) /
                              kZeta2);
}

int64_t TokensOf(const std::vector<Piece>& ranked, int64_t words) {
  int64_t tokens = 0;
  for (int64_t i = 0; i < std::ssize(ranked); ++i) {
    tokens += TimesOf(i + 1, words) * ranked[i].size();
  }
  return tokens;
}

SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [seed = inputs.seed, max_new_tokens = inputs.max_new_tokens,
          &pieces](const SamplePlace& place) {
    const PromptEnds ends = pieces.Ends(
        {.before = "Read the following coded text and track the frequency of each coded word. Find "
                   "the three most frequently appeared coded words.",
         .question = "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. "
                     "What are the three most frequently appeared words in the above coded text?",
         .answer = " Answer: According to the coded text above, the three most frequently appeared "
                   "words are:"});
    Sample sample{.max_new_tokens = max_new_tokens};
    const auto build = [&](int64_t free_tokens) {
      // The vocabulary is a 50th of the length, without ranks too rare for the text.
      int64_t ranks = std::max<int64_t>((place.length_tokens - max_new_tokens) / 50, 4);
      while (ranks > 4 && TimesOf(ranks, 2 * free_tokens) == 0) --ranks;
      Draws draws(seed, place.index, "ruler: fwe");
      std::vector<Piece> ranked = {pieces.Make(" ...")};
      sample.expected.clear();
      for (const int64_t which : draws.Different(ranks - 1, kCoded)) {
        if (sample.expected.size() < 3) sample.expected.push_back(CodedWord(which));
        ranked.push_back(pieces.Make(fmt::format(" {}", CodedWord(which))));
      }
      (void)RemainingTokens(place.length_tokens,
                            place.length_tokens - free_tokens + TokensOf(ranked, kFewestWords));
      int64_t words = kFewestWords;
      for (int64_t step = free_tokens; step > 0; step /= 2) {
        while (TokensOf(ranked, words + step) <= free_tokens) words += step;
      }
      std::vector<int64_t> times;
      for (int64_t rank = 1; rank <= ranks; ++rank) times.push_back(TimesOf(rank, words));
      PromptBuilder builder(pieces);
      builder.Append(ends.first);
      for (const size_t word : draws.Copies(times)) builder.Append(ranked[word]);
      sample.context_tokens = builder.AppendQuestion(ends.last);
      return builder.Take();
    };
    sample.prompt =
        BuildToFit(place.length_tokens, ends.tokens + max_new_tokens, max_new_tokens, build);
    return sample;
  };
}

double Score(std::string_view answer, const Sample& sample) {
  return ShareFound(answer, sample.expected);
}

constexpr Suite kSuites[] = {
    {"ruler", "fwe", HayText::kNone, /*data=*/nullptr, /*has_depth=*/false, 50, Open, Score},
};

}  // namespace
}  // namespace godwit::eval::ruler_frequent_words

namespace godwit::eval {

std::span<const Suite> RulerFrequentWordsSuites() { return ruler_frequent_words::kSuites; }

}  // namespace godwit::eval
