// godwit tokenize: text to token ids, and back. It reads the tokenizer, not the weights.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/model_folder.h"
#include "cli/commands.h"
#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/options/escape.h"
#include "console/options/text_input.h"
#include "console/terminal/output.h"

namespace godwit::cli {
namespace {

struct TokenizeOptions {
  ModelOptions model;
  console::TextInput text;
  bool ids = false;
  bool plain = false;
  std::optional<std::string> decode;
};

void ParseTokenize(std::span<const std::string> arguments, TokenizeOptions& options) {
  console::CommandLine line("tokenize", "[-m MODEL] [-p TEXT | -f FILE] [flags]",
                            "Prints the tokens of a text, one on each line: the id, and the token "
                            "as the vocabulary spells it.");
  AddModelFlag(line, options.model);
  line.Group("Text");
  console::AddTextFlags(line, options.text, "the text");
  line.Add({.names = "--decode",
            .value = "IDS",
            .help = "print the text of these token ids instead, such as 1,2,3"},
           options.decode);
  line.Exclusive({"--decode", "--prompt", "--file"});
  line.Group("Form");
  line.Add({.names = "--ids", .value = "", .help = "print one JSON list of ids"}, options.ids);
  line.Add({.names = "--no-bos,--no-special",
            .value = "",
            .help = "leave out tokens that the tokenizer adds to every text, such as BOS"},
           options.plain);
  for (const char* other : {"--ids", "--no-bos"}) line.Exclusive({"--decode", other});
  line.Parse(arguments);
}

// Refuses an id without a token: embedding matrices have such ids behind the vocabulary and inside
// it.
void RequireToken(const Tokenizer& tokenizer, int32_t id) {
  if (tokenizer.IdToToken(id)) return;
  Throw(ErrorKind::kInput, "--decode: no token has the id {}; the highest id is {}", id,
        tokenizer.VocabSize() - 1);
}

std::string Listing(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) {
    text +=
        fmt::format("{} '{}'\n", id, console::ShowEscapes(tokenizer.IdToToken(id).value_or("")));
  }
  return text;
}

}  // namespace

int Tokenize(std::span<const std::string> arguments) {
  TokenizeOptions options;
  ParseTokenize(arguments, options);
  ChooseModel(options.model);
  const ModelFolder model(options.model.folder);
  model.RequireTokenizer();
  if (options.decode) {
    const auto ids = console::ParseTokens(*options.decode);
    const auto tokenizer = model.tokenizer();
    for (const int32_t id : ids) RequireToken(*tokenizer, id);
    const std::string text = tokenizer->Decode(ids, /*skip_special_tokens=*/false);
    console::WriteOutput(console::OutputIsTerminal() ? text + "\n" : text);
    return console::kExitOk;
  }
  const std::string text = console::RequireText(options.text);
  const auto tokenizer = model.tokenizer();
  const auto ids = tokenizer->Encode(text, /*add_special_tokens=*/!options.plain);
  console::WriteOutput(options.ids ? nlohmann::json(ids).dump() + "\n" : Listing(*tokenizer, ids));
  return console::kExitOk;
}

}  // namespace godwit::cli
