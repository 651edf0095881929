// CommandLine: the flags of one verb, with their help and their environment variables.
//
//   CommandLine line("run", "[-m MODEL] -p TEXT [flags]", "Continues a text.");
//   line.Group("Prompt");
//   line.Add({"-p,--prompt", "TEXT", "the text to continue"}, prompt);
//   line.Parse(arguments);
//
// A flag that is not on the command line is looked up in the environment, --top-k as GODWIT_TOP_K
// (environment.h); an empty variable counts as missing. A target that neither sets keeps its
// default, which the help shows. A flag that is given twice with different values is refused,
// unless it repeats. Targets must outlive Parse.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "console/options/arguments.h"
#include "console/options/help.h"
#include "console/options/parse_value.h"

namespace godwit::console {

struct Flag {
  std::string names;  // "-n,--predict"; short names may have several letters
  // "N", for the help; empty for a switch. Shells complete values named FILE, FOLDER or MODEL.
  std::string value;
  std::string help;
  // The default, for people. Empty: the target's value, if it has one.
  std::string fallback = {};
  // Allowed values, or their beginnings up to a ':'. They serve completion and suggestions;
  // refusing a value is the task of `take`.
  std::vector<std::string> choices = {};
  // Whether a flag of this name means something else in another verb. Then this flag's variable
  // names its verb: GODWIT_RUN_SAMPLES.
  bool is_verbs_own = false;
  // Whether a flag that is given again adds another value.
  bool repeats = false;
  // Whether further arguments that are no flags are more values.
  bool takes_list = false;
};

// HelpRequest: thrown by Parse when the help is asked for. Not an Error: nothing is wrong.
struct HelpRequest {
  CommandPage page;
};

class CommandLine {
 public:
  CommandLine(std::string verb, std::string synopsis, std::string summary);

  // Begins a group of flags under a heading.
  void Group(std::string title);

  // Adds a flag. take: called with every value, in order; its errors get the flag's name in front.
  void Add(Flag flag, std::function<void(const std::string& value)> take);
  void Add(Flag flag, std::string& target);
  void Add(Flag flag, std::optional<std::string>& target);
  void Add(Flag flag, std::vector<std::string>& target);  // each value is added
  void Add(Flag flag, float& target);
  void Add(Flag flag, bool& target);  // a switch

  // A default outside the range could not be given, and is not shown.
  template <std::integral T>
  void AddInt(Flag flag, T& target, int64_t min, int64_t max = std::numeric_limits<T>::max()) {
    if (flag.fallback.empty() && std::in_range<int64_t>(target) &&
        static_cast<int64_t>(target) >= min) {
      flag.fallback = fmt::format("{}", target);
    }
    Add(std::move(flag), [&target, min, max](const std::string& value) {
      target = static_cast<T>(ParseInt(value, min, max));
    });
  }

  // Declares the one argument that is no flag, anywhere among the flags. Parse throws Error(kInput)
  // if it is missing or there are two. It has no variable, because it is no flag.
  void Operand(std::string& target);

  // Declares that tools/plot draws the verb's JSON: --plot is refused with the commands that draw
  // it.
  void RefusePlot();

  // Declares flags (by long name) of which only one may be given. One on the command line overrides
  // the others in the environment.
  void Exclusive(std::vector<std::string> long_names);

  // Declares a flag that does nothing without one of the others (all by long name). On a command
  // line without them it is refused; in the environment it may wait for commands that have them.
  void Needs(std::string long_name, std::vector<std::string> others);

  // Throws Error(kInput) that names what was typed, or HelpRequest.
  void Parse(std::span<const std::string> arguments);

 private:
  struct Entry {
    Flag flag;
    std::string group;
    std::function<void(const std::string&)> take;
    std::vector<std::string> long_names;
    std::vector<std::string> short_names;
    std::string given = {};  // the name under which it was given; empty: it was not

    bool is_switch() const { return flag.value.empty(); }
  };

  CommandPage Page() const;
  std::vector<std::string> AllNames() const;
  Entry* Find(std::string_view name);
  void TakeOther(const std::string& argument);
  void TakeValue(Entry& entry, const std::string& name, const std::string& value);
  void ReadEnvironment();
  void RefuseContradictions(std::span<const GivenFlag> flags);
  void RefuseUseless();
  const Entry* GivenRival(const Entry& entry);
  [[noreturn]] void RefuseArgument(const std::string& argument);

  std::string verb_, synopsis_, summary_;
  std::string group_;
  std::vector<Entry> entries_;
  std::vector<std::vector<std::string>> exclusive_;
  std::vector<std::pair<std::string, std::vector<std::string>>> needs_;
  std::string* operand_ = nullptr;
  std::optional<std::string> given_operand_;
  bool help_ = false;
  bool refuses_plot_ = false;
  bool quiet_ = false;
};

}  // namespace godwit::console
