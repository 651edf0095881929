// ChatLoop: reads messages and commands, answers, until the input ends. What godwit chat does once
// its model is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "chat/conversation.h"
#include "cli/chat/context_room.h"
#include "cli/chat/waiting_files.h"
#include "cli/options/sampling_options.h"
#include "cli/told_answer.h"
#include "console/options/input_files.h"
#include "console/terminal/line_source.h"
#include "model/spec.h"

namespace godwit::cli {

struct ChatSetup {
  std::string model_folder;
  DecoderSpec spec;
  chat::ChatCodec codec;
  std::optional<std::string> system;
  std::vector<console::NamedText> files;  // what the first question is about
  bool lossy = false;                     // of files that are read later
  GenerateOptions generate;
  int64_t query_tokens;  // of generate, in every turn; 0: those of the last message
  ThoughtsFlag thoughts;
  EffectiveSampler sampler;  // where generate.sampler came from
  SessionOptions session;
  bool interactive = false;  // somebody types and reads; else a script, which errors end
};

class ChatLoop {
 public:
  // The engine must outlive it.
  ChatLoop(const Engine& engine, ChatSetup setup);

  // Throws Error(kIo), and without somebody to try again every other Error.
  void Run(console::LineSource& lines);

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
  void SetKv(const std::string& spec);
  void Read(const std::string& path);
  void Save(const std::string& path);
  void Load(const std::string& path);
  void ShowStats(const std::string&);
  void Exit(const std::string&) { done_ = true; }

  // An action that a message asks for: its error is said where somebody can try again, else thrown.
  void Attempt(FunctionRef<void()> action) const;
  // Files go before the next question. Throws Error(kInput) for those that leave no room for it.
  void TakeFiles(std::span<const console::NamedText> files);
  // The last question, whose files wait again. False if there is none.
  bool TakeBack();
  // Tokens of the last question, and of what frames it.
  int64_t QuestionTokens() const;
  void Ask(const std::string& question);
  // tokens_before: of the conversation before its last question.
  void Answer(int64_t tokens_before);
  void PinMessages();
  // What a command does with the file that it names. Whatever is wrong with that is no reason to
  // leave.
  void WithFile(const std::string& argument, std::string_view usage,
                FunctionRef<void(const std::string& path)> action) const;
  ContextRoom Room() const;
  void SayHowItEnded(const GenerateResult& result) const;
  // Above the prompt once, then in every prompt.
  void WarnOfScarceContext();
  std::string Prompt() const;
  void Say(const std::string& text) const;
  void SayIfInteractive(const std::string& text) const;

  const Engine& engine_;
  ChatSetup setup_;      // session: as asked for
  std::string kv_spec_;  // of the session
  Session session_;
  chat::Conversation conversation_;
  WaitingFiles waiting_;              // of the next question
  std::vector<WaitingFiles> before_;  // of each question, without their text, which its message has
  std::optional<GenerateResult> last_;
  bool warned_ = false;
  bool done_ = false;
};

}  // namespace godwit::cli
