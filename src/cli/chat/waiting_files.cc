#include "cli/chat/waiting_files.h"

#include <iterator>

#include "base/name_list.h"
#include "base/quote.h"
#include "chat/files_in_message.h"

namespace godwit::cli {

std::string WaitingFiles::Names() const {
  constexpr int64_t kShown = 3;
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(QuoteUnlessPlain(name));
  return FirstNames(quoted, kShown);
}

void WaitingFiles::Append(std::span<const console::NamedText> files,
                          std::span<const FileTokens> counts) {
  for (const auto& [name, content] : files) {
    text += chat::FileInMessage(name, content);
    names.push_back(name);
  }
  bytes = text.size();
  for (const FileTokens& file : counts) tokens += file.tokens;
}

void WaitingFiles::Prepend(WaitingFiles files) {
  text.insert(0, files.text);
  bytes = text.size();
  names.insert(names.begin(), std::make_move_iterator(files.names.begin()),
               std::make_move_iterator(files.names.end()));
  tokens += files.tokens;
}

}  // namespace godwit::cli
