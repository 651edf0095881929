// Makes an argument list that CLI11 understands out of one as users of llama.cpp write it.
//
// "-ub" and "-sys" become the long names that they stand for, since CLI11 reads "-ub" as -u with
// the value b; other flags of that kind ("-ngl") are refused, "-n5" is not. "--name=value" becomes
// two arguments, since CLI11 takes what follows for the value of "--name=". What is the value of a
// flag is left alone, whatever it looks like.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::cli {

// Throws Error(kInput) if the last flag lacks its value.
// long_names: "-ub" -> "--ubatch-size". takes_value("--prompt"): whether the flag has a value.
// refuse: throws for an unknown flag.
std::vector<std::string> RewriteArguments(
    std::span<const std::string> arguments,
    const std::map<std::string, std::string, std::less<>>& long_names,
    const std::function<bool(std::string_view flag)>& takes_value,
    const std::function<void(const std::string& flag)>& refuse);

}  // namespace godwit::cli
