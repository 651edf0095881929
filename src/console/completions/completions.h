// Completion scripts for shells, made from the pages of all verbs.
//
// They complete verbs, flags, the values of enumerations, files, folders and models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "console/options/help.h"

namespace godwit::console {

std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

// The parts that the three share.

enum class ValueKind { kNone, kWords, kFile, kFolder, kModel, kOther };
ValueKind KindOf(const FlagPage& flag);

// The words of a flag of kWords: "dense", and "sinks:" for sinks:S+W.
std::vector<std::string> ValueWords(const FlagPage& flag);

// The text in single quotes, with `quote` in place of single quotes inside.
std::string SingleQuoted(std::string_view text, std::string_view quote);

}  // namespace godwit::console
