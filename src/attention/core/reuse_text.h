// Tokens that were read in one text and stand in another one, at another place: passages that are
// read once for all prompts. Their keys are turned to the new positions, and nothing is read again.
// They have seen what stood before them when they were read, so the result is not the model's own.
// Sources: Prompt Cache (arXiv 2311.04934), CacheBlend (arXiv 2405.16444), EPIC (arXiv 2410.15332).
#pragma once

#include <cstdint>

#include "attention/core/text_cache.h"
#include "ops/exec.h"

namespace godwit {

// Throws Error(kUnsupported) for texts that cannot reuse tokens. Their models have states, learned
// positions, an index of their own or layers that predict, or their int8 keys lie around a centre.
// Or ranks share the text, or its policy derives data from more than keys.
void RequireReuse(const TextCache& text);

// Appends the tokens [begin, begin + count) of `from`, a text of the same model and context. Throws
// Error(kMemory) and Error(kCancelled) with the text as it was, and Error(kUnsupported) where
// RequireReuse does, or `from` has dropped some of these tokens.
void ReuseTokens(const Exec& exec, const TextCache& from, int64_t begin, int64_t count,
                 TextCache& text);

}  // namespace godwit
