// The meaning of SessionOptions for the cache of a text, before there is a text or an engine.
#pragma once

#include "attention/make_policy.h"
#include "godwit/engine.h"
#include "model/decoder.h"
#include "model/spec.h"

namespace godwit {

// The policy options of a session's texts, on one host. weights: the types by which a KV type
// "auto" is chosen. Throws Error(kInput) for a KV type that there is not, or a negative context.
PolicyOptions PolicyOptionsOf(const SessionOptions& session, const DecoderSpec& spec,
                              const WeightTypes& weights);

}  // namespace godwit
