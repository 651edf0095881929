#include "cli/read_files_as_passages.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chat/answer_form.h"
#include "chat/files_in_message.h"
#include "chat/passages.h"
#include "cli/generate.h"
#include "console/options/help.h"
#include "console/terminal/output.h"

namespace godwit::cli {

chat::PassagePrompt CutFilesAsPassages(const Engine& engine, const RunOptions& options,
                                       const console::GivenTexts& texts, const Session& session,
                                       chat::Prompt& prompt) {
  if (!AsksAboutFiles(texts)) {
    Throw(ErrorKind::kInput, "--passages are files, and -p a question about them: give both");
  }
  std::vector<std::string> passages;
  for (const auto& [name, text] : texts.files) passages.push_back(chat::FileInMessage(name, text));
  const std::string text = engine.ApplyChatTemplate(MessagesOf(options, texts), /*open=*/true,
                                                    options.template_variables);
  const auto tokenize = [&session](std::string_view part) {
    return session.Tokenize(part, /*add_special=*/false);
  };
  chat::PassagePrompt cut = chat::CutAtPassages(text, passages, tokenize);
  chat::JoinedPassages joined = chat::Join(cut);
  prompt.form =
      chat::FormOf(text, [&tokenize](std::string_view part) { return tokenize(part).size() == 1; });
  prompt.tokens = std::move(joined.tokens);
  prompt.passage_ends = std::move(joined.ends);
  prompt.query_tokens = std::ssize(cut.rest);
  return cut;
}

void ReadFilesAsPassages(const Engine& engine, const RunOptions& options,
                         const console::GivenTexts& texts, Session& session, chat::Prompt& prompt) {
  const chat::PassagePrompt cut = CutFilesAsPassages(engine, options, texts, session, prompt);
  const PassagesRead read =
      ReadPassagesAtTerminal(session, cut.head, cut.passages, options.read_anew,
                             /*presses_to_exit=*/2);
  if (!console::NoticesAreSilent()) {
    const std::string notice = fmt::format(
        "godwit: {} of {} tokens stand where they were not read: the answer is not exactly the "
        "model's own",
        read.reused_tokens, prompt.tokens.size());
    console::WriteNotice(console::WrapStatus(notice) + "\n");
  }
}

}  // namespace godwit::cli
