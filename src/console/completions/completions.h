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

// What the three have in common.

enum class ValueKind { kNone, kWords, kFile, kFolder, kModel, kOther };
ValueKind KindOf(const FlagPage& flag);

// Of kWords: "dense", and "sinks:" for sinks:S+W.
std::vector<std::string> ValueWords(const FlagPage& flag);

// In single quotes, with `quote` in place of those inside.
std::string SingleQuoted(std::string_view text, std::string_view quote);

}  // namespace godwit::console
