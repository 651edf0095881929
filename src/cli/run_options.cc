#include "cli/run_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "chat/answer_form.h"
#include "chat/files_in_message.h"
#include "cli/options/cache_options.h"
#include "cli/options/kv_options.h"
#include "console/options/command_line.h"
#include "kv/snapshot_folder.h"

namespace godwit::cli {
namespace {

constexpr int kMaxSamples = 128, kMaxLogprobs = 1000;

// The message with the files' names, if there are several texts to tell apart.
std::string MessageOf(const console::GivenTexts& texts) {
  if (texts.files.size() == 1 && texts.prompt.empty()) return texts.files.front().text;
  std::string message;
  for (const auto& [name, text] : texts.files) message += chat::FileInMessage(name, text);
  return message + texts.prompt;
}

// A prompt without a template: exactly the given bytes.
chat::Prompt MakePlainPrompt(const Session& session, const console::GivenTexts& texts) {
  std::string all;
  for (const auto& [name, text] : texts.files) all += text;
  chat::Prompt prompt{.tokens = session.Tokenize(all + texts.prompt)};
  prompt.query_tokens =
      AsksAboutFiles(texts)
          ? std::max<int64_t>(1, std::ssize(session.Tokenize(texts.prompt, /*add_special=*/false)))
          : chat::LastLineTokens(session, all + texts.prompt);
  return prompt;
}

// Where `run` writes down its answer, to go on with it.
void AddResumeFlag(console::CommandLine& line, RunOptions& options) {
  line.Add({.names = "--resume",
            .value = "FILE",
            .help = "write the answer's tokens into FILE while they come; the same command, run "
                    "again, prints what FILE has and goes on, whatever ended the run. The bytes "
                    "are those of a run without an end"},
           options.resume);
  line.Exclusive({"--passages", "--resume"});
}

// How `run` and `plan` read files.
void AddPassageFlags(console::CommandLine& line, RunOptions& options) {
  line.Add({.names = "--passages",
            .value = "",
            .help = "with --chat: read each file alone, once for all prompts, and join what was "
                    "read; with --cache in any order, with any others. Faster, but not the "
                    "model's own result"},
           options.passages);
  line.AddInt({.names = "--read-anew",
               .value = "N",
               .help = "with --passages: read the first N tokens of each file again where they "
                       "stand"},
              options.read_anew, 0);
  line.Needs("--passages", {"--chat"});
  line.Needs("--read-anew", {"--passages"});
  for (const char* flag : {"--samples", "--keep-as"}) line.Exclusive({"--passages", flag});
}

}  // namespace

void ParseRun(std::string_view verb, std::string_view summary,
              std::span<const std::string> arguments, RunOptions& options) {
  console::CommandLine line(std::string(verb), "[-m MODEL] [-f FILE ...] [-p TEXT] [flags]",
                            std::string(summary));
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  AddRankFlags(line, options.model);
  line.Group("Prompt");
  console::AddTextAndQuestionFlags(line, options.text, "the text to continue");
  line.Add({.names = "--chat",
            .value = "",
            .help = "ask a chat model in the format of its chat template: -p is the question, and "
                    "files or piped text stand before it, each with its name (--chat=0: continue "
                    "the text without a hint about the template)"},
           [&options](const std::string& value) { options.chat = console::ParseBool(value); });
  line.Add({.names = "-sys,--system",
            .value = "TEXT",
            .help = "the system message, which the chat model reads before the question"},
           options.system);
  AddTemplateFlags(line, options.model, options.template_variables);
  AddThoughtsFlag(line, options.thoughts);
  AddPassageFlags(line, options);
  line.Group("Output");
  line.Add({.names = "--json",
            .value = "",
            .help = "print one JSON object with the text, its tokens, counts and times"},
           options.json);
  line.AddInt({.names = "--samples",
               .value = "K",
               .help = "write K answers to the prompt, which is read once",
               .fallback = "1",
               .is_verbs_own = true},
              options.samples, 1, kMaxSamples);
  line.AddInt({.names = "--logprobs",
               .value = "K",
               .help = "with --json: print each token's log-probability under the model, before "
                       "sampling, and the K most likely tokens in its place"},
              options.logprobs, 0, kMaxLogprobs);
  if (verb == "run") AddResumeFlag(line, options);
  AddSamplingFlags(line, options.sampling);
  AddKvFlags(line, options.session, options.model.kv_memory);
  AddCacheFlags(line, options.model.cache);
  line.Add({.names = "--keep-as",
            .value = "NAME",
            .help = "with --cache: pin the saved text under this name, so that it is never removed "
                    "to make space (godwit cache unpin NAME ends that)"},
           options.keep_as);
  AddPrefillFlags(line, options.session, options.query_tokens,
                  fmt::format("the tokens of -p if files or piped text stand before it, else the "
                              "last of several lines; with --chat the message, up to {} tokens",
                              chat::kQuestionTokens));
  line.Needs("--logprobs", {"--json"});
  line.Needs("--thoughts", {"--chat"});
  line.Exclusive({"--thoughts", "--json"});
  line.Exclusive({"--thoughts", "--samples"});
  line.Parse(arguments);
  if (!options.keep_as.empty()) {
    CheckPinName(options.keep_as);
    if (options.model.cache.folder.empty()) {
      Throw(ErrorKind::kInput, "--keep-as pins a saved text: it needs --cache");
    }
  }
  // Several answers as JSON have log-probabilities, because users compare them.
  if (options.samples > 0 && options.json) options.logprobs = std::max(options.logprobs, 0);
  if (options.query_tokens > 0) {
    RequireUseOfQueryTokens(std::span(&options.session.prefill, 1),
                            std::span(&options.session.kv, 1));
  }
  if (options.chat.value_or(false)) return;
  const char* const flag =
      options.system ? "--system" : GivenTemplateFlag(options.model, options.template_variables);
  if (flag) Throw(ErrorKind::kInput, "{} is for chat models: it needs --chat", flag);
}

bool AsksAboutFiles(const console::GivenTexts& texts) {
  return !texts.files.empty() && !texts.prompt.empty();
}

std::vector<Message> MessagesOf(const RunOptions& options, const console::GivenTexts& texts) {
  std::vector<Message> messages;
  if (options.system) messages.push_back({.role = "system", .content = *options.system});
  messages.push_back({.role = "user", .content = MessageOf(texts)});
  return messages;
}

chat::Prompt MakePrompt(const Engine& engine, const Session& session, const RunOptions& options,
                        const console::GivenTexts& texts) {
  if (!options.chat.value_or(false)) return MakePlainPrompt(session, texts);
  const std::vector<Message> messages = MessagesOf(options, texts);
  if (!AsksAboutFiles(texts)) {
    return chat::PromptOf(engine, session, messages, options.template_variables);
  }
  const std::string text =
      engine.ApplyChatTemplate(messages, /*open=*/true, options.template_variables);
  const auto tokenize = [&session](std::string_view part) {
    return session.Tokenize(part, /*add_special=*/false);
  };
  chat::Prompt prompt{.tokens = tokenize(text)};
  prompt.form =
      chat::FormOf(text, [&tokenize](std::string_view part) { return tokenize(part).size() == 1; });
  const int64_t most = std::min(chat::kQuestionTokens, std::ssize(prompt.tokens));
  prompt.query_tokens = chat::TokensFrom(texts.prompt, text, tokenize).value_or(most);
  return prompt;
}

}  // namespace godwit::cli
