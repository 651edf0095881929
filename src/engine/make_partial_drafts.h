// Draft tokens by GenerateOptions::draft "partial" and "triforce".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "attention/make_policy.h"
#include "base/stopwatch.h"
#include "generate/draft_source.h"
#include "generate/model_text.h"

namespace godwit {

// Makes the source. arguments: the text after "partial:", or nothing. text: how the texts are
// cached. now_ms: as PartialDrafts takes it. Throws Error(kInput) for senseless arguments,
// Error(kUnsupported) for texts of which no part can be looked at.
std::unique_ptr<DraftSource> MakePartialDrafts(std::string_view arguments,
                                               const AttentionGeometry& geometry,
                                               const PolicyOptions& text, NowMs now_ms);

// Makes TriForce's two levels. arguments: the text after "triforce:", or nothing. small: of the
// draft model, whose texts have a KV policy of that spelling. The others, and errors: as above.
std::unique_ptr<DraftSource> MakeTriForceDrafts(
    std::string_view arguments, const AttentionGeometry& geometry, const PolicyOptions& text,
    const std::function<ModelText::Parts(const std::string& kv)>& small, NowMs now_ms);

}  // namespace godwit
