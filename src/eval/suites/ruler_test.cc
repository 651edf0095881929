// The tasks of RULER that count and follow: their exact words, and frequencies that follow the
// original's formulas.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "base/test_support.h"
#include "eval/suites/suite_test_support.h"

namespace godwit::eval::ruler_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Sample Make(std::string_view task, int64_t length, int64_t index = 0, uint64_t seed = 0) {
  return ByteSuite(FindSuite("ruler", task), {.seed = seed})
      .Make({.length_tokens = length, .index = index});
}

// The last passage between the two, which is the sample's own.
std::string Between(const std::string& text, std::string_view begin, std::string_view end) {
  const size_t from = text.rfind(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

// How often each word stands in a text.
std::map<std::string, int64_t> CountsOf(const std::string& text) {
  std::map<std::string, int64_t> counts;
  std::istringstream words(text);
  for (std::string word; words >> word;) ++counts[word];
  return counts;
}

class RulerTask : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Tasks, RulerTask, ::testing::Values("vt", "cwe", "fwe"));

TEST_P(RulerTask, TakesAllOfItsLengthAndNoMore) {
  const int64_t max_new_tokens = FindSuite("ruler", GetParam()).max_new_tokens;
  for (const int64_t length : {2000, 2111, 4095, 7000, 9000}) {
    const auto tokens = std::ssize(Make(GetParam(), length).prompt) + max_new_tokens;
    EXPECT_LE(tokens, length);
    EXPECT_GT(tokens, length - 130);  // a line of noise, a word three times with its numbers
  }
}

TEST_P(RulerTask, SeedAndIndexDecideWhatIsAskedFor) {
  const Sample sample = Make(GetParam(), 3000);
  EXPECT_EQ(sample.prompt, Make(GetParam(), 3000).prompt);
  EXPECT_EQ(sample.expected, Make(GetParam(), 3500).expected);
  EXPECT_NE(sample.expected, Make(GetParam(), 3000, 1).expected);
  EXPECT_NE(sample.expected, Make(GetParam(), 3000, 0, 1).expected);
}

TEST_P(RulerTask, OverlongSampleIsRefusedWithNumbers) {
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [] { Make(GetParam(), 300); }),
              HasSubstr("a sample of 300 tokens is too short for its question"));
}

TEST(RulerTrackingTest, Golden) {
  EXPECT_EQ(TextOf(Make("vt", 1500).prompt),
            "Memorize and track the chain(s) of variable assignment hidden in the following text.\n"
            "\n"
            "VAR XLV = 21457\n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "VAR EES = VAR XLV \n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "VAR CUP = VAR EES \n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "VAR NDX = VAR CUP \n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "VAR NIV = VAR NDX \n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "Question: Find all variables that are assigned the value 21457 in the text above. "
            "Answer: According to the chain(s) of variable assignment in the text above, 5 "
            "variables are assigned the value 21457, they are:  XLV EES CUP NDX NIV\n"
            "\n"
            "Memorize and track the chain(s) of variable assignment hidden in the following text.\n"
            "\n"
            "VAR KGWPN = 17143\n"
            "VAR HXKBH = VAR KGWPN \n"
            "VAR VRWGY = VAR HXKBH \n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "VAR RKWMO = VAR VRWGY \n"
            "VAR PLXKN = VAR RKWMO \n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "Question: Find all variables that are assigned the value 17143 in the text above. "
            "Answer: According to the chain(s) of variable assignment in the text above, 5 "
            "variables are assigned the value 17143, they are: ");
}

TEST(RulerTrackingTest, TheChainStandsInItsOrder) {
  const Sample sample = Make("vt", 4000);
  const std::string text = TextOf(sample.prompt);
  ASSERT_EQ(sample.needles.size(), 5u);
  EXPECT_THAT(NeedleOf(sample, 0), StartsWith("VAR " + sample.expected[0] + " = "));
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(NeedleOf(sample, i),
              fmt::format("VAR {} = VAR {} \n", sample.expected[i], sample.expected[i - 1]));
    EXPECT_GT(sample.needles[i].begin, sample.needles[i - 1].begin);
  }
}

