#include <fmt/format.h>
#include <fmt/ranges.h>

#include "console/completions/completions.h"
#include "console/pages.h"
#include "console/verbs.h"

namespace godwit::console {
namespace {

// The script's fixed beginning and end. "words" completes any of its arguments, without a blank
// behind one that ends with a colon.
constexpr std::string_view kBashBegin =
    R"(# bash completion for godwit, by "godwit completions bash"
_godwit_words() {
  mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
  [[ ${COMPREPLY[0]-} != *: ]] || compopt -o nospace
}
_godwit_paths() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}
_godwit_models() {
  local hub=${HF_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/hub} model
  _godwit_paths -d
  for model in "$cur"*.gguf; do
    [[ ! -e $model ]] || COMPREPLY+=("$model")
  done
  for model in "$hub"/models--*--*; do
    model=${model##*/models--}
    model=${model/--//}
    [[ -z ${cur-} || $model != "$cur"* || $model == '*'* ]] || COMPREPLY+=("$model")
  done
}
_godwit() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} flags=
  local at=$((COMP_CWORD - 1))
  while ((at > 1)) && [[ ${COMP_WORDS[at]} != -?* ]]; do ((at--)); done
  local last=${COMP_WORDS[at]}
  COMPREPLY=()
)";

std::string BashNames(std::span<const Verb> verbs) {
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs) names.push_back(verb.name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string BashAction(const FlagPage& flag) {
  switch (KindOf(flag)) {
    case ValueKind::kFile:
      return "_godwit_paths -f";
    case ValueKind::kFolder:
      return "_godwit_paths -d";
    case ValueKind::kModel:
      return "_godwit_models";
    case ValueKind::kWords:
      return fmt::format("_godwit_words {}", fmt::join(ValueWords(flag), " "));
    default:
      return ":";
  }
}

std::string BashCommand(const CommandPage& page) {
  std::vector<std::string> flags;
  std::string values, lists;
  for (const FlagPage& flag : page.flags) {
    flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    if (KindOf(flag) == ValueKind::kNone) continue;
    values +=
        fmt::format("        {}) {}; return ;;\n", fmt::join(flag.names, " | "), BashAction(flag));
    if (!flag.takes_list) continue;
    lists += fmt::format("        {}) [[ $cur == -* ]] || {{ {}; return; }} ;;\n",
                         fmt::join(flag.names, " | "), BashAction(flag));
  }
  if (!values.empty()) values = fmt::format("      case $prev in\n{}      esac\n", values);
  if (!lists.empty()) values += fmt::format("      case $last in\n{}      esac\n", lists);
  return fmt::format("    '{}')\n{}      flags='{}'\n      ;;\n", page.name, values,
                     fmt::join(flags, " "));
}

}  // namespace

std::string BashCompletion() {
  std::string text(kBashBegin);
  text += fmt::format(
      "  if ((COMP_CWORD == 1)); then _godwit_words '{} help --help --version'; return; fi\n"
      "  if [[ $verb == help ]]; then _godwit_words '{}'; return; fi\n"
      "  if [[ $verb == completions && $cur != -* ]]; then _godwit_words bash zsh fish; return; "
      "fi\n"
      "  if [[ $verb == eval ]]; then\n"
      "    if ((COMP_CWORD == 2)); then _godwit_words '{} --help'; return; fi\n"
      "    verb+=\" ${{COMP_WORDS[2]}}\"\n"
      "  fi\n"
      "  case $verb in\n",
      BashNames(AllVerbs()), BashNames(AllVerbs()), BashNames(AllEvaluations()));
  for (const CommandPage& page : AllPagesOrWarn()) text += BashCommand(page);
  return text + "  esac\n  _godwit_words \"$flags\"\n}\ncomplete -F _godwit godwit\n";
}

}  // namespace godwit::console
