// SplitArguments: a verb's arguments as flags and values, as users of llama.cpp write them: "-n 5",
// "-n=5", "-n5", "-ub 64", "--top-k 5", "--top-k=5", "--json". "-f a.txt b.txt" is also accepted: a
// shell makes it of "-f *.txt".
//
// A library does not do it: CLI11 reads "-ub" as -u with the value b and takes the argument behind
// "--stop=" as its value. It also does not tell which of a flag's names was typed.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::console {

enum class FlagKind { kUnknown, kSwitch, kWithValue, kWithValues };

struct GivenFlag {
  std::string name;                  // as typed
  std::optional<std::string> value;  // for a switch only in "--json=0"
};

// Flags in order, a flag with several values once for each. kind: takes a name with its dashes,
// such as "-ub". other: takes an argument that is no flag, or throws. Throws Error(kInput) for a
// flag without its value; a flag is a value only behind "=" ("-p=--temp").
std::vector<GivenFlag> SplitArguments(
    std::span<const std::string> arguments,
    const std::function<FlagKind(std::string_view name)>& kind,
    const std::function<void(const std::string& argument)>& other);

}  // namespace godwit::console
