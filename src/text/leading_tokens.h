// The tokens in front of every text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace godwit {

using EncodeText =
    FunctionRef<std::vector<int32_t>(std::string_view text, bool add_special_tokens)>;

// The tokens that a tokenizer puts in front of every text: a BOS, for most.
std::vector<int32_t> LeadingTokens(EncodeText encode);

}  // namespace godwit
