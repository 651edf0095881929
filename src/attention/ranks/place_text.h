// PlaceText: the way in which ranks share a text, as its options say.
#pragma once

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "attention/make_policy.h"
#include "attention/ranks/text_placement.h"

namespace godwit {

// The placement on options.ranks; on one rank or none, all of it. options.prefill: a ring or a
// star, chosen already. alone: the facts of the policy by which the text would be read and asked on
// one rank. They become those of the text on these ranks. Throws Error(kInput) for another prefill,
// and Error(kUnsupported) for a model or a policy that needs keys of other ranks in another way.
TextPlacement PlaceText(const AttentionGeometry& geometry, const PolicyOptions& options,
                        PolicyFacts& alone);

}  // namespace godwit
