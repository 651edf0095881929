// The pages of all verbs, of both programs: for the man page, the completions, and warnings of
// misspelt environment variables. A program knows its own, and asks the other one for the rest.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "console/options/help.h"
#include "console/verbs.h"

namespace godwit::console {

// First thing in main. other: where the other program is, or would be.
void SetProgram(std::span<const Command> commands, std::filesystem::path other);

// What the running program does by this name. Null where that is nothing.
const Command* FindCommand(std::string_view name);

std::vector<CommandPage> OwnPages();

// Of every verb and, in place of `eval`, of every evaluation, as they stand in the lists. Those of
// a program that is not there are missing.
std::vector<CommandPage> AllPages();

// Likewise. Says on standard error which are missing.
std::vector<CommandPage> AllPagesOrWarn();

// The argument by which the other program asks, and the answer.
inline constexpr std::string_view kPagesRequest = "--pages";
std::string OwnPagesJson();

// How to come by a program that is not there.
inline constexpr std::string_view kHowToBuildTheLab =
    "in the sources of godwit, ./godwit builds it when it is needed first, as does cmake --build "
    "FOLDER --target godwit_lab_main";

}  // namespace godwit::console
