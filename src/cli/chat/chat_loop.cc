#include "cli/chat/chat_loop.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "chat/answers.h"
#include "chat/conversation_file.h"
#include "chat/files_in_message.h"
#include "chat/pinned_messages.h"
#include "chat/plain_dialogue.h"
#include "cli/chat/message_reader.h"
#include "cli/generate.h"
#include "cli/hints.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/recompute_spec.h"
#include "cli/summary.h"
#include "console/options/help.h"
#include "console/terminal/answer_text.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"
#include "console/terminal/output_file.h"
#include "console/terminal/result_files.h"

namespace godwit::cli {
namespace {

// Expands ~ as a shell does.
std::string ExpandHome(const std::string& path) {
  const char* const home = std::getenv("HOME");
  if (home == nullptr || !path.starts_with("~/")) return path;
  return home + path.substr(1);
}

std::string Questions(size_t messages) {
  return console::Plural(static_cast<int64_t>(messages / 2), "question");
}

}  // namespace

ChatLoop::ChatLoop(const Engine& engine, ChatSetup setup)
    : engine_(engine),
      setup_(std::move(setup)),
      kv_spec_(setup_.session.kv),
      session_(engine.NewSession(setup_.session)),
      conversation_(setup_.codec, setup_.system) {}

std::span<const ChatLoop::Command> ChatLoop::Commands() {
  static constexpr Command kCommands[] = {
      {"/help", "/help", "show this list", &ChatLoop::ShowHelp},
      {"/clear", "/clear", "begin a new conversation and keep the system message",
       &ChatLoop::Clear},
      {"/system", "/system TEXT", "set the system message to TEXT, for the whole conversation",
       &ChatLoop::SetSystem},
      {"/regen", "/regen", "write another answer to the last question", &ChatLoop::Regenerate},
      {"/undo", "/undo", "take back the last question and its answer", &ChatLoop::Undo},
      {"/kv", "/kv SPEC", "change the cache policy to SPEC, as --kv does", &ChatLoop::SetKv},
      {"/read", "/read FILE",
       "put a file, or all files of a folder or pattern, before the next question",
       &ChatLoop::Read},
      {"/save", "/save FILE", "write the conversation to FILE as JSON", &ChatLoop::Save},
      {"/load", "/load FILE", "continue the conversation in FILE", &ChatLoop::Load},
      {"/stats", "/stats", "show speed and memory of the last answer", &ChatLoop::ShowStats},
      {"/exit", "/exit", "end the program, as Ctrl-D does", &ChatLoop::Exit},
  };
  return kCommands;
}

void ChatLoop::ShowHelp(const std::string&) {
  const auto columns = static_cast<size_t>(console::StatusColumns());
  std::string text;
  for (const Command& command : Commands())
    text += console::HelpEntry(command.usage, command.help, columns);
  Say(text + "\n" +
      console::Wrap("A line that ends with \\ continues in the next one; \"\"\" before and after "
                    "encloses any number of lines. Ctrl-C stops an answer. Text that is typed "
                    "during an answer waits for the next prompt.",
                    columns));
}

void ChatLoop::Clear(const std::string&) {
  conversation_.Clear();
  before_.clear();
  const WaitingFiles files = std::exchange(waiting_, {});
  last_.reset();
  if (files.empty()) return SayIfInteractive("(a new conversation)");
  SayIfInteractive(fmt::format("(a new conversation, without {})", files.Names()));
}

void ChatLoop::SetSystem(const std::string& text) {
  if (text.empty()) {
    Say(conversation_.system() ? fmt::format("(system: {})", *conversation_.system())
                               : "(no system message; /system TEXT sets one)");
    return;
  }
  conversation_.SetSystem(text);
  SayIfInteractive("(the system message is changed for the whole conversation)");
}

void ChatLoop::Regenerate(const std::string&) {
  const int64_t tokens_before = Usage().used_tokens;
  if (!conversation_.Retry()) {
    Say("(there is no answer yet)");
    return;
  }
  ++setup_.generate.sequence;  // other random choices
  Answer(tokens_before);
}

void ChatLoop::Undo(const std::string&) {
  if (!waiting_.empty()) {
    const WaitingFiles files = std::exchange(waiting_, {});
    return SayIfInteractive(fmt::format("({} removed)", files.Names()));
  }
  if (!TakeBack()) {
    Say("(there is no question to take back)");
    return;
  }
  SayIfInteractive(fmt::format(
      "(taken back; {} left before it{})", Questions(conversation_.messages().size()),
      waiting_.empty() ? "" : fmt::format("; {} before the next one", waiting_.Names())));
}

bool ChatLoop::TakeBack() {
  if (before_.empty()) return false;
  WaitingFiles files = std::move(before_.back());
  before_.pop_back();
  const Message& question = conversation_.messages()[2 * before_.size()];
  files.text = question.content.substr(0, files.bytes);
  waiting_.Prepend(std::move(files));
  return conversation_.Undo();
}

void ChatLoop::Read(const std::string& argument) {
  if (argument.empty() && !waiting_.empty()) {
    return Say(fmt::format("({}: {}, before the next question; /undo removes them)",
                           waiting_.Names(), console::Plural(waiting_.tokens, "token")));
  }
  WithFile(argument, "/read FILE", [this](const std::string& path) {
    if (path == "-")
      Throw(ErrorKind::kInput, "/read: standard input is the conversation: name a file");
    TakeFiles(console::ReadInputFiles(std::span(&path, 1), setup_.lossy));
  });
}

void ChatLoop::TakeFiles(std::span<const console::NamedText> files) {
  const ContextUsage usage = Usage();
  const auto counts =
      CountTokens(files, std::max(usage.limit_tokens, usage.made_for), setup_.codec.encode);
  WaitingFiles all = waiting_;
  all.Append(files, counts);
  const int64_t tokens = usage.used_tokens + all.tokens;
  if (tokens >= usage.limit_tokens) {
    if (counts.size() > 1) console::WriteNotice(console::WrapStatus(Describe(counts)) + "\n");
    const bool or_more = std::ranges::any_of(counts, &FileTokens::or_more);
    throw Error(ErrorKind::kInput, DescribeTooLong(usage, tokens, or_more, all.Names()));
  }
  waiting_ = std::move(all);
  if (!setup_.interactive) return console::WriteNotice("godwit: " + Describe(counts) + "\n");
  Say(fmt::format("({}; before the next question{})", Describe(counts),
                  usage.endless()
                      ? ""
                      : fmt::format(", which then has {} of {} left", usage.limit_tokens - tokens,
                                    console::Plural(usage.limit_tokens, "token"))));
}

void ChatLoop::SetKv(const std::string& spec) {
  if (spec.empty()) {
    Say(fmt::format("({}; /kv SPEC changes it)", DescribeKv(session_.kv())));
    return;
  }
  SessionOptions options = setup_.session;
  options.kv = spec;
  RefuseRecompute(spec);
  CheckKv(setup_.spec, options);
  options.kv = chat::WithPinnedMessages(spec, conversation_, engine_.sink_token());
  Session session = engine_.NewSession(options);
  const int64_t tokens = Usage().used_tokens;
  if (tokens > session.limit_tokens()) {
    Throw(ErrorKind::kInput,
          "{} holds {}, and the conversation has {}: shorten it with /undo or /clear first", spec,
          console::Plural(session.limit_tokens(), "token"), tokens);
  }
  session_ = std::move(session);
  kv_spec_ = options.kv;
  setup_.session.kv = spec;
  SayIfInteractive(
      tokens == 0
          ? fmt::format("({} from now on)", spec)
          : fmt::format("({} from now on; the next question also processes the {} so far again)",
                        spec, console::Plural(tokens, "token")));
}

void ChatLoop::WithFile(const std::string& argument, std::string_view usage,
                        FunctionRef<void(const std::string& path)> action) const {
  if (argument.empty()) Throw(ErrorKind::kInput, "a file name is missing: {}", usage);
  try {
    action(ExpandHome(argument));
  } catch (const Error& error) {
    if (!setup_.interactive) throw;
    throw Error(ErrorKind::kInput, error.what());
  }
}

void ChatLoop::Save(const std::string& argument) {
  WithFile(argument, "/save FILE", [this](const std::string& path) {
    console::CheckResultFiles({{"/save", path}}, {{"--model", setup_.model_folder}});
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) {
      try {
        (void)chat::ReadConversation(path);
      } catch (const Error&) {
        Throw(ErrorKind::kInput, "{} exists and is no saved conversation: choose another name",
              Quote(path));
      }
    }
    console::WriteFile(path, chat::ToJson({conversation_.system(), conversation_.messages()}));
    SayIfInteractive(fmt::format(
        "({} saved in {}{})", Questions(conversation_.messages().size()), Quote(path),
        waiting_.empty()
            ? ""
            : fmt::format(", without {}, about which no question was asked", waiting_.Names())));
  });
}

