// The text side of a GGUF file: the model's vocabulary, the tokens that begin and end a text, and
// the chat template.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "text/tokenizer_config.h"
#include "text/vocabulary.h"
#include "weights/gguf_metadata.h"

namespace godwit {

// Throws Error(kUnsupported) for a kind of tokenizer that is not built, Error(kFormat) for lists
// that do not belong together and ids without a token.
Vocabulary GgufVocabulary(const GgufMetadata& metadata);

// The tokenizer's config. vocab_size: of the model; ids that do not lie below are left out, with a
// warning. Ends of a text are eos, eot and eom where there are such keys, and tokens that end a
// turn in known chat templates. Many files name only the token that ended a training document.
TokenizerConfig GgufTokenizerConfig(const GgufMetadata& metadata, int64_t vocab_size);

// As ReadChatTemplate: the model's own, tokenizer.chat_template, is called "default", and another
// "name" is tokenizer.chat_template.name.
std::optional<ChatTemplateSource> GgufChatTemplate(const GgufMetadata& metadata,
                                                   const std::string& choice);

// All of the file, by their names: the model's own, "default", and those that
// tokenizer.chat_templates lists.
std::map<std::string, std::string> GgufChatTemplates(const GgufMetadata& metadata);

}  // namespace godwit
