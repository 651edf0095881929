#include <algorithm>

#include "tests/fuzz/targets.h"
#include "tests/fuzz/written_file.h"
#include "text/added_tokens.h"
#include "text/tokenizer_config.h"

namespace godwit::fuzz {

void FuzzTokenizerConfig(std::span<const uint8_t> input) {
  static const WrittenFile file("tokenizer_config.json");
  file.Write(input);
  Accepts([&] {
    const TokenizerConfig config = ReadTokenizerConfig(file.folder());
    Require(!config.bos_id && config.eos_ids.empty(), "ids are in other files");
    for (const auto& [name, token] : config.named_tokens) {
      Require(name.ends_with("_token"), "only tokens are named tokens");
    }
  });
  Accepts([&] {
    Vocabulary vocabulary{.tokens = {{.text = "<s>"}, {.text = "</s>"}, {.text = "a"}}};
    AddTokens(file.folder(), {{"bos_token", "<s>"}}, vocabulary);
    const auto is_added = [&](int32_t id) {
      return std::ranges::find(vocabulary.added, id, &AddedToken::id) != vocabulary.added.end();
    };
    Require(!vocabulary.bos_id || is_added(*vocabulary.bos_id), "a role makes an added token");
    Require(!vocabulary.eos_id || is_added(*vocabulary.eos_id), "a role makes an added token");
  });
  Accepts([&] {
    try {
      const auto chat_template = ReadChatTemplate(file.folder());
      Require(!chat_template || chat_template->what.starts_with(file.path().string()),
              "a template says where it was found");
    } catch (const Error& error) {
      // Several templates, none of them the default: the user has to choose.
      if (error.kind() != ErrorKind::kInput) throw;
    }
  });
}

}  // namespace godwit::fuzz