void ChatLoop::Load(const std::string& argument) {
  WithFile(argument, "/load FILE", [this](const std::string& path) {
    chat::SavedConversation saved = chat::ReadConversation(path);
    conversation_.Load(std::move(saved.system), std::move(saved.messages));
    before_.assign(conversation_.messages().size() / 2, {});
    last_.reset();
    SayIfInteractive(fmt::format("({} loaded{})", Questions(conversation_.messages().size()),
                                 conversation_.system() ? ", with a system message" : ""));
  });
}

void ChatLoop::ShowStats(const std::string&) {
  Say((last_ ? Summarize(*last_) : "(no answer yet)\n") + "sampler " +
      DescribeSampler(setup_.sampler));
}

bool ChatLoop::RunCommand(const std::string& message) {
  const std::string name = message.substr(0, message.find_first_of(" \t"));
  // A line such as "/usr/bin is a folder" is a message.
  if (!name.starts_with('/') || name.find('/', 1) != std::string::npos || name.size() < 2) {
    return false;
  }
  const size_t argument = message.find_first_not_of(" \t", name.size());
  const size_t end = message.find_last_not_of(" \t") + 1;
  for (const Command& command : Commands()) {
    if (command.name != name) continue;
    (this->*command.run)(argument == std::string::npos ? ""
                                                       : message.substr(argument, end - argument));
    return true;
  }
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  const auto nearest = Nearest(name, names);
  Throw(ErrorKind::kInput, "unknown command {}; {} (a message may begin with it inside \"\"\")",
        Quote(name), nearest ? "did you mean " + *nearest + "?" : "see /help");
}

