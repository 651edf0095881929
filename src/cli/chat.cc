// godwit chat: a conversation in the terminal, or with a script through a pipe.

#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/conversation.h"
#include "cli/exit_code.h"
#include "cli/message_reader.h"
#include "cli/options/help.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/template_options.h"
#include "cli/pinned_messages.h"
#include "cli/plain_dialogue.h"
#include "cli/terminal/format.h"
#include "cli/terminal/generate.h"
#include "cli/terminal/line_editor.h"
#include "cli/terminal/output.h"
#include "cli/terminal/piped_lines.h"
#include "cli/terminal/sampler_summary.h"
#include "cli/terminal/summary.h"
#include "cli/verbs.h"

namespace godwit::cli {
namespace {

struct ChatOptions {
  ModelOptions model;
  std::optional<std::string> system;
  std::string template_variables = "{}";
  SamplingFlags sampling;
  SessionOptions session;
  std::string history = DefaultHistoryFile();
};

void ParseChat(std::span<const std::string> arguments, ChatOptions& options) {
  CommandLine line("chat", "[-m MODEL] [flags]",
                   "Talks with a chat model. Answers go to standard output, everything else to "
                   "standard error, so that a script can talk through pipes: a line in, an answer "
                   "out. /help shows what can be typed besides.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  line.Group("Conversation");
  line.Add({.names = "-sys,--system",
            .value = "TEXT",
            .help = "what the model is told before the conversation"},
           options.system);
  line.Add({.names = "--history",
            .value = "FILE",
            .help = "where typed lines are kept for the next time (/dev/null: nowhere)",
            .fallback = "~/.local/state/godwit/history"},
           options.history);
  AddTemplateFlags(line, options.model, options.template_variables);
  AddSamplingFlags(line, options.sampling);
  AddKvFlags(line, options.session);
  line.Parse(arguments);
}

class ChatLoop {
 public:
  ChatLoop(const Engine& engine, const ChatOptions& options, ChatCodec codec, bool interactive)
      : engine_(engine),
        kv_(options.session),
        session_(engine.NewSession(options.session)),
        conversation_(std::move(codec), options.system),
        generate_(MakeGenerateOptions(options.sampling)),
        sampler_(TakeModelDefaults(options.sampling, generate_.sampler, engine.sampler_defaults())),
        interactive_(interactive) {
    generate_.sampler = sampler_.options;
  }

  void Run(LineSource& lines);

 private:
  struct Command {
    std::string_view name;
    std::string_view usage;
    std::string_view help;
    void (ChatLoop::*run)(const std::string& argument);
  };
  static std::span<const Command> Commands();

  // Whether the message was one.
  bool RunCommand(const std::string& message);
  void ShowHelp(const std::string&);
  void Clear(const std::string&);
  void SetSystem(const std::string& text);
  void Regenerate(const std::string&);
  void Undo(const std::string&);
  void ShowStats(const std::string&);
  void Exit(const std::string&) { done_ = true; }

  void Ask(const std::string& question);
  void Answer();
  void PinMessages();
  void Say(const std::string& text) const { WriteStatus(text + "\n"); }

  const Engine& engine_;
  const SessionOptions kv_;       // as asked for
  std::string kv_spec_ = kv_.kv;  // of the session
  Session session_;
  Conversation conversation_;
  GenerateOptions generate_;
  const EffectiveSampler sampler_;
  const bool interactive_;
  std::optional<GenerateResult> last_;
  bool done_ = false;
};

std::span<const ChatLoop::Command> ChatLoop::Commands() {
  static constexpr Command kCommands[] = {
      {"/help", "/help", "this list", &ChatLoop::ShowHelp},
      {"/clear", "/clear", "begin anew; the system message stays", &ChatLoop::Clear},
      {"/system", "/system TEXT", "tell the model TEXT before the conversation",
       &ChatLoop::SetSystem},
      {"/regen", "/regen", "another answer to the last question", &ChatLoop::Regenerate},
      {"/undo", "/undo", "take back the last question and its answer", &ChatLoop::Undo},
      {"/stats", "/stats", "speed and memory of the last answer", &ChatLoop::ShowStats},
      {"/exit", "/exit", "leave; so does Ctrl-D", &ChatLoop::Exit},
  };
  return kCommands;
}

void ChatLoop::ShowHelp(const std::string&) {
  const auto columns = static_cast<size_t>(StatusColumns());
  std::string text;
  for (const Command& command : Commands()) text += HelpEntry(command.usage, command.help, columns);
  Say(text + "\n" +
      Wrap("A line that ends with \\ goes on in the next one; \"\"\" before and after takes any "
           "number of lines. Ctrl-C stops an answer.",
           columns));
}

void ChatLoop::Clear(const std::string&) {
  conversation_.Clear();
  last_.reset();
  if (interactive_) Say("(a new conversation)");
}

void ChatLoop::SetSystem(const std::string& text) {
  if (text.empty()) {
    Say(conversation_.system() ? "(system: " + *conversation_.system() + ")"
                               : "(no system message; /system TEXT sets one)");
    return;
  }
  conversation_.SetSystem(text);
  if (interactive_) Say("(from now on, for the whole conversation)");
}

void ChatLoop::Regenerate(const std::string&) {
  if (!conversation_.Retry()) {
    Say("(there is no answer yet)");
    return;
  }
  ++generate_.sequence;  // other random choices
  Answer();
}

void ChatLoop::Undo(const std::string&) {
  if (!conversation_.Undo()) {
    Say("(there is nothing to take back)");
  } else if (interactive_) {
    const auto left = static_cast<int64_t>(conversation_.messages().size() / 2);
    Say(fmt::format("(taken back; {} left before it)", Plural(left, "question")));
  }
}

void ChatLoop::ShowStats(const std::string&) {
  Say((last_ ? Summarize(*last_) : "(no answer yet)\n") + "sampler " + DescribeSampler(sampler_));
}

bool ChatLoop::RunCommand(const std::string& message) {
  const std::string name = message.substr(0, message.find_first_of(" \t"));
  // "/usr/bin is a folder" is a message.
  if (!name.starts_with('/') || name.find('/', 1) != std::string::npos || name.size() < 2) {
    return false;
  }
  const size_t argument = message.find_first_not_of(" \t", name.size());
  for (const Command& command : Commands()) {
    if (command.name != name) continue;
    (this->*command.run)(argument == std::string::npos ? "" : message.substr(argument));
    return true;
  }
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  const auto nearest = Nearest(name, names);
  Throw(ErrorKind::kInput, "unknown command {}; {} (a message may begin with it inside \"\"\")",
        Quote(name), nearest ? "did you mean " + *nearest + "?" : "see /help");
}

void ChatLoop::Ask(const std::string& question) {
  conversation_.Ask(question);
  Answer();
}

// A pinned prefix ends where a message does: a header cut in two would stand before every answer.
void ChatLoop::PinMessages() {
  const std::string spec = WithPinnedMessages(kv_.kv, conversation_, engine_.sink_token());
  if (spec == kv_spec_) return;
  SessionOptions options = kv_;
  options.kv = spec;
  session_ = engine_.NewSession(options);
  kv_spec_ = spec;
}

void ChatLoop::Answer() {
  GenerateOptions options = generate_;
  options.on_text = WriteOutput;
  GenerateResult result;
  try {
    PinMessages();
    // Two presses are easily made in a hurry: they must not end the program.
    result = GenerateAtTerminal(session_, conversation_.prompt(), options, /*presses_to_exit=*/3);
  } catch (const Error&) {
    conversation_.Undo();  // too long for the context, for example
    throw;
  }
  const bool cancelled = result.finish_reason == FinishReason::kCancelled;
  if (!result.text.ends_with('\n')) WriteOutput("\n");
  if (cancelled && !interactive_) throw Error(ErrorKind::kCancelled, "cancelled");
  if (cancelled && result.tokens.empty()) {
    conversation_.Undo();
    Say("(stopped before the answer began; the question is taken back)");
    return;
  }
  conversation_.Answer(result.text, result.tokens);
  if (!interactive_) {
    SayDropped(result.kv);
  } else if (const std::string dropped = DescribeDropped(result.kv); !dropped.empty()) {
    Say("(" + dropped + ")");
  }
  if (interactive_ && cancelled) Say("(stopped)");
  if (interactive_ && result.finish_reason == FinishReason::kLength) {
    Say("(stopped: the limit of -n, or a full context)");
  }
  last_ = std::move(result);
}

void ChatLoop::Run(LineSource& lines) {
  bool leaving = false;  // Ctrl-C at an empty prompt, once
  while (!done_) {
    const ChatInputLine input = ReadMessage(lines);
    if (input.kind == Line::Kind::kEnd) return;
    if (input.kind == Line::Kind::kInterrupted) {
      if (leaving && input.text.empty()) return;
      leaving = input.text.empty();
      if (leaving) Say("(Ctrl-C again, Ctrl-D or /exit to leave)");
      continue;
    }
    leaving = false;
    if (input.text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    try {
      if (!(input.single && RunCommand(input.text))) Ask(input.text);
    } catch (const Error& error) {
      // A script should fail; a person can try again. Nobody can without standard output.
      if (!interactive_ || error.kind() == ErrorKind::kIo) throw;
      Say(std::string("godwit: ") + error.what());
    }
  }
}

}  // namespace

int Chat(std::span<const std::string> arguments) {
  ChatOptions options;
  ParseChat(arguments, options);
  const bool own_model = options.model.folder.empty();
  ChooseModel(options.model);
  (void)MakeGenerateOptions(options.sampling);  // refuses what makes no sense before loading
  const bool interactive = InputIsTerminal() && StatusIsTerminal();
  if (interactive) CheckHistoryFile(options.history);
  const bool has_template = HasChatTemplate(options.model);
  if (!has_template) options.sampling.stop.emplace_back(kPlainDialogueStop);
  const Engine engine = LoadEngine(options.model, options.session);
  ChatLoop chat(engine, options,
                has_template ? CodecOf(engine, options.template_variables) : PlainDialogue(engine),
                interactive);
  if (!has_template) {
    WriteStatus(
        "godwit: this model has no chat template: it is given a plain dialogue of \"User:\" and "
        "\"Assistant:\" lines, and an answer ends at the next \"User:\"; expect little\n");
  }
  if (!interactive) {
    PipedLines lines;
    chat.Run(lines);
    return kExitOk;
  }
  if (own_model) {
    WriteNotice(
        "It tells children's stories and nothing else. Try: Tell me a story about a brave "
        "cat\n");
  }
  WriteNotice(fmt::format(
      "Up to {} tokens. /help for commands, Ctrl-D to leave.\n\n",
      options.session.context_tokens > 0 ? options.session.context_tokens : engine.max_context()));
  LineEditor lines(options.history);
  chat.Run(lines);
  return kExitOk;
}

}  // namespace godwit::cli
