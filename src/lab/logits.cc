// godwit logits: writes the model's logits, for comparison with other programs.

#include "base/error.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/summary.h"
#include "console/exit_code.h"
#include "console/options/text_input.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/output.h"
#include "console/terminal/output_file.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/result_files.h"
#include "lab/commands.h"
#include "lab/npy.h"

namespace godwit::lab {
namespace {

struct LogitsOptions {
  cli::ModelOptions model;
  console::TextInput text;
  std::optional<std::string> tokens;
  std::string output;
  SessionOptions session;
};

void ParseLogits(std::span<const std::string> arguments, LogitsOptions& options) {
  console::CommandLine line("logits", "[-m MODEL] [-p TEXT | -f FILE] -o FILE.npy [flags]",
                            "Writes the logits of every position, float32 [tokens, vocabulary], as "
                            "NumPy's .npy. Row i predicts the token after token i.");
  cli::AddModelFlag(line, options.model);
  cli::AddComputeFlags(line, options.model);
  line.Group("Text");
  console::AddTextFlags(line, options.text, "the text");
  line.Add(
      {.names = "--tokens", .value = "IDS", .help = "the token ids of the text, such as 1,2,3"},
      options.tokens);
  line.Exclusive({"--tokens", "--prompt", "--file"});
  line.Group("Output");
  line.Add({.names = "-o,--output",
            .value = "FILE",
            .help = "the .npy file to write; it appears when it is complete (-: standard output)"},
           options.output);
  cli::AddKvFlags(line, options.session, options.model.kv_memory);
  line.Parse(arguments);
  cli::ChooseModel(options.model);
  if (options.output.empty()) {
    Throw(ErrorKind::kInput, "a file for the result is needed: name it with -o FILE.npy");
  }
  if (options.output != "-") {
    std::vector<console::NamedFile> inputs{{"-m", options.model.folder}};
    for (const std::string& file : options.text.files) inputs.push_back({"-f", file});
    console::CheckResultFiles({{"-o", options.output}}, inputs);
  } else if (console::OutputIsTerminal()) {
    Throw(
        ErrorKind::kInput,
        "-o -: logits are binary, and standard output is a terminal: redirect it, or name a file");
  }
}

}  // namespace

int Logits(std::span<const std::string> arguments) {
  LogitsOptions options;
  ParseLogits(arguments, options);
  std::vector<int32_t> tokens;
  std::string text;
  if (options.tokens) {
    options.model.needs_text = false;
    tokens = console::ParseTokens(*options.tokens);
  } else {
    text = console::RequirePrompt(options.text);
  }

  const Engine engine = cli::LoadEngine(options.model, options.session);
  Session session = engine.NewSession(options.session);
  if (!options.tokens) tokens = session.Tokenize(text);
  const auto rows = static_cast<int64_t>(tokens.size());

  console::OutputFile file(options.output);
  const std::string header = NpyHeader(rows, engine.vocab_size());
  {
    console::ProgressLine progress("computing logits", console::ProgressUnit::kTokens);
    const console::CancelOnInterrupt cancel(session, /*presses_to_exit=*/2);
    session.Logits(tokens, [&](int64_t position, std::span<const float> logits) {
      // The header is written no earlier, so that a refused request writes nothing.
      if (position == 0) file.Write(std::as_bytes(std::span(header)));
      file.Write(std::as_bytes(logits));
      progress.Update(position + 1, rows);
    });
  }
  file.Commit();
  cli::SayDropped(session.kv());
  if (console::NoticesGoToTerminal() && options.output != "-") {
    console::WriteNotice(
        fmt::format("{}: float32 [{}, {}]\n", options.output, rows, engine.vocab_size()));
  }
  return console::kExitOk;
}

}  // namespace godwit::lab
