// RULER's common words, cwe: ten words stand 30 times in a numbered list, the others three times. A
// worked example comes first.
//
// Unlike in the original, the list grows by the word, not by ten, and each sample has its own
// shuffle. The words are ours. If single words do not fill a text, pairs do.

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/budget.h"
#include "eval/suites/draws.h"
#include "eval/suites/words.h"

namespace godwit::eval::ruler_common_words {
namespace {

constexpr size_t kCommon = 10;

struct Repeats {
  int64_t common, others;

  int64_t Of(size_t word) const { return word < kCommon ? common : others; }
  std::vector<int64_t> OfFirst(size_t words) const {
    std::vector<int64_t> times;
    for (size_t i = 0; i < words; ++i) times.push_back(Of(i));
    return times;
  }
};

// The original's numbers for one range of lengths.
struct CommonWords {
  Repeats repeats, example_repeats;
  int64_t example_words;
};
constexpr CommonWords kShort = {{6, 1}, {3, 1}, 20};  // below 4096 tokens
constexpr CommonWords kLong = {{30, 3}, {10, 3}, 40};

PromptWords CommonWordsAsked() {
  return {.before =
              "Below is a numbered list of words. In these words, some appear more often than "
              "others. Memorize the ones that appear most often.\n",
          .question = "\nQuestion: What are the 10 most common words in the above list?",
          .answer = " Answer: The top 10 words that appear most often in the list are:"};
}

// "1. word 2. other"
template <typename Words>
std::string Numbered(const Words& words) {
  std::string text;
  int64_t number = 0;
  for (const std::string& word : words) {
    text += fmt::format("{}{}. {}", number == 0 ? "" : " ", number + 1, word);
    ++number;
  }
  return text;
}

// A short list with its question and answer.
std::string Example(const CommonWords& kind, Draws& draws) {
  const auto words = DrawWords(draws, kind.example_words);
  std::vector<std::string> list;
  for (const size_t word : draws.Copies(kind.example_repeats.OfFirst(words.size()))) {
    list.push_back(words[word]);
  }
  const PromptWords asked = CommonWordsAsked();
  return fmt::format("{}{}{}{} {}", asked.before, Numbered(list), asked.question, asked.answer,
                     Numbered(std::span(words).first(kCommon)));
}

// Pieces of the list's numbers, made once for all samples: "1.", " 2.", ...
class Numbers {
 public:
  explicit Numbers(const PieceMaker& pieces) : pieces_(pieces) {}

  const Piece& At(int64_t i) {
    while (std::ssize(made_) <= i) {
      made_.push_back(
          pieces_.Make(fmt::format("{}{}.", made_.empty() ? "" : " ", made_.size() + 1)));
    }
    return made_[i];
  }

 private:
  const PieceMaker& pieces_;
  std::vector<Piece> made_;
};

// The most words, repeated and numbered, that fit. Throws as RemainingTokens does if even the
// common words and one more do not fit.
std::vector<Piece> WordsThatFit(const PieceMaker& pieces, const std::vector<std::string>& words,
                                const Repeats& repeats, Numbers& numbers, int64_t length_tokens,
                                int64_t free_tokens) {
  std::vector<Piece> fitting;
  int64_t tokens = 0, items = 0;
  for (const std::string& word : words) {
    Piece piece = pieces.Make(" " + word);
    const int64_t times = repeats.Of(fitting.size());
    tokens += times * piece.size();
    for (int64_t i = 0; i < times; ++i) tokens += numbers.At(items++).size();
    if (fitting.size() == kCommon) {
      (void)RemainingTokens(length_tokens, length_tokens - free_tokens + tokens);
    } else if (fitting.size() > kCommon && tokens > free_tokens) {
      break;
    }
    fitting.push_back(std::move(piece));
  }
  return fitting;
}

SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [seed = inputs.seed, max_new_tokens = inputs.max_new_tokens, &pieces,
          numbers = Numbers(pieces)](const SamplePlace& place) mutable {
    constexpr int64_t kLongFrom = 4096;
    const CommonWords& kind = place.length_tokens < kLongFrom ? kShort : kLong;
    PromptWords asked = CommonWordsAsked();
    Draws example_draws(seed, place.index, "ruler: cwe, example");
    asked.before = Example(kind, example_draws) + "\n" + asked.before;
    const PromptEnds ends = pieces.Ends(asked);

    Sample sample{.max_new_tokens = max_new_tokens};
    const auto build = [&](int64_t free_tokens) {
      Draws draws(seed, place.index, "ruler: cwe");
      const auto fitting = [&](const std::vector<std::string>& words) {
        sample.expected.assign(words.begin(), words.begin() + kCommon);
        return WordsThatFit(pieces, words, kind.repeats, numbers, place.length_tokens, free_tokens);
      };
      auto words = fitting(DrawWords(draws, kWords));
      // A word and a number are at least two tokens.
      const int64_t most = free_tokens / (2 * kind.repeats.others);
      if (std::ssize(words) == kWords) {
        words = fitting(DrawWordPairs(draws, std::min(most, kWordPairs)));
      }
      if (std::ssize(words) == kWordPairs) (void)DrawWordPairs(draws, kWordPairs + 1);  // throws
      PromptBuilder builder(pieces);
      builder.Append(ends.first);
      int64_t items = 0;
      for (const size_t word : draws.Copies(kind.repeats.OfFirst(words.size()))) {
        builder.Append(numbers.At(items++));
        builder.Append(words[word]);
      }
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
    {"ruler", "cwe", HayText::kNone, /*data=*/nullptr, /*has_depth=*/false, 120, Open, Score},
};

}  // namespace
}  // namespace godwit::eval::ruler_common_words

namespace godwit::eval {

std::span<const Suite> RulerCommonWordsSuites() { return ruler_common_words::kSuites; }

}  // namespace godwit::eval
