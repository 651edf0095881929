#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "tests/fuzz/survives.h"
#include "text/json_grammar.h"
#include "text/load_tokenizer.h"

namespace godwit::fuzz {
namespace {

constexpr int32_t kEnd = 361;
constexpr int64_t kMaxTokens = 100;

std::filesystem::path Folder() {
  return std::filesystem::path(GODWIT_SOURCE_DIR) / "tests/data/tokenizers/byte_level";
}

// Chooses among the allowed tokens by chance.
int32_t Choose(const std::vector<uint32_t>& allowed, std::mt19937& random) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < 32 * allowed.size(); ++i) {
    if (allowed[i / 32] >> (i % 32) & 1) ids.push_back(static_cast<int32_t>(i));
  }
  Require(!ids.empty(), "something may come");
  if (ids.back() == kEnd) return kEnd;
  return ids[random() % ids.size()];
}

bool IsJson(const std::string& text) {
  try {
    return !nlohmann::json::parse(text).is_discarded();
  } catch (const nlohmann::json::out_of_range&) {
    return true;  // a number that no computer type holds
  } catch (const nlohmann::json::parse_error&) {
    return false;
  }
}

}  // namespace

// A schema of anybody's request: a text that follows it is JSON. The fuzzer does not see into the
// process that checks it, as with templates.
void FuzzJsonSchema(std::span<const uint8_t> input) {
  static const JsonGrammar grammar([] { return ReadTokenizerFile(Folder()); }, {kEnd});
  static const auto tokenizer = LoadTokenizer(Folder());
  const std::string_view schema = AsText(input);
  Survives(schema, [&] {
    const auto matcher = grammar.Match(schema);
    std::mt19937 random(static_cast<uint32_t>(input.size()));
    std::vector<int32_t> tokens;
    while (std::ssize(tokens) < kMaxTokens) {
      const int32_t token = Choose(matcher->Allowed(tokens), random);
      if (token == kEnd) {
        const std::string text = tokenizer->Decode(tokens, /*skip_special_tokens=*/false);
        Require(IsJson(text), "a text that keeps to a schema is JSON");
        return;
      }
      tokens.push_back(token);
    }
  });
}

}  // namespace godwit::fuzz
