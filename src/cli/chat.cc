// godwit chat: a conversation in the terminal, or with a script through a pipe.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "chat/answers.h"
#include "chat/codec.h"
#include "chat/plain_dialogue.h"
#include "checkpoint/model_folder.h"
#include "cli/chat/chat_loop.h"
#include "cli/commands.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/template_options.h"
#include "console/exit_code.h"
#include "console/options/help.h"
#include "console/options/input_files.h"
#include "console/options/text_input.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/line_editor.h"
#include "console/terminal/line_source.h"
#include "console/terminal/output.h"

namespace godwit::cli {
namespace {

struct ChatOptions {
  ModelOptions model;
  std::optional<std::string> system;
  std::vector<std::string> files;
  bool lossy = false;
  std::string template_variables = "{}";
  SamplingFlags sampling;
  SessionOptions session;
  int64_t query_tokens = 0;  // 0: those of the last message
  ThoughtsFlag thoughts;
  std::string history = console::DefaultHistoryFile();
};

void ParseChat(std::span<const std::string> arguments, ChatOptions& options) {
  console::CommandLine line("chat", "[-m MODEL] [-f FILE ...] [flags]",
                            "Talks with a chat model. Answers go to standard output, everything "
                            "else to standard error, so that a script can talk through pipes: a "
                            "line in, an answer out. /help lists the commands that can be typed.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  line.Group("Conversation");
  line.Add({.names = "-sys,--system",
            .value = "TEXT",
            .help = "the system message, which the model reads before the conversation"},
           options.system);
  line.Add({.names = "-f,--file",
            .value = "FILE",
            .help = "a file that the first question is about; several files, a folder or a pattern "
                    "are read one after the other. /read FILE does so later",
            .takes_list = true},
           options.files);
  console::AddLossyFlag(line, options.lossy);
  line.Add({.names = "--history",
            .value = "FILE",
            .help = "the file that keeps typed lines for the next run (/dev/null: keep none)",
            .fallback = "~/.local/state/godwit/history"},
           options.history);
  AddTemplateFlags(line, options.model, options.template_variables);
  AddThoughtsFlag(line, options.thoughts);
  AddSamplingFlags(line, options.sampling);
  AddKvFlags(line, options.session, options.model.kv_memory);
  AddCacheFlags(line, options.model.cache);
  AddPrefillFlags(line, options.session, options.query_tokens,
                  fmt::format("the last message, up to {} of them", chat::kQuestionTokens));
  line.Parse(arguments);
  if (options.query_tokens > 0) {
    RequireUseOfQueryTokens(std::span(&options.session.prefill, 1),
                            std::span(&options.session.kv, 1));
  }
  if (std::ranges::find(options.files, "-") != options.files.end()) {
    Throw(ErrorKind::kInput,
          "-f -: standard input is the conversation and cannot be a file, too; godwit run --chat "
          "-f - -p TEXT asks one question about it");
  }
}

template <typename Result, typename... Arguments>
std::function<Result(Arguments...)> Interruptible(std::function<Result(Arguments...)> work) {
  return [work = std::move(work)](Arguments... arguments) {
    CancelToken unused;
    const console::CancelOnInterrupt leave(unused, /*presses_to_exit=*/1);
    return work(arguments...);
  };
}

// While a text is rendered or encoded, Ctrl-C ends the program: a template or tokenizer that
// computes without end leaves nothing to keep.
chat::ChatCodec Interruptible(chat::ChatCodec codec) {
  codec.render = Interruptible(std::move(codec.render));
  codec.encode = Interruptible(std::move(codec.encode));
  return codec;
}

}  // namespace

int Chat(std::span<const std::string> arguments) {
  ChatOptions options;
  ParseChat(arguments, options);
  const bool own_model = options.model.folder.empty();
  ChooseModel(options.model);
  (void)MakeGenerateOptions(options.sampling);  // refuses wrong options before loading
  const bool interactive = console::InputIsTerminal() && console::StatusIsTerminal();
  if (interactive) console::CheckHistoryFile(options.history);
  const bool has_template = HasChatTemplate(options.model);
  if (!has_template) options.sampling.stop.emplace_back(chat::kPlainDialogueStop);
  auto files = console::ReadInputFiles(options.files, options.lossy);
  const ModelFolder model(options.model.folder);
  TakeDraftFlags(options.sampling, options.model);
  const Engine engine = LoadEngine(model, options.model, options.session);
  GenerateOptions generate = MakeGenerateOptions(options.sampling);
  const EffectiveSampler sampler =
      TakeModelDefaults(options.sampling, generate.sampler, engine.sampler_defaults());
  generate.sampler = sampler.options;
  ChatLoop loop(
      engine,
      {.model_folder = options.model.folder,
       .spec = model.spec(),
       .codec = Interruptible(has_template ? chat::CodecOf(engine, options.template_variables)
                                           : chat::PlainDialogue(engine)),
       .system = options.system,
       .files = std::move(files),
       .lossy = options.lossy,
       .generate = std::move(generate),
       .query_tokens = options.query_tokens,
       .thoughts = options.thoughts,
       .sampler = sampler,
       .session = options.session,
       .interactive = interactive});
  if (!has_template) {
    console::WriteStatus(
        console::WrapStatus(
            "godwit: this model has no chat template: it reads a plain dialogue of \"User:\" and "
            "\"Assistant:\" lines, and an answer ends at the next \"User:\"; expect poor answers") +
        "\n");
  }
  if (!interactive) {
    console::PipedLines lines;
    loop.Run(lines);
    return console::kExitOk;
  }
  if (own_model) {
    console::WriteNotice(
        console::WrapStatus(
            "This model tells children's stories only. Try: Tell me a story about a brave cat") +
        "\n");
  }
  console::WriteNotice(console::WrapStatus(fmt::format(
                           "Up to {} tokens. /help for commands, Ctrl-D to leave.",
                           options.session.context_tokens > 0 ? options.session.context_tokens
                                                              : engine.max_context())) +
                       "\n\n");
  console::LineEditor lines(options.history);
  loop.Run(lines);
  return console::kExitOk;
}

}  // namespace godwit::cli
