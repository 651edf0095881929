// godwit man: all help as one page for man(1).

#include <fmt/format.h>

#include <cctype>

#include "console/exit_code.h"
#include "console/options/command_line.h"
#include "console/options/help.h"
#include "console/pages.h"
#include "console/terminal/output.h"
#include "console/verbs.h"
#include "godwit/version.h"

namespace godwit::console {
namespace {

// Text that roff takes literally, after the beginning of a line or as a whole line.
std::string Roff(std::string_view text) {
  std::string roff = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";  // otherwise a hyphen, which a shell does not accept
    } else if (c == '"') {
      roff += "\\(dq";
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string TextSection(std::string_view title, std::string_view text) {
  return fmt::format(".SH {}\n{}\n", title, Roff(text));
}

std::string ManSection(const CommandPage& page) {
  std::string text = fmt::format(".SH \"GODWIT {}\"\n.B godwit {}\n{}\n.PP\n{}\n", page.name,
                                 page.name, Roff(page.synopsis), Roff(page.summary));
  std::string_view group;
  for (const FlagPage& flag : page.flags) {
    if (flag.group != group) text += fmt::format(".SS {}\n", Roff(flag.group));
    group = flag.group;
    text += fmt::format(".TP\n.B {}\n{}\n", Roff(flag.Usage()), Roff(flag.Text()));
  }
  return text;
}

}  // namespace

int Man(std::span<const std::string> arguments) {
  CommandLine line("man", "",
                   "Prints the manual with the help of every verb: godwit man | man -l -");
  line.Parse(arguments);
  std::string text = ".TH GODWIT 1 \"\" \"godwit " GODWIT_VERSION "\" \"godwit\"\n";
  text += TextSection("NAME",
                      "godwit - language models over long texts, with a fixed budget of memory");
  text += ".SH SYNOPSIS\n.B godwit\n.I VERB\n[flags]\n.SH VERBS\n";
  for (const Verb& verb : AllVerbs()) {
    text += fmt::format(".TP\n.B {}\n{}\n", verb.name, Roff(verb.summary));
  }
  text += TextSection("MODELS", kModelHelp);
  for (const CommandPage& page : AllPagesOrWarn()) text += ManSection(page);
  text += TextSection("ENVIRONMENT", kEnvironmentHelp) + TextSection("EXIT STATUS", kExitCodes);
  WriteOutput(text);
  return kExitOk;
}

}  // namespace godwit::console
