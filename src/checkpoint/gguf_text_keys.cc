#include "checkpoint/gguf_text_keys.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "text/vocabulary_of_json.h"

namespace godwit {
namespace {

void PutVocabulary(const Vocabulary& vocabulary, GgufKeys& keys) {
  const bool byte_level = vocabulary.kind == VocabularyKind::kByteLevelBpe;
  keys.Text("tokenizer.ggml.model", byte_level ? "gpt2" : "llama");
  keys.Text("tokenizer.ggml.pre", byte_level ? vocabulary.pre_tokenizer : "default");
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<int32_t> kinds;
  for (const VocabularyToken& token : vocabulary.tokens) {
    texts.push_back(token.text);
    scores.push_back(token.score);
    kinds.push_back(static_cast<int32_t>(token.kind));
  }
  keys.Texts("tokenizer.ggml.tokens", texts);
  keys.I32s("tokenizer.ggml.token_type", kinds);
  if (byte_level) {
    keys.Texts("tokenizer.ggml.merges", vocabulary.merges);
  } else {
    keys.F32s("tokenizer.ggml.scores", scores);
    keys.Bool("tokenizer.ggml.add_space_prefix", vocabulary.space_prefix == SpacePrefix::kStretch);
  }
  keys.Bool("tokenizer.ggml.add_bos_token", vocabulary.add_bos.value_or(false));
  keys.Bool("tokenizer.ggml.add_eos_token", vocabulary.add_eos.value_or(false));
}

// Adds ids of tokens that have a role.
void PutRoles(const ModelFolder& model, const Vocabulary& vocabulary, GgufKeys& keys) {
  const TokenizerConfig& config = model.tokenizer_config();
  const Tokenizer& tokenizer = *model.tokenizer();
  const auto named = [&](const char* role) -> std::optional<int32_t> {
    const auto found = config.named_tokens.find(role);
    if (found == config.named_tokens.end()) return std::nullopt;
    return tokenizer.TokenToId(found->second);
  };
  const auto put = [&](const char* role, std::optional<int32_t> id) {
    if (id) keys.U32(fmt::format("tokenizer.ggml.{}_token_id", role), *id);
  };
  const SpecialTokens special = model.special_tokens();
  const auto first_of = [](std::optional<int32_t> a, std::optional<int32_t> b) {
    return a ? a : b;
  };
  put("bos", first_of(vocabulary.bos_id, first_of(named("bos_token"), special.bos_id)));
  std::optional<int32_t> eos = first_of(vocabulary.eos_id, named("eos_token"));
  if (!eos && !special.eos_ids.empty()) eos = special.eos_ids.front();
  put("eos", eos);
  // GGUF has keys for two more tokens that end a text.
  const char* const kMore[] = {"eot", "eom"};
  size_t used = 0;
  for (const int32_t id : special.eos_ids) {
    if (id != eos && used < std::size(kMore)) put(kMore[used++], id);
  }
  put("unknown", first_of(vocabulary.unk_id, named("unk_token")));
  put("padding", named("pad_token"));
  if (!special.fill) return;
  put("fim_pre", special.fill->prefix);
  put("fim_suf", special.fill->suffix);
  put("fim_mid", special.fill->middle);
}

// Warns of flags that GGUF lacks. Readers of Phi-3's files know its tokens with such flags.
std::vector<std::string> WarningsOf(const Vocabulary& vocabulary) {
  std::vector<std::string> names;
  for (const AddedToken& token : vocabulary.added) {
    if (token.lstrip || token.rstrip || token.single_word) names.push_back(Quote(token.text));
  }
  if (names.empty()) return {};
  return {
      fmt::format("{}: GGUF cannot state the white space that belongs to such tokens, or that they "
                  "stand for whole words",
                  FirstNames(names, 3))};
}

}  // namespace

std::vector<std::string> PutTextKeys(const ModelFolder& model, GgufKeys& keys) {
  if (model.is_gguf()) {
    for (const auto& [key, value] : model.gguf_metadata().values()) {
      if (key.starts_with("tokenizer.")) keys.Copy(key, value);
    }
    return {};
  }
  if (!model.tokenizer_file()) {
    keys.Text("tokenizer.ggml.model", "no_vocab");
    return {"there is no tokenizer, so the GGUF file works with token ids only"};
  }
  const auto file = std::filesystem::path(model.path()) / *model.tokenizer_file();
  const Vocabulary vocabulary = VocabularyOf(*model.tokenizer(), model.tokenizer_json(),
                                             file.native(), model.spec().vocab_size);
  if (std::ssize(vocabulary.tokens) > model.spec().vocab_size) {
    Throw(ErrorKind::kUnsupported,
          "{}: expected at most {} tokens, the rows of the embedding, found {}", file.native(),
          model.spec().vocab_size, vocabulary.tokens.size());
  }
  PutVocabulary(vocabulary, keys);
  PutRoles(model, vocabulary, keys);
  if (const auto chat = model.chat_template()) keys.Text("tokenizer.chat_template", chat->text);
  return WarningsOf(vocabulary);
}

}  // namespace godwit
