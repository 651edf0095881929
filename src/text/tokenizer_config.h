// What a model folder says about its tokens beside tokenizer.json: tokenizer_config.json, completed
// by special_tokens_map.json, chat_template.jinja and the token ids of the model's config files.
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
  // The source of the chat template: chat_template.jinja, else "chat_template" of
  // tokenizer_config.json, where it is a list the one named "default".
  std::optional<std::string> chat_template;
  std::string chat_template_file;  // where it was found
  // From generation_config.json, else from config.json.
  std::optional<int32_t> bos_id;
  std::vector<int32_t> eos_ids;
};

// vocab_size: of the model, where it is known; ids of the config files must lie below. Throws
// Error(kFormat) that names the file and the key, and Error(kIo).
TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder,
                                    int64_t vocab_size = int64_t{1} << 31);

}  // namespace godwit