void ChatLoop::Ask(const std::string& question) {
  ContextUsage usage = Usage();
  const int64_t tokens_before = usage.used_tokens;
  // A shorter question is counted exactly, so Answer knows whether /clear or -c would help.
  const int64_t most = std::max(usage.limit_tokens, usage.made_for);
  if (!conversation_.Ask(waiting_.text + question, usage.endless() ? most : tokens_before + most)) {
    usage.used_tokens = 0;
    usage.has_turns = false;
    throw Error(ErrorKind::kInput, DescribeTooLong(usage, most, /*or_more=*/true));
  }
  waiting_.text.clear();
  before_.push_back(std::exchange(waiting_, {}));
  Answer(tokens_before);
}

int64_t ChatLoop::QuestionTokens() const {
  const int64_t usual = std::min(conversation_.question_tokens(), chat::kQuestionTokens);
  const size_t files_bytes = before_.back().bytes;
  if (files_bytes == 0) return usual;
  std::vector<Message> messages;
  if (conversation_.system()) {
    messages.push_back({.role = "system", .content = *conversation_.system()});
  }
  messages.insert(messages.end(), conversation_.messages().begin(), conversation_.messages().end());
  const std::string prompt = setup_.codec.render(messages, /*open=*/true);
  return chat::TokensFrom(std::string_view(messages.back().content).substr(files_bytes), prompt,
                          [this](std::string_view text) {
                            return setup_.codec.encode(text, chat::Conversation::kAny);
                          })
      .value_or(usual);
}

// Pins the prefix up to the end of a message: half a header would stand before every answer.
void ChatLoop::PinMessages() {
  const std::string spec =
      chat::WithPinnedMessages(setup_.session.kv, conversation_, engine_.sink_token());
  if (spec == kv_spec_) return;
  SessionOptions options = setup_.session;
  options.kv = spec;
  session_ = engine_.NewSession(options);
  kv_spec_ = spec;
}

ContextUsage ChatLoop::Usage() const {
  return {.used_tokens = std::ssize(conversation_.prompt()),
          .limit_tokens = session_.limit_tokens(),
          .made_for = engine_.max_context(),
          .may_forget = session_.learned_positions() == 0,
          .has_turns = conversation_.messages().size() > 1};
}

