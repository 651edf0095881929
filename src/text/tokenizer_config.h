// The tokens of a model folder beside tokenizer.json: tokenizer_config.json, completed by
// special_tokens_map.json and the token ids of the model's config files; and the chat templates.
//
// Plain data; nothing here reads tokenizer.json. A file that is absent says nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

struct TokenizerConfig {
  std::string tokenizer_class;  // "LlamaTokenizerFast"; empty where not said
  // "bos_token" -> "<s>", and so on: the named tokens that a chat template may print.
  std::map<std::string, std::string> named_tokens;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  // From generation_config.json, else from config.json.
  std::optional<int32_t> bos_id;
  std::vector<int32_t> eos_ids;
  // The tokens of a GGUF file that frame a hole in a text, as FindFillTokens has them.
  std::map<std::string, int32_t> fill_ids;
  // Warnings about ids outside the vocabulary, which are left out: transformers takes such models,
  // too.
  std::vector<std::string> warnings;
};

// vocab_size: of the model, where it is known. Throws Error(kFormat) that names the file and the
// key of what is no token id, and Error(kIo).
TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder,
                                    int64_t vocab_size = int64_t{1} << 31);

struct ChatTemplateSource {
  std::string text;
  std::string what;  // where it was found, for messages
};

// Reads the model's template called `choice`, else the file `choice`. With an empty choice, it is
// the template called "default", and nullopt for a model that has no template at all. A model's
// templates are chat_template.jinja ("default") and additional_chat_templates/NAME.jinja. Without
// such files they are "chat_template" of tokenizer_config.json: one text, or a list of {"name",
// "template"}. Apart from ReadTokenizerConfig, since nothing but a chat should fail for a broken
// template. Throws Error(kFormat) that names the file and the key, Error(kIo), and Error(kInput)
// that lists the names where neither a template nor a file is called so.
std::optional<ChatTemplateSource> ReadChatTemplate(const std::filesystem::path& folder,
                                                   const std::string& choice = "");

}  // namespace godwit
