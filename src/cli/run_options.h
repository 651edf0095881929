// The flags of run and of plan, and the prompt that they make.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answers.h"
#include "cli/answer_splitter.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/options/template_options.h"
#include "console/options/text_input.h"
#include "godwit/engine.h"

namespace godwit::cli {

struct RunOptions {
  ModelOptions model;
  console::TextInput text;
  std::optional<bool> chat;
  std::optional<std::string> system;
  std::string template_variables = "{}";
  SamplingFlags sampling;
  SessionOptions session;
  int64_t query_tokens = 0;  // as in MakePrompt
  ThoughtsFlag thoughts;
  bool passages = false;
  int64_t read_anew = 32;  // Session::ReadPassages
  int samples = 0;         // 0: one, without a title
  int logprobs = -1;       // GenerateOptions::top_logprobs
  std::string keep_as;     // GenerateOptions::keep_as
  std::string resume;      // the file of RunJournal; empty: none
  bool json = false;
};

// Parses the flags of `verb`. Throws Error(kInput) for those that contradict each other.
void ParseRun(std::string_view verb, std::string_view summary,
              std::span<const std::string> arguments, RunOptions& options);

// Whether files are given, and a question about them.
bool AsksAboutFiles(const console::GivenTexts& texts);

// The conversation of --chat: the system message, and one of files and question.
std::vector<Message> MessagesOf(const RunOptions& options, const console::GivenTexts& texts);

// The prompt that the flags make of the texts. Its question is the text of -p, if files come before
// it.
chat::Prompt MakePrompt(const Engine& engine, const Session& session, const RunOptions& options,
                        const console::GivenTexts& texts);

}  // namespace godwit::cli
