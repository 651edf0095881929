#include "engine/policy_options.h"

#include "base/error.h"
#include "engine/storage_types.h"

namespace godwit {

PolicyOptions PolicyOptionsOf(const SessionOptions& session, const DecoderSpec& spec,
                              const WeightTypes& weights) {
  if (session.context_tokens < 0) {
    Throw(ErrorKind::kInput,
          "a context of {} tokens: expected at least 1, or 0 for the model's maximum",
          session.context_tokens);
  }
  const DType kv_type = ChooseKvType(session.kv_type, weights);
  return {.spec = session.kv,
          .kv_type = kv_type,
          .int8_products = ChooseInt8Attention(session.int8_attention, kv_type),
          .context = session.context_tokens == 0 ? DefaultContext(spec) : session.context_tokens,
          .prefill = session.prefill,
          .gpu_window = session.gpu_window};
}

}  // namespace godwit