TEST(RulerCommonWordsTest, Golden) {
  EXPECT_EQ(TextOf(Make("cwe", 1900).prompt),
            "Below is a numbered list of words. In these words, some appear more often than "
            "others. Memorize the ones that appear most often.\n"
            "1. notebook 2. book 3. wolf 4. thumb 5. jewel 6. high 7. flaky 8. gritty 9. high 10. "
            "orchard 11. peppy 12. high 13. book 14. bear 15. caper 16. camel 17. sandal 18. "
            "notebook 19. tidy 20. exotic 21. button 22. tidy 23. sandal 24. caper 25. orchard 26. "
            "violet 27. gritty 28. sandal 29. caper 30. steep 31. weak 32. orchard 33. book 34. "
            "exotic 35. notebook 36. tidy 37. peppy 38. exotic 39. gritty 40. peppy\n"
            "Question: What are the 10 most common words in the above list? Answer: The top 10 "
            "words that appear most often in the list are: 1. book 2. tidy 3. caper 4. orchard 5. "
            "exotic 6. sandal 7. high 8. notebook 9. gritty 10. peppy\n"
            "Below is a numbered list of words. In these words, some appear more often than "
            "others. Memorize the ones that appear most often.\n"
            "1. crimson 2. elder 3. coffee 4. lucky 5. elder 6. iron 7. ship 8. strict 9. earnest "
            "10. iron 11. coffee 12. jelly 13. earnest 14. elder 15. lucky 16. strict 17. jelly "
            "18. elder 19. coffee 20. jelly 21. coffee 22. iron 23. faint 24. blue 25. rain 26. "
            "lucky 27. crimson 28. strict 29. apron 30. spade 31. elder 32. flower 33. rain 34. "
            "faint 35. daily 36. jelly 37. bad 38. faint 39. jelly 40. crimson 41. iron 42. rain "
            "43. sword 44. coffee 45. crimson 46. rain 47. faint 48. golden 49. iron 50. blossom "
            "51. strict 52. elder 53. lucky 54. faint 55. faint 56. rain 57. strict 58. strict 59. "
            "coffee 60. crimson 61. earnest 62. monkey 63. iron 64. tractor 65. puddle 66. lucky "
            "67. lucky 68. earnest 69. sad 70. rain 71. crimson 72. earnest 73. jelly 74. earnest\n"
            "Question: What are the 10 most common words in the above list? Answer: The top 10 "
            "words that appear most often in the list are:");
}

// The counts are 30 and 3; in short texts 6 and 1.
TEST(RulerCommonWordsTest, TenWordsStandThereMoreOftenThanTheOthers) {
  for (const int64_t length : {2000, 9000, 40000}) {
    const Sample sample = Make("cwe", length);
    const std::string text = TextOf(sample.prompt);
    ASSERT_EQ(sample.expected.size(), 10u);
    auto counts = CountsOf(Between(text, "appear most often.\n", "\nQuestion"));
    for (const std::string& word : sample.expected) {
      EXPECT_EQ(counts[word], length < 4096 ? 6 : 30) << word;
      counts.erase(word);
    }
    int64_t others = 0;
    for (const auto& [word, count] : counts) {
      if (word.ends_with('.')) continue;  // a number
      EXPECT_EQ(count, length < 4096 ? 1 : 3) << word;
      ++others;
    }
    EXPECT_GT(others, 20);
    const int64_t items = (length < 4096 ? 60 : 300) + others * (length < 4096 ? 1 : 3);
    EXPECT_THAT(text, HasSubstr(fmt::format(" {}. ", items)));
    EXPECT_EQ(text.find(fmt::format(" {}. ", items + 1)), std::string::npos);
  }
}

TEST(RulerFrequentWordsTest, Golden) {
  EXPECT_EQ(TextOf(Make("fwe", 900).prompt),
            "Read the following coded text and track the frequency of each coded word. Find the "
            "three most frequently appeared coded words. ... ... ... ... dsqhsx ... ... ... ... "
            "osceka ... ... ... ... ... osceka umodua osceka ... osceka osceka ... dsqhsx osceka "
            "osceka osceka ... ... ... ... ... ... ... ... ... lcmnnr ... cmmyyj ... ... ... ... "
            "... ... ... ... ... cmmyyj fafsfx osceka lcmnnr ... ... ... osceka ... ... ... ... "
            "... ... ... ... ... osceka ... ... ... ... cmmyyj osceka ... ... ... ... ... osceka "
            "... osceka dsqhsx ... ... osceka qahqye ... osceka dsqhsx ... dsqhsx ... dsqhsx ... "
            "... cmmyyj dsqhsx ... ...\n"
            "Question: Do not provide any explanation. Please ignore the dots '....'. What are the "
            "three most frequently appeared words in the above coded text? Answer: According to "
            "the coded text above, the three most frequently appeared words are:");
}

TEST(RulerFrequentWordsTest, CountsFallWithTheSquareOfTheRank) {
  const Sample sample = Make("fwe", 40000);
  const auto counts = CountsOf(Between(TextOf(sample.prompt), "coded words. ", "\nQuestion"));
  ASSERT_EQ(sample.expected.size(), 3u);
  std::vector<int64_t> falling;
  for (const auto& [word, count] : counts) falling.push_back(count);
  std::ranges::sort(falling, std::greater());
  EXPECT_EQ(counts.at("..."), falling[0]);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(counts.at(sample.expected[i]), falling[i + 1]);
  EXPECT_GT(falling[3], falling[4]);
  // One number of words explains all counts.
  const double zeta2 = 1.6449340668;
  const auto times = [&](double rank, double words) {
    return std::floor(words / rank / rank / zeta2);
  };
  double words = 0;
  while (times(1, words) < static_cast<double>(falling[0])) ++words;
  while (times(2, words) < static_cast<double>(falling[1])) ++words;
  const auto matches = [&] {
    for (size_t i = 0; i < falling.size(); ++i) {
      if (times(static_cast<double>(i + 1), words) != static_cast<double>(falling[i])) return false;
    }
    return true;
  };
  while (!matches() && times(1, words) <= static_cast<double>(falling[0])) ++words;
  EXPECT_TRUE(matches());
}

}  // namespace
}  // namespace godwit::eval::ruler_test
