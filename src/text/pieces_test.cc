// A text encoded in pieces has the ids of the text encoded at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/cancel.h"
#include "base/test_support.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"

namespace godwit::pieces_test {
namespace {

using Ids = std::vector<int32_t>;

constexpr size_t kWhole = size_t{1} << 40;

std::filesystem::path OwnTokenizers() { return TestData() / "tokenizers"; }

// Every tokenizer.json in the folders of `root`.
std::vector<std::string> TokenizersIn(const std::filesystem::path& root) {
  std::vector<std::string> files;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(root, missing)) {
    for (const char* name : {"tokenizer.json", "tokenizer.new-format.json"}) {
      const auto file = entry.path() / name;
      if (std::filesystem::exists(file)) files.push_back(file.string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string Repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

const std::vector<std::string>& Texts() {
  static const auto* texts = new std::vector<std::string>{
      "",
      "The godwit flies from Alaska to New Zealand without a stop.\nIt's 11,000 km; they'll say "
      "it isn't.\n\n\"Ready?\" she said.\r\n\r\n\tYes! (And no.)\n",
      "for (int i = 0; i < n; ++i) {\n    x[i] += y[i];  // 1/2\n}\n\n\n#include <a/b.h>\n.\n/x\n",
      "鳥は海を越える。\n飛ぶ、休まず。 한국어 문장\n中文字符，没有空格。\n\n第二段\u3000一二三\n",
      "bird 🐦 family 👩‍👩‍👧‍👦 flag 🇳🇿\n skin 👍🏽 a\u00a0b\u2003c "
      "\u2028 "
      "d\u200be\ufefff",
      Repeated(" ", 37) + "a" + Repeated("\n", 23) + "b" + Repeated(" \n", 11) + "c" +
          Repeated("\t ", 9) + Repeated("\r\n", 5) + "  ",
      "<s>hi</s> x<s> y <|end|> \n <tool>\n<|endoftext|>\n\nfoo<|im_start|>user\nbar<|im_end|>\n"
      "baz <mask> <mask>\n<|begin_of_text|>Hello<|eot_id|>\n\n>>TITLE<< a >>ABSTRACT<<\n "
      "<|assistant|>   hi\n<|end|>\nyes<unk> <pad>no<|user|>\n\n x",
      "a  <left> b\n <left>\n<left> <right>  c\n<right>\n\nd<right> \n e <right>\nf <word> "
      "g<word>h g<word> h\n"
      "<word>i <Norm> <NORM>\n<norm>j    k        l\n    m        \n<right>",
      // Composed and decomposed letters in front of, behind and between white space.
      "e\u0301 \u0301a \u0308\n\u0303n\u0303\n\u0327c ﬁ ﬁ\nﬁ ① ⑴\n⑴ Å\u212b\u2126 "
      "\uac00\u1100\u1161\n\u11a8 "
      "ÀÉİı ǅ\u1e9e \u00a8\n\u00a8 ．。\n",
      "\u2581a \u2581 b\u2581\u2581c\u2581\n\u2581 \uffff \uffff\nx \u0120 \ufffd",
      "12345 6789\n0 1 22 333 4444 55555 3.14159\n1,000,000 ①② ४५६ \n7",
      "foo( bar) | baz [ qux ].\n( ( x ) ) ... , ، । ۔ ! ?\n",
      std::string("nul\0bel\a esc\x1b\n\x7f nel\u0085 x", 20),
      "שלום עולם\nمرحبا بالعالم، كيف؟\nनमस्ते दुनिया। ठीक है\nสวัสดีชาวโลก\n",
      Repeated("abc", 60) + " " + Repeated("\u00e9", 90) + Repeated("ab ", 40),
  };
  return *texts;
}

// EXPECT_EQ would print all ids.
void ExpectSamePieces(const std::string& name, const std::string& json,
                      std::initializer_list<size_t> sizes) {
  SCOPED_TRACE(name);
  const auto whole = ParseTokenizer(json, name, {}, kWhole);
  std::string all;
  for (const std::string& text : Texts()) all += text;
  for (const size_t size : sizes) {
    const auto pieces = ParseTokenizer(json, name, {}, size);
    for (const std::string& text : Texts()) {
      EXPECT_TRUE(pieces->Encode(text, true) == whole->Encode(text, true))
          << size << ": " << ::testing::PrintToString(text);
    }
    EXPECT_TRUE(pieces->Encode(all, true) == whole->Encode(all, true)) << size;
  }
}

// Where a text can be cut, the first few ids need no more than a piece.
void ExpectCuts(const std::string& name, const std::string& json) {
  SCOPED_TRACE(name);
  const auto tokenizer = ParseTokenizer(json, name, {}, /*piece_bytes=*/64);
  for (const std::string_view line : {"The godwit flies. It's far,", "\n鳥は海を越える。", "x\n"}) {
    const std::string text = Repeated(line, 1000);
    const auto begin = tokenizer->Encode(text, /*add_special_tokens=*/true, /*max_ids=*/5);
    EXPECT_GT(begin.size(), 5) << line;
    EXPECT_LE(begin.size(), 5 + 128) << line;
  }
}

TEST(Pieces, HaveTheIdsOfTheWhole) {
  const auto files = TokenizersIn(OwnTokenizers());
  ASSERT_GE(files.size(), 8);
  for (const std::string& file : files) {
    auto json = nlohmann::json::parse(ReadFile(file));
    ExpectSamePieces(file, json.dump(), {1, 2, 3, 4, 5, 7, 9, 14, 33, 100});
    // Added tokens and post-processors forbid many a cut. Without them the other parts have to.
    json["added_tokens"] = nlohmann::json::array();
    json["post_processor"] = nullptr;
    ExpectSamePieces(file + " without added tokens", json.dump(), {1, 3, 4, 6, 11, 50});
  }
}

TEST(Pieces, AreCutWhereKnownPatternsAllowIt) {
  const auto file = OwnTokenizers() / "ignore_merges/tokenizer.json";
  for (const std::string_view pattern : {
           R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
           R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
           R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|)"
           R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
           R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
           R"( ?[^(\s|[.,!?…。，、।۔،])]+)",
       }) {
    auto json = nlohmann::json::parse(ReadFile(file));
    json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern;
    ExpectSamePieces(std::string(pattern), json.dump(), {1, 3, 8, 30});
    json["added_tokens"] = nlohmann::json::array();
    json["normalizer"]["type"] = "NFC";
    ExpectSamePieces(std::string(pattern), json.dump(), {1, 5, 17});
    const auto tokenizer = ParseTokenizer(json.dump(), "tokenizer", {}, /*piece_bytes=*/64);
    EXPECT_LT(tokenizer->Encode(Repeated("the bird", 1000), true, /*max_ids=*/5).size(), 200);
  }
}

TEST(Pieces, AreNotCutWhereNothingIsKnown) {
  auto json = nlohmann::json::parse(ReadFile(OwnTokenizers() / "byte_level/tokenizer.json"));
  // The expression takes a whole line, with its white space.
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[^z]+";
  ExpectSamePieces("lines", json.dump(), {1, 30});
}

TEST(Pieces, RELEASE_HaveTheIdsOfTheWholeInRealTokenizers) {
  const auto files = TokenizersIn(SharedTokenizers());
  if (files.empty()) {
    GTEST_SKIP() << "the real tokenizers of ../shared/data/tokenizers are not on this machine";
  }
  for (const std::string& file : files) {
    const std::string json = ReadFile(file);
    ExpectSamePieces(file, json, {6});  // each size loads a vocabulary
    ExpectCuts(file, json);
  }
}

// Several processes encode concurrent texts, and each text gets its own ids.
TEST(Pieces, TextsOfManyThreadsHaveTheirOwnIds) {
  const auto tokenizer = ParseTokenizer(ReadFile(OwnTokenizers() / "byte_level/tokenizer.json"),
                                        "test", {}, /*piece_bytes=*/256);
  std::vector<std::string> texts;
  std::vector<Ids> alone;
  for (int i = 0; i < 6; ++i) {
    texts.push_back(Repeated("A bird of number " + std::to_string(i) + ".\n", 1 << (2 * i)));
    alone.push_back(tokenizer->Encode(texts.back(), false));
  }
  std::vector<Ids> together(texts.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < texts.size(); ++i) {
      threads.emplace_back([&, i] { together[i] = tokenizer->Encode(texts[i], false); });
    }
  }
  EXPECT_EQ(together, alone);
}

TEST(Pieces, ATextWhoseScopeIsCancelledIsNotEncoded) {
  const auto tokenizer =
      ParseTokenizer(ReadFile(OwnTokenizers() / "byte_level/tokenizer.json"), "test");
  CancelToken cancel;
  const CancelScope scope(cancel);
  EXPECT_FALSE(tokenizer->Encode("a", false).empty());
  cancel.Cancel();
  EXPECT_EQ(ErrorOf([&] { tokenizer->Encode("a", false); }).kind(), ErrorKind::kCancelled);
  cancel.Reset();
  EXPECT_FALSE(tokenizer->Encode("a", false).empty());
}

}  // namespace
}  // namespace godwit::pieces_test
