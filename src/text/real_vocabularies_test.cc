// The published tokenizers of real models, taken apart as GGUF has them and put together again: the
// same ids as those of their tokenizer.json, on the texts of ../shared and on those made to be
// hard.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"
#include "text/vocabulary.h"
#include "text/vocabulary_test_support.h"

namespace godwit {
namespace {

struct Real {
  std::string folder;
  std::string pre_tokenizer;  // empty for SentencePiece's
  SpacePrefix space_prefix = SpacePrefix::kNone;
};

// Of a corpus. On 2026-11-25 the whole of them, and of a novel, gave the same ids, in two minutes.
constexpr size_t kMostBytes = 100'000;

std::string ParamName(const ::testing::TestParamInfo<Real>& info) {
  return TestName(info.param.folder);
}

void ExpectSameIds(const Tokenizer& made, const Tokenizer& original, const std::string& text) {
  const auto expected = original.Encode(text, /*add_special_tokens=*/true);
  const auto ids = made.Encode(text, /*add_special_tokens=*/true);
  if (ids == expected) return;
  const auto differ = std::ranges::mismatch(ids, expected);
  ADD_FAILURE() << "from id " << differ.in1 - ids.begin() << " of " << expected.size()
                << " on: " << ::testing::PrintToString(text.substr(0, 80));
}

class RealVocabulary : public ::testing::TestWithParam<Real> {};

INSTANTIATE_TEST_SUITE_P(
    All, RealVocabulary,
    ::testing::Values(Real{"falcon", "falcon"}, Real{"gpt2", "gpt-2"}, Real{"gpt-neox", "mpt"},
                      Real{"llama-2", "", SpacePrefix::kStretch}, Real{"llama-3", "llama-bpe"},
                      Real{"llama-3.1", "llama-bpe"},
                      Real{"mistral-7b-v0.1", "", SpacePrefix::kText}, Real{"opt-roberta", "gpt-2"},
                      Real{"phi-3-mini", "", SpacePrefix::kStretch}, Real{"qwen2", "qwen2"},
                      Real{"qwen2.5", "qwen2"}),
    ParamName);

// One test, since making both takes as long as all the rest.
TEST_P(RealVocabulary, GivesTheIdsOfItsTokenizerJson) {
  const Real& real = GetParam();
  const auto file = SharedTokenizers() / real.folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    GTEST_SKIP() << "the real tokenizers of ../shared/data/tokenizers are not on this machine";
  }
  Vocabulary vocabulary = TakeApart(ParseJson(ReadFile(file), file.string()),
                                    real.pre_tokenizer.empty() ? VocabularyKind::kSentencePieceBpe
                                                               : VocabularyKind::kByteLevelBpe);
  const auto original = ParseTokenizer(ReadFile(file), file.string());
  vocabulary.pre_tokenizer = real.pre_tokenizer;
  vocabulary.space_prefix = real.space_prefix;
  const auto frame = original->Encode("", /*add_special_tokens=*/true);
  vocabulary.add_bos = !frame.empty();
  vocabulary.add_eos = frame.size() > 1;
  if (!frame.empty()) vocabulary.bos_id = frame.front(), vocabulary.eos_id = frame.back();
  const auto made = MakeTokenizer(vocabulary, real.folder);

  EXPECT_EQ(made->VocabSize(), original->VocabSize());
  for (const auto& each : ReadJson(TestData() / "tokenizers/real_cases.json")[real.folder]) {
    const auto text = each["text"].get<std::string>();
    ExpectSameIds(*made, *original, text);
    const auto ids = made->Encode(text, true);
    EXPECT_EQ(made->Decode(ids, true), original->Decode(ids, true));
  }
  ExpectSameIds(*made, *original,
                ReadFile(SharedTokenizers() / "golden/ggml-vocab-gpt-2.gguf.inp"));
  for (const char* corpus : {"wikitext-2/wiki.test.raw", "chat/mt_bench_reference_gpt4.jsonl"}) {
    const std::string text = ReadFile(SharedTokenizers() / "../corpora" / corpus);
    ExpectSameIds(*made, *original, std::string(FirstCharacters(text, kMostBytes)));
  }
  for (int32_t id = 0; id < original->VocabSize(); ++id) {
    ASSERT_EQ(made->IdToToken(id), original->IdToToken(id));
    ASSERT_EQ(made->IsSpecial(id), original->IsSpecial(id)) << id;
  }
}

}  // namespace
}  // namespace godwit