void ChatLoop::Answer(int64_t tokens_before) {
  console::AnswerText text;
  ThoughtText thought(setup_.thoughts);
  const chat::AnswerForm form = conversation_.form();
  AnswerSplitter splitter(form,
                          {.on_text = [&](std::string_view piece) { text.Write(piece); },
                           .on_thought = [&](std::string_view piece) { thought.Write(piece); },
                           .on_thought_end = [&](int64_t tokens) { thought.End(tokens); }});
  GenerateOptions options = setup_.generate;
  options.on_event = [&splitter](const Event& event) { splitter.Take(event); };
  GenerateResult result;
  try {
    PinMessages();
    ContextUsage usage = Usage();
    const int64_t tokens = std::exchange(usage.used_tokens, tokens_before);
    if (tokens >= usage.limit_tokens)
      throw Error(ErrorKind::kInput, DescribeTooLong(usage, tokens));
    options.query_tokens = setup_.query_tokens > 0 ? setup_.query_tokens : QuestionTokens();
    options.thought = form.thought;
    options.spelled_out = chat::MarksOf(form, /*with_tools=*/false);
    // Two presses happen easily in a hurry, so they must not end the program.
    result = GenerateAtTerminal(session_, conversation_.prompt(), options, /*presses_to_exit=*/3);
  } catch (const Error&) {
    TakeBack();  // such as a text too long for the context
    throw;
  }
  splitter.Finish();
  text.Finish();
  const bool cancelled = result.finish_reason == FinishReason::kCancelled;
  if (!splitter.text().ends_with('\n')) console::WriteOutput("\n");
  if (cancelled && !setup_.interactive) throw Error(ErrorKind::kCancelled, "cancelled");
  if (cancelled && result.tokens.empty()) {
    TakeBack();
    Say("(stopped before the answer began; the question is taken back)");
    return;
  }
  conversation_.Answer(splitter.text(), result.tokens, splitter.thought());
  if (!setup_.interactive) {
    SayDropped(result.kv);
  } else if (const std::string dropped = DescribeDropped(result.kv); !dropped.empty()) {
    Say(fmt::format("({})", dropped));
  }
  SayHowItEnded(result);
  last_ = std::move(result);
}

void ChatLoop::SayHowItEnded(const GenerateResult& result) const {
  switch (result.finish_reason) {
    case FinishReason::kTimeout:  // no request sets one
    case FinishReason::kCancelled:
      return SayIfInteractive("(stopped)");
    case FinishReason::kLength:
      return SayIfInteractive(
          fmt::format("(stopped by -n {})", console::Plural(setup_.generate.max_tokens, "token")));
    case FinishReason::kContextFull:
      return SayIfInteractive(fmt::format("({})", DescribeFull(Usage())));
    case FinishReason::kStop:
      if (result.stop.empty() || result.stop == chat::kPlainDialogueStop) return;
      return SayIfInteractive(fmt::format("(stopped at {})", Quote(result.stop)));
  }
}

void ChatLoop::WarnOfScarceContext() {
  const ContextUsage usage = Usage();
  const bool full = usage.used_tokens >= usage.limit_tokens;  // the answer has said so already
  if (usage.scarce() && !warned_ && !full) Say(fmt::format("({})", DescribeScarcity(usage)));
  warned_ = usage.scarce();
}

std::string ChatLoop::Prompt() const {
  const ContextUsage usage = Usage();
  if (!usage.scarce()) return "> ";
  return fmt::format("[{}%] > ", usage.percent());
}

void ChatLoop::Say(const std::string& text) const {
  console::WriteStatus(console::WrapStatus(text) + "\n");
}

void ChatLoop::SayIfInteractive(const std::string& text) const {
  if (setup_.interactive) Say(text);
}

// Runs action. A script fails with it, while a person can try again, unless standard output is
// gone.
void ChatLoop::Attempt(FunctionRef<void()> action) const {
  try {
    action();
  } catch (const Error& error) {
    if (!setup_.interactive || error.kind() == ErrorKind::kIo) throw;
    Say("godwit: " + WithHint(error));
  }
}

void ChatLoop::Run(console::LineSource& lines) {
  if (!setup_.files.empty()) {
    Attempt([this] { TakeFiles(std::exchange(setup_.files, {})); });
  }
  bool leaving = false;  // Ctrl-C at an empty prompt, once
  while (!done_) {
    if (setup_.interactive) WarnOfScarceContext();
    const ChatInputLine input = ReadMessage(lines, Prompt());
    if (input.kind == console::Line::Kind::kEnd) return;
    if (input.kind == console::Line::Kind::kInterrupted) {
      if (leaving && input.text.empty()) return;
      leaving = input.text.empty();
      if (leaving) Say("(Ctrl-C again, Ctrl-D or /exit to leave)");
      continue;
    }
    leaving = false;
    if (input.text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    Attempt([&] {
      if (!(input.single && RunCommand(input.text))) Ask(input.text);
    });
  }
}

}  // namespace godwit::cli
