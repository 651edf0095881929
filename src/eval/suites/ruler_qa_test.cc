#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "eval/suites/qa_documents.h"
#include "eval/suites/suite_test_support.h"

namespace godwit::eval::ruler_qa_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Two articles. The second has a paragraph of the first, and a question without an answer.
constexpr const char* kSquad = R"({"version": "v2.0", "data": [
  {"title": "A", "paragraphs": [
    {"context": "Alan lives in Rome.", "qas": [
      {"question": "Where does Alan live?", "is_impossible": false,
       "answers": [{"text": "Rome"}, {"text": "in Rome"}, {"text": "Rome"}]}]},
    {"context": "Anna has a cat.", "qas": []}]},
  {"title": "B", "paragraphs": [
    {"context": "Birds fly far.", "qas": [
      {"question": "Do fish fly?", "is_impossible": true, "answers": []},
      {"question": "What flies?", "answers": [{"text": "Birds"}]}]},
    {"context": "Anna has a cat.", "qas": []}]}]})";

constexpr const char* kHotpot = R"([
  {"question": "Are both birds?", "answer": "yes", "type": "comparison",
   "context": [["Godwit", ["It is a bird.", " It flies."]], ["Robin", ["A bird."]],
               ["Robin", ["A bird."]]]},
  {"question": "Who swims?", "answer": "Trout", "context": [["Trout", ["It swims."]]]}])";

TEST(QaDocumentsTest, ParagraphsOfSquad) {
  const TempFolder folder({{"squad.json", kSquad}});
  const QaDocuments all = ReadSquad(folder.path());
  EXPECT_THAT(all.documents,
              ElementsAre("Alan lives in Rome.", "Anna has a cat.", "Birds fly far."));
  ASSERT_EQ(all.questions.size(), 2u);
  EXPECT_EQ(all.questions[0].question, "Where does Alan live?");
  EXPECT_THAT(all.questions[0].answers, ElementsAre("Rome", "in Rome"));
  EXPECT_THAT(all.questions[0].documents, ElementsAre(0));
  EXPECT_THAT(all.questions[0].related, ElementsAre(1));
  EXPECT_EQ(all.questions[1].question, "What flies?");
  EXPECT_THAT(all.questions[1].documents, ElementsAre(2));
}

TEST(QaDocumentsTest, ParagraphsOfHotpotQaBeginWithTheirTitle) {
  const TempFolder folder({{"hotpot_dev_distractor_v1.json", kHotpot}});
  const QaDocuments all = ReadHotpotQa(folder.path());
  EXPECT_THAT(all.documents,
              ElementsAre("Godwit\nIt is a bird. It flies.", "Robin\nA bird.", "Trout\nIt swims."));
  ASSERT_EQ(all.questions.size(), 2u);
  EXPECT_THAT(all.questions[0].documents, ElementsAre(0, 1));
  EXPECT_THAT(all.questions[0].answers, ElementsAre("yes"));
  EXPECT_THAT(all.questions[0].related, IsEmpty());
}

TEST(QaDocumentsTest, BrokenFileIsNamed) {
  const TempFolder folder;
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { ReadSquad(folder.path()); }),
              HasSubstr("expected squad.json or dev-v2.0.json"));
  const auto refused = [&](std::string_view squad) {
    folder.Write("squad.json", squad);
    return ErrorOf(ErrorKind::kFormat, [&] { ReadSquad(folder.path()); });
  };
  EXPECT_THAT(refused(R"({"data": [{"paragraphs": [{"context": "A", "qas": []}]},
                                   {"paragraphs": [{"context": "B"}]}]})"),
              HasSubstr("squad.json: article 1, paragraph 0: expected \"context\" and \"qas\""));
  EXPECT_THAT(refused("[1]"), HasSubstr("squad.json: article 0"));
  EXPECT_THAT(refused(R"({"data": []})"),
              HasSubstr("expected a question with an answer, found none"));
  EXPECT_THAT(refused("{"), HasSubstr("squad.json"));
  folder.Write("hotpotqa.json", R"([{"question": "Q", "answer": "A", "context": [["T"]]}])");
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ReadHotpotQa(folder.path()); }),
              HasSubstr("hotpotqa.json: question 0: expected \"question\", \"answer\""));
}

class RulerQaTest : public ::testing::Test {
 protected:
  Sample Make(std::string_view task, const SamplePlace& place, uint64_t seed = 0) {
    return ByteSuite(FindSuite("ruler", task),
                     {.seed = seed, .max_new_tokens = 10, .folder = folder_.path().string()})
        .Make(place);
  }

  const TempFolder folder_{{"dev-v2.0.json", kSquad}, {"hotpotqa.json", kHotpot}};
};

// A third document would not fit.
TEST_F(RulerQaTest, TheNeededDocumentStandsAmongAsManyOthersAsFit) {
  const Sample sample = Make("qa_1", {.length_tokens = 370});
  EXPECT_EQ(TextOf(sample.prompt),
            "Answer the question based on the given documents. Only give me the answer and do not "
            "output any other words.\n\nThe following are given documents.\n\n"
            "Document 1:\nAnna has a cat.\n\n"
            "Document 2:\nBirds fly far.\n\n"
            "Answer the question based on the given documents. Only give me the answer and do not "
            "output any other words.\n\nQuestion: What flies? Answer:");
  EXPECT_LE(std::ssize(sample.prompt) + 10, 370);
}

TEST_F(RulerQaTest, TheNeedlesAreTheNeededDocuments) {
  for (const int64_t index : {0, 1}) {
    const Sample sample = Make("qa_2", {.length_tokens = 390, .index = index});
    std::vector<std::string> needles;
    for (size_t i = 0; i < sample.needles.size(); ++i) needles.push_back(NeedleOf(sample, i));
    if (sample.expected.front() == "yes") {
      EXPECT_THAT(needles, UnorderedElementsAre("Godwit\nIt is a bird. It flies.\n\n",
                                                "Robin\nA bird.\n\n"));
    } else {
      EXPECT_THAT(needles, ElementsAre("Trout\nIt swims.\n\n"));
    }
  }
}

TEST_F(RulerQaTest, MissingQuestionsAreRefusedWithNumbers) {
  const auto refused = [&](const SamplePlace& place) {
    return ErrorOf(ErrorKind::kInput, [&] { Make("qa_1", place); });
  };
  EXPECT_THAT(refused({.length_tokens = 400, .index = 2}),
              HasSubstr("questions with an answer: expected 3 or more, found 2"));
  EXPECT_THAT(refused({.length_tokens = 320}),
              HasSubstr("a sample of 320 tokens is too short for its question"));
  EXPECT_THAT(refused({.length_tokens = 3000}),
              AllOf(HasSubstr("a sample of 3000 tokens needs "), HasSubstr("give more documents")));
}

TEST_F(RulerQaTest, AnyOfTheAnswersIsRight) {
  const Suite& suite = FindSuite("ruler", "qa_1");
  const Sample sample{.expected = {"in Rome", "Rome"}};
  EXPECT_EQ(suite.score(" ROME, I think", sample), 1);
  EXPECT_EQ(suite.score(" Paris", sample), 0);
}

}  // namespace
}  // namespace godwit::eval::ruler_qa_test
