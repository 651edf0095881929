// godwit logits: what the model computes, for anyone who wants to compare.

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/npy.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/text_input.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output.h"
#include "cli/terminal/output_file.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/result_files.h"
#include "cli/terminal/summary.h"
#include "cli/verbs.h"

namespace godwit::cli {
namespace {

struct LogitsOptions {
  ModelOptions model;
  TextInput text;
  std::optional<std::string> tokens;
  std::string output;
  SessionOptions session;
};

void ParseLogits(std::span<const std::string> arguments, LogitsOptions& options) {
  CommandLine line("logits", "[-m MODEL] [-p TEXT | -f FILE] -o FILE.npy [flags]",
                   "Writes the logits of every position, float32 [tokens, vocabulary], as NumPy's "
                   ".npy. Row i is the model's forecast of the token after token i.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  line.Group("Text");
  AddTextFlags(line, options.text, "the text");
  line.Add({.names = "--tokens", .value = "IDS", .help = "or its token ids, as 1,2,3"},
           options.tokens);
  line.Exclusive({"--tokens", "--prompt", "--file"});
  line.Group("Output");
  line.Add({.names = "-o,--output",
            .value = "FILE",
            .help = "the .npy file; it appears when it is complete (-: standard output)"},
           options.output);
  AddKvFlags(line, options.session, options.model.kv_memory);
  line.Parse(arguments);
  ChooseModel(options.model);
  if (options.output.empty()) {
    Throw(ErrorKind::kInput, "a file for the result is needed: name it with -o FILE.npy");
  }
  if (options.output != "-") {
    CheckResultFiles({{"-o", options.output}},
                     {{"-m", options.model.folder}, {"-f", options.text.file}});
  } else if (OutputIsTerminal()) {
    Throw(ErrorKind::kInput, "-o -: the logits are binary, and standard output is a terminal");
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
    tokens = ParseTokens(*options.tokens);
  } else {
    text = RequirePrompt(options.text);
  }

  const Engine engine = LoadEngine(options.model, options.session);
  Session session = engine.NewSession(options.session);
  if (!options.tokens) tokens = session.Tokenize(text);
  const auto rows = static_cast<int64_t>(tokens.size());

  OutputFile file(options.output);
  const std::string header = NpyHeader(rows, engine.vocab_size());
  {
    ProgressLine progress("computing logits", ProgressUnit::kTokens);
    const CancelOnInterrupt cancel(session, /*presses_to_exit=*/2);
    session.Logits(tokens, [&](int64_t position, std::span<const float> logits) {
      // Not earlier: what is refused writes nothing.
      if (position == 0) file.Write(std::as_bytes(std::span(header)));
      file.Write(std::as_bytes(logits));
      progress.Update(position + 1, rows);
    });
  }
  file.Commit();
  SayDropped(session.kv());
  if (NoticesGoToTerminal() && options.output != "-") {
    WriteNotice(fmt::format("{}: float32 [{}, {}]\n", options.output, rows, engine.vocab_size()));
  }
  return kExitOk;
}

}  // namespace godwit::cli
