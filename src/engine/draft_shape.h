// The shapes of draft trees that GenerateOptions::draft_tree names.
#pragma once

#include <string_view>

#include "generate/draft_tree.h"

namespace godwit {

// text: "rows=16,depth=4,children=2", each optional, limits trees that are as large as pays; empty:
// nothing does. "3x3x3" and "1,3,3,3", as TokenSwift has it, always make three draft tokens, three
// behind each of these, and so on. The first number of the second form stands for the text's last
// token, so it is 1. Such a tree has 64 rows at most, those of a step, or it would be cut. Throws
// Error(kInput) for all else.
DraftShape ParseDraftShape(std::string_view text);

}  // namespace godwit
