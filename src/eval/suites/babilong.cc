// BABILong (Kuratov et al., 2024), qa1 to qa5: the facts of a bAbI story among the sentences of
// books, asked in the original's words.
//
// The original swaps the instructions of qa4 and qa5, and so does this. Four things differ. Whole
// sentences fill the text, short ones too. Facts stand at depths uniform over the text's tokens.
// Depths are the same at every length. The seed draws everything.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "eval/suites/all_suites.h"
#include "eval/suites/answers.h"
#include "eval/suites/babi_stories.h"
#include "eval/suites/draws.h"
#include "eval/suites/haystack.h"

namespace godwit::eval::babilong {
namespace {

constexpr std::string_view kRooms[] = {"bathroom", "bedroom", "garden",
                                       "hallway",  "kitchen", "office"};
constexpr std::string_view kNames[] = {"Bill", "Fred", "Jeff", "Mary", "apple", "football", "milk"};

struct Words {
  const char* instruction;
  const char* rule = "";  // a line behind it
  const char* examples;
  const char* format;
  std::span<const std::string_view> labels;  // the possible answers
};

constexpr const char* kItemsMove =
    "\nIf a person got an item in the first location and travelled to the second location the item "
    "is also in the second location. If a person dropped an item in the first location and moved "
    "to the second location the item remains in the first location.";

constexpr Words kQa1 = {
    .instruction =
        "I will give you context with the facts about positions of different persons hidden "
        "in some random text and a question. You need to answer the question based only on "
        "the information from the facts. If a person was in different locations, use the "
        "latest location to answer the question.",
    .examples =
        "<example>\n"
        "Charlie went to the hallway. Judith come back to the kitchen. Charlie travelled to "
        "balcony. Where is Charlie?\n"
        "Answer: The most recent location of Charlie is balcony.\n"
        "</example>\n"
        "\n"
        "<example>\n"
        "Alan moved to the garage. Charlie went to the beach. Alan went to the shop. Rouse "
        "travelled to balcony. Where is Alan?\n"
        "Answer: The most recent location of Alan is shop.\n"
        "</example>",
    .format =
        "Always return your answer in the following format: The most recent location of "
        "’person’ is ’location’. Do not write anything else after that.",
    .labels = kRooms};

constexpr Words kQa2 = {
    .instruction =
        "I give you context with the facts about locations and actions of different persons "
        "hidden in some random text and a question.You need to answer the question based "
        "only on the information from the facts.",
    .rule = kItemsMove,
    .examples =
        "<example>\n"
        "Charlie went to the kitchen. Charlie got a bottle. Charlie moved to the balcony. "
        "Where is the bottle?\n"
        "Answer: The bottle is in the balcony.\n"
        "</example>\n"
        "<example>\n"
        "Alan moved to the garage. Alan got a screw driver. Alan moved to the kitchen. Where "
        "is the screw driver?\n"
        "Answer: The screw driver is in the kitchen.\n"
        "</example>",
    .format =
        "Always return your answer in the following format: The ’item’ is in ’location’. Do "
        "not write anything else after that.",
    .labels = kRooms};

constexpr Words kQa3 = {
    .instruction =
        "I give you context with the facts about locations and actions of different persons "
        "hidden in some random text and a question. You need to answer the question based "
        "only on the information from the facts.",
    .rule = kItemsMove,
    .examples =
        "<example>\n"
        "John journeyed to the bedroom. Mary grabbed the apple. Mary went back to the "
        "bathroom. Daniel journeyed to the bedroom. Daniel moved to the garden. Mary "
        "travelled to the kitchen. Where was the apple before the kitchen?\n"
        "Answer: Before the kitchen the apple was in the bathroom.\n"
        "</example>\n"
        "<example>\n"
        "John went back to the bedroom. John went back to the garden. John went back to the "
        "kitchen. Sandra took the football. Sandra travelled to the garden. Sandra journeyed "
        "to the bedroom. Where was the football before the bedroom?\n"
        "Answer: Before the bedroom the football was in the garden.\n"
        "</example>",
    .format =
        "Always return your answer in the following format: Before the $location_1$ the "
        "$item$ was in the $location_2$. Do not write anything else after that.",
    .labels = kRooms};

constexpr Words kQa4 = {
    .instruction =
        "I will give you context with the facts about different people, their location and "
        "actions, hidden in some random text and a question. You need to answer the question "
        "based only on the information from the facts.",
    .examples =
        "<example>\n"
        "The hallway is south of the kitchen. The bedroom is north of the kitchen. What is "
        "the kitchen south of?\n"
        "Answer: bedroom\n"
        "</example>\n"
        "<example>\n"
        "The garden is west of the bedroom. The bedroom is west of the kitchen. What is west "
        "of the bedroom?\n"
        "Answer: garden\n"
        "</example>",
    .format =
        "Your answer should contain only one word - location. Do not write anything else "
        "after that.",
    .labels = kRooms};

constexpr Words kQa5 = {
    .instruction =
        "I will give you context with the facts about locations and their relations hidden "
        "in some random text and a question. You need to answer the question based only on "
        "the information from the facts.",
    .examples =
        "<example>\n"
        "Mary picked up the apple there. Mary gave the apple to Fred. Mary moved to the "
        "bedroom. Bill took the milk there. Who did Mary give the apple to?\n"
        "Answer: Fred\n"
        "</example>\n"
        "<example>\n"
        "Jeff took the football there. Jeff passed the football to Fred. Jeff got the milk "
        "there. Bill travelled to the bedroom. Who gave the football?\n"
        "Answer: Jeff\n"
        "</example>\n"
        "<example>\n"
        "Fred picked up the apple there. Fred handed the apple to Bill. Bill journeyed to "
        "the bedroom. Jeff went back to the garden. What did Fred give to Bill?\n"
        "Answer: apple\n"
        "</example>",
    .format =
        "Your answer should contain only one word. Do not write anything else after that. Do "
        "not explain your answer.",
    .labels = kNames};

// The questions of a file in the order in which samples take them.
class Questions {
 public:
  Questions(const std::filesystem::path& file, uint64_t seed) : questions_(ReadBabi(file)) {
    Draws(seed, 0, "babilong: order").Shuffle(questions_);
  }

