#include "console/options/command_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "console/exit_code.h"
#include "console/options/help.h"

namespace godwit::console {

std::string FlagPage::Usage() const {
  return fmt::format("{}{}{}", fmt::join(names, ", "), value.empty() ? "" : " ", value);
}

std::string FlagPage::Text() const {
  return fallback.empty() ? help : fmt::format("{} [default: {}]", help, fallback);
}

std::string HelpText(const CommandPage& page, size_t columns) {
  std::string text =
      Wrap(fmt::format("Usage: godwit {} {}", page.name, page.synopsis), columns, /*indent=*/7) +
      "\n\n" + Wrap(page.summary, columns) + "\n";
  std::string_view group;
  for (const FlagPage& flag : page.flags) {
    if (group != flag.group) text += fmt::format("\n{}\n", flag.group);
    group = flag.group;
    text += HelpEntry(flag.Usage(), flag.Text(), columns);
  }
  return text + "\n" + Wrap(kEnvironmentHelp, columns) + "\n\n" + Wrap(kExitCodes, columns) + "\n";
}

}  // namespace godwit::console
