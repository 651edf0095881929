// The needle in a haystack: one fact in a text, asked for at every length and depth.
//
// The original hides one sentence that models know by heart, and a model judges the answers. Here
// each sample draws a new number, which the answer contains or does not.

#include <fmt/format.h>

#include <memory>

#include "eval/suites/all_suites.h"
#include "eval/suites/haystack.h"
#include "eval/suites/words.h"

namespace godwit::eval::needle {
namespace {

SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  auto hay = inputs.texts.empty() ? Haystack::Lines(pieces, std::string(kNoise))
                                  : Haystack::Sentences(pieces, inputs.texts);
  return [seed = inputs.seed, max_new_tokens = inputs.max_new_tokens, &pieces,
          hay = std::move(hay)](const SamplePlace& place) mutable {
    Draws draws(seed, place.index, "needle");
    const std::string city = DrawCity(draws);
    const std::string number = DrawNumber(draws);
    Sample sample{.expected = {number}, .max_new_tokens = max_new_tokens, .stop = {"\n"}};
    HideIn(pieces, hay,
           {.words = {.before = "",
                      .question = fmt::format(
                          "\n\nWhat is the special magic {} number? Don't give information "
                          "outside the document or repeat your findings.",
                          city),
                      .answer = fmt::format("\n\nThe special magic {} number is:", city)},
            .needles = {fmt::format("The special magic {} number is: {}.", city, number)},
            .depths = {*place.depth},
            .max_new_tokens = max_new_tokens},
           place.length_tokens, sample);
    return sample;
  };
}

double Score(std::string_view answer, const Sample& sample) {
  return answer.find(sample.expected.front()) != std::string_view::npos ? 1 : 0;
}

constexpr Suite kSuites[] = {
    {"needle", "needle", HayText::kIfAny, /*data=*/nullptr, /*has_depth=*/true, 16, Open, Score},
};

}  // namespace
}  // namespace godwit::eval::needle

namespace godwit::eval {

std::span<const Suite> NeedleSuites() { return needle::kSuites; }

}  // namespace godwit::eval