  // A question whose facts leave tokens for other text. The original's limit is a fact for every 8
  // tokens.
  const BabiQuestion& At(const SamplePlace& place) const {
    const int64_t max_facts = place.length_tokens / 8;
    int64_t passed = 0;
    for (const BabiQuestion& question : questions_) {
      if (std::ssize(question.facts) <= max_facts && passed++ == place.index) return question;
    }
    Throw(ErrorKind::kInput,
          "questions of at most {} facts, which fit into samples of {} tokens: expected {} or "
          "more, found {}",
          max_facts, place.length_tokens, place.index + 1, passed);
  }

 private:
  std::vector<BabiQuestion> questions_;
};

template <const Words& kWords>
SampleMaker Open(const SuiteInputs& inputs, const PieceMaker& pieces) {
  return [seed = inputs.seed, max_new_tokens = inputs.max_new_tokens, &pieces,
          questions = Questions(BabiFile(inputs.folder, inputs.task), inputs.seed),
          hay = Haystack::Sentences(pieces, inputs.texts)](const SamplePlace& place) mutable {
    const BabiQuestion& asked = questions.At(place);
    Draws draws(seed, place.index, "babilong");
    hay.BeginAt(draws.Below(hay.count()));
    HaystackSample parts{
        .words = {.before = fmt::format("{}{}\n\n{}\n\n{}\n\n<context>\n", kWords.instruction,
                                        kWords.rule, kWords.examples, kWords.format),
                  .question = fmt::format("\n</context>\n\nQuestion: {}", asked.question),
                  .answer = ""},
        .needles = asked.facts,
        .depths = {},
        .max_new_tokens = max_new_tokens};
    for (size_t i = 0; i < asked.facts.size(); ++i) parts.depths.push_back(draws.Percent());
    std::ranges::sort(parts.depths);
    Sample sample{
        .question = asked.question, .expected = {asked.answer}, .max_new_tokens = max_new_tokens};
    HideIn(pieces, hay, parts, place.length_tokens, sample);
    std::vector<TokenSpan> supporting;
    for (const size_t fact : asked.supporting) supporting.push_back(sample.needles[fact]);
    sample.needles = std::move(supporting);
    return sample;
  };
}

template <const Words& kWords>
double Score(std::string_view answer, const Sample& sample) {
  return IsOnlyLabel(answer, sample.expected.front(), sample.question, kWords.labels) ? 1 : 0;
}

template <const Words& kWords>
constexpr Suite BabilongSuite(std::string_view name) {
  return {"babilong",          name, HayText::kNeeded, "the stories of en-10k of bAbI",
          /*has_depth=*/false, 20,   Open<kWords>,     Score<kWords>};
}

constexpr Suite kSuites[] = {BabilongSuite<kQa1>("qa1"), BabilongSuite<kQa2>("qa2"),
                             BabilongSuite<kQa3>("qa3"), BabilongSuite<kQa4>("qa4"),
                             BabilongSuite<kQa5>("qa5")};

}  // namespace
}  // namespace godwit::eval::babilong

namespace godwit::eval {

std::span<const Suite> BabilongSuites() { return babilong::kSuites; }

}  // namespace godwit::eval
