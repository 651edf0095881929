// The published tokenizers of real models, against ids made by llama.cpp (the golden files of
// ../shared) and by Python's tokenizers (tools/make_tokenizer_data.py).
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"

namespace godwit::real_tokenizers_test {
namespace {

using Ids = std::vector<int32_t>;

struct Real {
  std::string folder;
  std::string golden;  // ggml-vocab-<golden>.gguf.inp and .out; may be empty
  Ids frame;           // ids of an empty prompt
};

std::string ParamName(const ::testing::TestParamInfo<Real>& info) {
  return TestName(info.param.folder);
}

std::vector<std::string> SplitGolden(const std::string& text) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> parts;
  size_t at = 0;
  for (size_t end; (end = text.find(separator, at)) != std::string::npos;) {
    parts.push_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

void ExpectGoldenIds(const Tokenizer& tokenizer, const std::string& golden) {
  const auto stem = SharedTokenizers() / "golden" / ("ggml-vocab-" + golden + ".gguf");
  const std::vector<std::string> texts = SplitGolden(ReadFile(stem.string() + ".inp"));
  std::istringstream lines(ReadFile(stem.string() + ".out"));
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_LT(count, texts.size());
    std::istringstream numbers(line);
    Ids expected;
    for (int32_t id; numbers >> id;) expected.push_back(id);
    EXPECT_EQ(tokenizer.Encode(texts[count], /*add_special_tokens=*/false), expected)
        << "text " << count << ": " << ::testing::PrintToString(texts[count]);
  }
  EXPECT_GE(count, 40);
}

void ExpectHuggingFace(const Tokenizer& tokenizer, const std::string& folder) {
  const auto all = ReadJson(TestData() / "tokenizers/real_cases.json");
  ASSERT_TRUE(all.contains(folder)) << "run tools/make_tokenizer_data.py";
  for (const auto& expected : all[folder]) {
    const Ids ids = tokenizer.Encode(expected["text"].get<std::string>(), true);
    EXPECT_EQ(ids, expected["ids"].get<Ids>()) << expected["text"];
    EXPECT_EQ(tokenizer.Decode(ids, /*skip_special_tokens=*/false), expected["decoded"]);
  }
}

void ExpectStreamsAddUp(const Tokenizer& tokenizer) {
  std::mt19937 random(11);
  const int32_t size = tokenizer.VocabSize();
  const auto stream = tokenizer.NewStream(/*skip_special_tokens=*/true);
  for (int round = 0; round < 300; ++round) {
    Ids ids(1 + random() % 40);
    const auto low = static_cast<int32_t>(random() % size);
    const auto width = round % 3 == 0 ? size : static_cast<int32_t>(1 + random() % 300);
    for (int32_t& id : ids) id = (low + static_cast<int32_t>(random() % width)) % size;
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = stream->Push(id);
      ASSERT_EQ(ReplaceInvalidUtf8(piece), piece);
      text += piece;
    }
    ASSERT_EQ(text + stream->Flush(), tokenizer.Decode(ids, true));
  }
}

void ExpectAnyBytes(const Tokenizer& tokenizer) {
  std::string text;
  while (text.size() < (size_t{1} << 20)) text += "The godwit flies 11,000 km über das Meer. 🐦\n";
  // EXPECT_EQ would print the texts.
  EXPECT_TRUE(tokenizer.Decode(tokenizer.Encode(text, false), false) == text);
  const std::string bytes = "a\xff\xe2\x82z\xf0\x9f";
  EXPECT_EQ(tokenizer.Encode(bytes, true), tokenizer.Encode(ReplaceInvalidUtf8(bytes), true));
}

class RealTokenizer : public ::testing::TestWithParam<Real> {};

INSTANTIATE_TEST_SUITE_P(
    All, RealTokenizer,
    ::testing::Values(Real{"falcon", "falcon", {}}, Real{"gpt2", "gpt-2", {}},
                      Real{"gpt-neox", "mpt", {}}, Real{"llama-2", "llama-spm", {1}},
                      // The first release of Llama 3 adds nothing.
                      Real{"llama-3", "llama-bpe", {}}, Real{"llama-3.1", "llama-bpe", {128000}},
                      Real{"mistral-7b-v0.1", "", {1}}, Real{"opt-roberta", "roberta-bpe", {0, 2}},
                      Real{"phi-3-mini", "phi-3", {}}, Real{"qwen2", "qwen2", {}},
                      Real{"qwen2.5", "qwen2", {}}),
    ParamName);

// One test, since loading takes as long as all the rest.
TEST_P(RealTokenizer, DoesWhatHuggingFaceDoes) {
  const Real& real = GetParam();
  if (!std::filesystem::exists(SharedTokenizers() / real.folder / "tokenizer.json")) {
    GTEST_SKIP() << "the real tokenizers of ../shared/data/tokenizers are not on this machine";
  }
  const auto tokenizer = LoadTokenizer(SharedTokenizers() / real.folder);
  if (!real.golden.empty()) ExpectGoldenIds(*tokenizer, real.golden);
  ExpectHuggingFace(*tokenizer, real.folder);
  EXPECT_EQ(tokenizer->Encode("", true), real.frame);
  ExpectStreamsAddUp(*tokenizer);
  ExpectAnyBytes(*tokenizer);
}

TEST(RealTokenizers, OldAndNewLayoutsAreTheSameTokenizer) {
  const auto file = SharedTokenizers() / "gpt2/tokenizer.new-format.json";
  if (!std::filesystem::exists(file)) {
    GTEST_SKIP() << "the real tokenizers of ../shared/data/tokenizers are not on this machine";
  }
  ExpectHuggingFace(*ParseTokenizer(ReadFile(file), file.string()), "gpt2");
}

}  // namespace
}  // namespace godwit::real_tokenizers_test
