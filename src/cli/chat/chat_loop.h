// ChatLoop: reads messages and commands, answers, until the input ends. What godwit chat does once
// its model is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "chat/conversation.h"
#include "cli/chat/context_room.h"
#include "cli/options/sampling_options.h"
#include "console/terminal/line_source.h"
#include "model/spec.h"

namespace godwit::cli {

struct ChatSetup {
  std::string model_folder;
  DecoderSpec spec;
  chat::ChatCodec codec;
  std::optional<std::string> system;
  GenerateOptions generate;
  int64_t query_tokens;      // of generate, in every turn; 0: those of the last message
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
  void Save(const std::string& path);
  void Load(const std::string& path);
  void ShowStats(const std::string&);
  void Exit(const std::string&) { done_ = true; }

  void Ask(const std::string& question);
  // tokens_before: of the conversation before its last question.
  void Answer(int64_t tokens_before);
  void PinMessages();
  // What a command does with the file that it names. Whatever is wrong with that is no reason to
  // leave.
  void WithFile(const std::string& argument,
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
  std::optional<GenerateResult> last_;
  bool warned_ = false;
  bool done_ = false;
};

}  // namespace godwit::cli
