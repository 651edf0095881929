// ChatLoop: the loop of godwit chat once its model is loaded. It reads messages and commands, and
// answers, until the input ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "chat/conversation.h"
#include "cli/answer_splitter.h"
#include "cli/chat/context_usage.h"
#include "cli/chat/waiting_files.h"
#include "cli/options/sampling_options.h"
#include "console/options/input_files.h"
#include "console/terminal/line_source.h"
#include "model/spec.h"

namespace godwit::cli {

struct ChatSetup {
  std::string model_folder;
  DecoderSpec spec;
  chat::ChatCodec codec;
  std::optional<std::string> system;
  std::vector<console::NamedText> files;  // files of the first question
  bool lossy = false;                     // for files that are read later
  GenerateOptions generate;
  int64_t query_tokens;  // generate.query_tokens of every turn; 0: the last message's
  ThoughtsFlag thoughts;
  EffectiveSampler sampler;  // the source of generate.sampler
  SessionOptions session;
  bool interactive = false;  // a person types and reads; else a script, which errors end
};

class ChatLoop {
 public:
  // The engine must outlive it.
  ChatLoop(const Engine& engine, ChatSetup setup);

  // Runs until the input ends. Throws Error(kIo), and without a person to try again every other
  // Error.
  void Run(console::LineSource& lines);

 private:
  struct Command {
    std::string_view name;
    std::string_view usage;
    std::string_view help;
    void (ChatLoop::*run)(const std::string& argument);
  };
  static std::span<const Command> Commands();

  // Runs the message if it is a command. False: it is none.
  bool RunCommand(const std::string& message);
  void ShowHelp(const std::string&);
  void Clear(const std::string&);
  void SetSystem(const std::string& text);
  void Regenerate(const std::string&);
  void Undo(const std::string&);
  void SetKv(const std::string& spec);
  void Read(const std::string& path);
  void Save(const std::string& path);
  void Load(const std::string& path);
  void ShowStats(const std::string&);
  void Exit(const std::string&) { done_ = true; }

  // Runs an action that a message asks for. Its error is shown if a person can try again, else
  // thrown.
  void Attempt(FunctionRef<void()> action) const;
  // Puts files before the next question. Throws Error(kInput) for files that leave no space for it.
  void TakeFiles(std::span<const console::NamedText> files);
  // Takes back the last question, whose files wait again. False: there is none.
  bool TakeBack();
  // The tokens of the last question and its template text.
  int64_t QuestionTokens() const;
  void Ask(const std::string& question);
  // tokens_before: the conversation's tokens before its last question.
  void Answer(int64_t tokens_before);
  void PinMessages();
  // Runs a command's action on the file that it names. Errors with the file do not end the chat.
  void WithFile(const std::string& argument, std::string_view usage,
                FunctionRef<void(const std::string& path)> action) const;
  ContextUsage Usage() const;
  void SayHowItEnded(const GenerateResult& result) const;
  // Shows the warning once above the prompt, then within every prompt.
  void WarnOfScarceContext();
  std::string Prompt() const;
  void Say(const std::string& text) const;
  void SayIfInteractive(const std::string& text) const;

  const Engine& engine_;
  ChatSetup setup_;      // `session`: as the user asked for
  std::string kv_spec_;  // the session's
  Session session_;
  chat::Conversation conversation_;
  WaitingFiles waiting_;              // files of the next question
  std::vector<WaitingFiles> before_;  // files of each question, without their text
  std::optional<GenerateResult> last_;
  bool warned_ = false;
  bool done_ = false;
};

}  // namespace godwit::cli
