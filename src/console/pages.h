// The pages of all verbs of both programs: for the man page, the completions, and warnings about
// misspelt environment variables. A program knows its own, and asks the other program for the rest.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "console/options/help.h"
#include "console/verbs.h"

namespace godwit::console {

// To be called first in main. other: the path of the other program, which need not exist.
void SetProgram(std::span<const Command> commands, std::filesystem::path other);

// The running program's command of this name. Null: there is none.
const Command* FindCommand(std::string_view name);

std::vector<CommandPage> PagesOfThisProgram();

// The pages of every verb, in the order of the lists; each evaluation has one in place of `eval`.
// The pages of a missing program are left out.
std::vector<CommandPage> AllPages();

// AllPages, but says on standard error which pages are missing.
std::vector<CommandPage> AllPagesOrWarn();

// The argument that asks a program for its pages, and the answer.
inline constexpr std::string_view kPagesRequest = "--pages";
std::string PagesOfThisProgramJson();

// Advice for getting the missing program.
inline constexpr std::string_view kHowToBuildTheLab =
    "build it in the sources of godwit with ./godwit VERB, or with cmake --build FOLDER --target "
    "godwit_lab_main";

}  // namespace godwit::console
