// Passkey and number string, as in InfiniteBench: a number on a line of noise.
//
// The original allows an answer of 6 tokens (12 for the number string). That suffices only if each
// digit is a token and the model begins with the number; any other model fails.

#include <fmt/format.h>

#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/haystack.h"
#include "eval/suites/words.h"

namespace godwit::eval::passkey {
namespace {

struct Kind {
  const char* before;
  const char* name;  // of the number
  std::string (*draw)(Draws& draws);
};

std::string DrawKey(Draws& draws) { return DrawDigits(draws, 5); }

// Five digits, one of which comes twice in a row.
std::string DrawStammered(Draws& draws) {
  std::string digits = DrawDigits(draws, 5);
  for (int i = 0; i < 5; ++i) {
    const auto at = static_cast<size_t>(draws.Below(std::ssize(digits)));
    digits.insert(at, 1, digits[at]);
  }
  return digits;
}

constexpr Kind kPasskey = {
    "There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. "
    "I will quiz you about the important information there.\n\n",
    "pass key", DrawKey};
constexpr Kind kNumberString = {
    "There is an important info hidden inside a lot of irrelevant text. Find it. I will quiz you "
    "about the important information there.\n\n",
    "sequence of digits", DrawStammered};

template <const Kind& kKind>
SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [inputs, &pieces,
          hay = Haystack::Lines(pieces, std::string(kNoise))](const SamplePlace& place) mutable {
    Draws draws(inputs.seed, place.index, kKind.name);
    const std::string key = kKind.draw(draws);
    Sample sample{.expected = {key}, .max_new_tokens = inputs.max_new_tokens};
    HideIn(
        pieces, hay,
        {.words = {.before = kKind.before,
                   .question = fmt::format("\n\nWhat is the {}?", kKind.name),
                   .answer = fmt::format("\n\nThe {} is", kKind.name)},
         .needles = {fmt::format("The {0} is {1}. Remember it. {1} is the {0}.", kKind.name, key)},
         .depths = {*place.depth},
         .max_new_tokens = inputs.max_new_tokens},
        place.length_tokens, sample);
    return sample;
  };
}

double Score(std::string_view answer, const Sample& sample) {
  return FirstDigits(answer) == sample.expected.front() ? 1 : 0;
}

constexpr Suite kSuites[] = {
    {"passkey", "passkey", HayText::kNone, /*data=*/nullptr, /*has_depth=*/true, 6, Open<kPasskey>,
     Score},
    {"passkey", "number-string", HayText::kNone, /*data=*/nullptr, /*has_depth=*/true, 12,
     Open<kNumberString>, Score},
};

}  // namespace
}  // namespace godwit::eval::passkey

namespace godwit::eval {

std::span<const Suite> PasskeySuites() { return passkey::kSuites; }

}  // namespace godwit::eval
