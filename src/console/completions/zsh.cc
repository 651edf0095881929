#include <fmt/format.h>
#include <fmt/ranges.h>

#include "console/completions/completions.h"
#include "console/pages.h"
#include "console/verbs.h"

namespace godwit::console {
namespace {

constexpr std::string_view kZshBegin = R"(#compdef godwit
# zsh completion for godwit, by "godwit completions zsh"
_godwit_models() {
  local hub=${HF_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/hub}
  local -a models=($hub/models--*--*(N:t))
  models=(${${models#models--}/--//})
  (( $#models )) && compadd -a models
  _files -g '*.gguf(-.)'
  _files -/
}
_godwit() {
  local verb=${words[2]}
)";

std::string ZshQuoted(std::string_view text) { return SingleQuoted(text, "'\\''"); }

// "[", "]" and ":" end a text for _arguments and _describe.
std::string ZshEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// "'run:continue a text' 'chat:...'"
std::string ZshDescribed(std::span<const Verb> verbs) {
  std::vector<std::string> entries;
  for (const Verb& verb : verbs) {
    entries.push_back(ZshQuoted(fmt::format("{}:{}", verb.name, ZshEscaped(verb.summary))));
  }
  return fmt::format("{}", fmt::join(entries, " "));
}

std::string ZshAction(const FlagPage& flag) {
  switch (KindOf(flag)) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kModel:
      return "_godwit_models";
    case ValueKind::kWords: {
      std::vector<std::string> words;
      for (const std::string& word : ValueWords(flag)) words.push_back(ZshEscaped(word));
      return fmt::format("({})", fmt::join(words, " "));
    }
    default:
      return " ";
  }
}

std::string ZshCommand(const CommandPage& page) {
  std::string text = fmt::format("    '{}')\n      _arguments", page.name);
  for (const FlagPage& flag : page.flags) {
    for (const std::string& name : flag.names) {
      std::string entry = fmt::format("*{}[{}]", name, ZshEscaped(flag.Text()));
      if (KindOf(flag) != ValueKind::kNone) {
        entry += fmt::format(":{}:{}", ZshEscaped(flag.value), ZshAction(flag));
      }
      text += " \\\n        " + ZshQuoted(entry);
    }
  }
  // Words without a flag are more values of the flag that takes several.
  for (const FlagPage& flag : page.flags) {
    if (!flag.takes_list) continue;
    text += " \\\n        " +
            ZshQuoted(fmt::format("*:{}:{}", ZshEscaped(flag.value), ZshAction(flag)));
    break;
  }
  return text + "\n      ;;\n";
}

}  // namespace

std::string ZshCompletion() {
  std::string text(kZshBegin);
  text += fmt::format(
      "  local -a verbs=({}) evaluations=({})\n"
      "  if (( CURRENT == 2 )) || [[ $verb == help ]]; then _describe verb verbs; return; fi\n"
      "  if [[ $verb == completions && $PREFIX != -* ]]; then compadd bash zsh fish; return; fi\n"
      "  if [[ $verb == eval ]]; then\n"
      "    if (( CURRENT == 3 )); then _describe evaluation evaluations; return; fi\n"
      "    shift words; (( CURRENT-- ))\n"
      "    verb+=\" ${{words[2]}}\"\n"
      "  fi\n"
      "  shift words; (( CURRENT-- ))\n"
      "  case $verb in\n",
      ZshDescribed(AllVerbs()), ZshDescribed(AllEvaluations()));
  for (const CommandPage& page : AllPagesOrWarn()) text += ZshCommand(page);
  return text +
         "  esac\n}\n# Sourced, or found in $fpath.\n"
         "if [[ $funcstack[1] == _godwit ]]; then _godwit \"$@\"; else compdef _godwit godwit; "
         "fi\n";
}

}  // namespace godwit::console
