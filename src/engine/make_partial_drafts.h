// Draft tokens by GenerateOptions::draft "partial".
#pragma once

#include <memory>
#include <string_view>

#include "attention/make_policy.h"
#include "base/stopwatch.h"
#include "generate/draft_source.h"

namespace godwit {

// Makes the source. arguments: the text after "partial:", or nothing. text: how the texts are
// cached. now_ms: as PartialDrafts takes it. Throws Error(kInput) for senseless arguments,
// Error(kUnsupported) for texts of which no part can be looked at.
std::unique_ptr<DraftSource> MakePartialDrafts(std::string_view arguments,
                                               const AttentionGeometry& geometry,
                                               const PolicyOptions& text, NowMs now_ms);

}  // namespace godwit
