#include <fmt/format.h>
#include <fmt/ranges.h>

#include "console/completions/completions.h"
#include "console/pages.h"
#include "console/verbs.h"

namespace godwit::console {
namespace {

// The first word behind godwit (and eval) is the verb; a value may have the name of a verb.
constexpr std::string_view kFishBegin =
    R"(# fish completion for godwit, by "godwit completions fish"
function __godwit_verb
    set -l words (commandline -opc)
    if test (count $words) -ge 3; and test $words[2] = eval
        echo "eval $words[3]"
    else
        echo "$words[2]"
    end
end
function __godwit_at
    test (__godwit_verb) = "$argv[1]"
end
function __godwit_behind
    set -l flag (string match -r -- '^-.+' (commandline -opc))[-1]
    contains -- "$flag" $argv
end
function __godwit_models
    set -l hub ~/.cache/huggingface/hub
    set -q XDG_CACHE_HOME; and set hub $XDG_CACHE_HOME/huggingface/hub
    set -q HF_HOME; and set hub $HF_HOME/hub
    set -q HF_HUB_CACHE; and set hub $HF_HUB_CACHE
    for model in $hub/models--*--*
        string replace -- -- / (string replace -r '.*/models--' '' $model)
    end
    __fish_complete_directories (commandline -ct)
    for file in (commandline -ct)*.gguf
        echo $file
    end
end
complete -c godwit -f
)";

std::string FishQuoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? "\\\\" : std::string(1, c);
  return SingleQuoted(escaped, "\\'");
}

std::string FishNames(std::span<const Verb> verbs, std::string_view after) {
  std::string text;
  for (const Verb& verb : verbs) {
    text += fmt::format("complete -c godwit -n '__godwit_at \"{}\"' -a {} -d {}\n", after,
                        verb.name, FishQuoted(verb.summary));
  }
  return text;
}

std::string FishAction(const FlagPage& flag) {
  switch (KindOf(flag)) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories (commandline -ct))'";
    case ValueKind::kModel:
      return " -x -a '(__godwit_models)'";
    case ValueKind::kWords:
      return fmt::format(" -x -a '{}'", fmt::join(ValueWords(flag), " "));
    case ValueKind::kOther:
      return " -x";
  }
  return "";
}

std::string FishCommand(const CommandPage& page) {
  std::string text;
  for (const FlagPage& flag : page.flags) {
    text += fmt::format("complete -c godwit -n '__godwit_at \"{}\"'", page.name);
    for (const std::string& name : flag.names) {
      const bool is_long = name.starts_with("--");
      text += fmt::format(" {} {}",
                          is_long            ? "-l"
                          : name.size() == 2 ? "-s"
                                             : "-o",
                          name.substr(is_long ? 2 : 1));
    }
    text += fmt::format("{} -d {}\n", FishAction(flag), FishQuoted(flag.Text()));
    if (!flag.takes_list) continue;
    text += fmt::format("complete -c godwit -n '__godwit_at \"{}\"; and __godwit_behind {}'{}\n",
                        page.name, fmt::join(flag.names, " "), FishAction(flag));
  }
  return text;
}

}  // namespace

std::string FishCompletion() {
  std::string text = std::string(kFishBegin) + FishNames(AllVerbs(), "") +
                     FishNames(AllVerbs(), "help") + FishNames(AllEvaluations(), "eval") +
                     "complete -c godwit -n '__godwit_at completions' -a 'bash zsh fish'\n";
  for (const CommandPage& page : AllPagesOrWarn()) text += FishCommand(page);
  return text;
}

}  // namespace godwit::console
