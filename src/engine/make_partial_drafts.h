// What GenerateOptions::draft says behind "partial".
#pragma once

#include <memory>
#include <string_view>

#include "attention/make_policy.h"
#include "base/stopwatch.h"
#include "generate/draft_source.h"

namespace godwit {

// arguments: what follows "partial:", or nothing. text: how the texts are cached. now_ms: as
// PartialDrafts takes it. Throws Error(kInput) for what makes no sense, Error(kUnsupported) for
// texts of which there is no part to look at.
std::unique_ptr<DraftSource> MakePartialDrafts(std::string_view arguments,
                                               const AttentionGeometry& geometry,
                                               const PolicyOptions& text, NowMs now_ms);

}  // namespace godwit
