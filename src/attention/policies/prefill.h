// The policy of a text that is read in one way and asked in another. Rows of its context see a
// window, or their block and an anchor. Rows behind the context see the text by another policy.
//
// Star Attention, phase 1 (arXiv 2411.17116, section 2.1): the text reads every block behind a copy
// of the anchor. The anchor's keys are the same whatever block follows, so a star is a mask.
#pragma once

#include <memory>
#include <string_view>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "tensor/dtype.h"

namespace godwit {

// Makes the policy. spec: as ParsePrefill takes it. `asked` shows the rows from SetQuestion on what
// they see. No position moves while the context is read, so this serves every model. For a GPU,
// throws Error(kUnsupported) that names what it cannot read: a policy that forgets, keys that are
// stored as kv_type, or the model.
std::unique_ptr<AttentionPolicy> MakePrefillPolicy(const AttentionGeometry& geometry,
                                                   std::string_view spec, DType kv_type,
                                                   std::unique_ptr<AttentionPolicy> asked);

}  // namespace godwit
