// The published tokenizers of real models, converted to GGUF's form and back. They give the ids of
// their tokenizer.json, on the texts of ../shared and on texts made to be hard.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "base/test_folder.h"
#include "base/utf8.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"
#include "text/vocabulary.h"
#include "text/vocabulary_test_support.h"

namespace godwit::real_vocabularies_test {
namespace {

struct Real {
  std::string folder;
  std::string pre_tokenizer;  // empty for SentencePiece
  SpacePrefix space_prefix = SpacePrefix::kNone;
};

// Bytes of a corpus. On 2026-11-25 all of it, and a novel, gave the same ids, in two minutes.
constexpr size_t kMaxBytes = 100'000;

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

// Expects the merges that follow from scores, in the order of the file.
void ExpectSameMerges(const Vocabulary& vocabulary, const std::filesystem::path& file) {
  const auto of = [](const std::string& json) {
    auto merges = ParseJson(json, "tokenizer.json")["model"]["merges"];
    for (auto& merge : merges) {
      if (merge.is_array()) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    }
    return merges;
  };
  // EXPECT_EQ would print the merges.
  EXPECT_TRUE(of(TokenizerJson(vocabulary, "made")) == of(ReadFile(file)));
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
TEST_P(RealVocabulary, RELEASE_GivesTheIdsOfItsTokenizerJson) {
  const Real& real = GetParam();
  const auto file = SharedTokenizers() / real.folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    GTEST_SKIP() << "the real tokenizers of ../shared/data/tokenizers are not on this machine";
  }
  Vocabulary vocabulary =
      VocabularyOfTokenizerJson(ParseJson(ReadFile(file), file.string()),
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

  if (vocabulary.kind == VocabularyKind::kSentencePieceBpe) ExpectSameMerges(vocabulary, file);
  EXPECT_EQ(made->VocabSize(), original->VocabSize());
  const auto cases = ReadJson(TestData() / "tokenizers/real_cases.json").at(real.folder);
  EXPECT_GE(cases.size(), 15);
  for (const auto& each : cases) {
    const auto text = each["text"].get<std::string>();
    ExpectSameIds(*made, *original, text);
    const auto ids = made->Encode(text, true);
    EXPECT_EQ(made->Decode(ids, true), original->Decode(ids, true));
  }
  ExpectSameIds(*made, *original,
                ReadFile(SharedTokenizers() / "golden/ggml-vocab-gpt-2.gguf.inp"));
  for (const char* corpus : {"wikitext-2/wiki.test.raw", "chat/mt_bench_reference_gpt4.jsonl"}) {
    const std::string text = ReadFile(SharedTokenizers() / "../corpora" / corpus);
    ExpectSameIds(*made, *original, std::string(FirstCharacters(text, kMaxBytes)));
  }
  for (int32_t id = 0; id < original->VocabSize(); ++id) {
    ASSERT_EQ(made->IdToToken(id), original->IdToToken(id));
    ASSERT_EQ(made->IsSpecial(id), original->IsSpecial(id)) << id;
  }
}

// The two files that Qwen and GPT-2 were published with, made from their tokenizer.json.
TEST(RealVocabularies, RELEASE_VocabJsonWithMergesGivesTheSameIds) {
  for (const std::string folder : {"gpt2", "qwen2", "qwen2.5"}) {
    const auto file = SharedTokenizers() / folder / "tokenizer.json";
    if (!std::filesystem::exists(file)) {
      GTEST_SKIP() << "the real tokenizers of ../shared/data/tokenizers are not on this machine";
    }
    const std::string text = ReadFile(file);
    const auto json = ParseJson(text, file.string());
    std::string merges = "#version: 0.2\n";
    for (const auto& merge : json["model"]["merges"]) merges += merge.get<std::string>() + "\n";
    const auto config = SharedTokenizers() / folder / "tokenizer_config.json";
    const TempFolder made(
        {{"vocab.json", DumpJson(json["model"]["vocab"])},
         {"merges.txt", merges},
         {"tokenizer_config.json",
          folder == "gpt2" ? R"({"tokenizer_class": "GPT2Tokenizer"})" : ReadFile(config)}});
    const auto original = ParseTokenizer(text, file.string());
    const auto tokenizer = LoadTokenizer(made.path());
    EXPECT_EQ(tokenizer->VocabSize(), original->VocabSize());
    for (const char* sample : {"wikitext-2/wiki.test.raw", "chat/mt_bench_reference_gpt4.jsonl"}) {
      const std::string corpus = ReadFile(SharedTokenizers() / "../corpora" / sample);
      ExpectSameIds(*tokenizer, *original, std::string(FirstCharacters(corpus, kMaxBytes)));
    }
    ExpectSameIds(*tokenizer, *original,
                  "<|im_start|>user\nHi<|im_end|>\n<|endoftext|> <tool_call>");
  }
}

}  // namespace
}  // namespace godwit::real_vocabularies_test
