// CommandLine: the flags of one verb, with their help and their environment variables.
//
//   CommandLine line("run", "-m FOLDER -p TEXT [flags]", "Continues a text.");
//   line.Group("Prompt");
//   line.Add({"-p,--prompt", "TEXT", "the text to continue"}, prompt);
//   if (!line.Parse(arguments)) return 0;  // the help was asked for
//
// A flag that is not on the command line is looked up in the environment: --top-k as GODWIT_TOP_K,
// where an empty variable counts as none. A target that neither names keeps its value, the default.
// Of a flag given twice, the last counts. Targets must outlive Parse.
#pragma once

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

#include "cli/options/parse_value.h"

namespace godwit::cli {

struct Flag {
  std::string names;  // "-n,--predict"; short names may have several letters
  std::string value;  // "N", for the help; empty for a switch
  std::string help;
};

class CommandLine {
 public:
  CommandLine(std::string verb, std::string synopsis, std::string summary);

  // The title above the flags that are added from here on.
  void Group(std::string title);

  // take: called with every value, in order; what it throws gets the flag's name in front.
  void Add(Flag flag, std::function<void(const std::string& value)> take);
  void Add(Flag flag, std::string& target);
  void Add(Flag flag, std::optional<std::string>& target);
  void Add(Flag flag, std::vector<std::string>& target);  // each time one more
  void Add(Flag flag, float& target);
  void Add(Flag flag, bool& target);  // a switch

  template <std::integral T>
  void AddInt(Flag flag, T& target, int64_t min, int64_t max = std::numeric_limits<T>::max()) {
    Add(std::move(flag), [&target, min, max](const std::string& value) {
      target = static_cast<T>(ParseInt(value, min, max));
    });
  }

  // For a verb whose JSON tools/plot draws: --plot is refused with the commands that draw it.
  void RefusePlot();

  // At most one of these flags (by long name) may be given. One on the command line overrides the
  // others in the environment.
  void Exclusive(std::vector<std::string> long_names);

  // Throws Error(kInput). Returns false if it printed the help instead.
  bool Parse(std::span<const std::string> arguments);

 private:
  struct Entry {
    Flag flag;
    std::string group;
    std::function<void(const std::string&)> take;
    std::vector<std::string> long_names;
    std::vector<std::string> short_names;
    bool given = false;

    bool is_switch() const { return flag.value.empty(); }
  };

  std::vector<std::string> AllNames() const;
  Entry* Find(std::string_view name);
  void TakeValue(Entry& entry, const std::string& name, const std::string& value);
  void ReadArguments(std::span<const std::string> arguments);
  void ReadEnvironment();
  const Entry* GivenRival(const Entry& entry);
  [[noreturn]] void RefuseArgument(const std::string& argument) const;
  std::string Help() const;

  std::string verb_, synopsis_, summary_;
  std::string group_;
  std::vector<Entry> entries_;
  std::vector<std::vector<std::string>> exclusive_;
  bool help_ = false;
  bool refuses_plot_ = false;
};

}  // namespace godwit::cli
