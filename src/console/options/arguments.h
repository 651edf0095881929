// Splits the arguments of a verb into flags and their values, as users of llama.cpp write them:
// "-n 5", "-n=5", "-n5", "-ub 64", "--top-k 5", "--top-k=5", "--json"; and "-f a.txt b.txt", which
// is what a shell makes of "-f *.txt".
//
// Not by a library: CLI11 reads "-ub" as -u with the value b, what follows "--stop=" as its value,
// and does not tell which of a flag's names was typed.
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
  std::string name;                  // as it was typed
  std::optional<std::string> value;  // of a switch: only in "--json=0"
};

// In order, a flag that has several values once for each. kind: of a name with its dashes, such as
// "-ub". other: takes an argument that is no flag, or throws. Throws Error(kInput) for a flag that
// lacks its value; what is a flag itself is no value but behind "=" ("-p=--temp").
std::vector<GivenFlag> SplitArguments(
    std::span<const std::string> arguments,
    const std::function<FlagKind(std::string_view name)>& kind,
    const std::function<void(const std::string& argument)>& other);

}  // namespace godwit::console
