#include "model/eagle3_spec.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/hf_fields.h"
#include "model/spec.h"
#include "model/unread_keys.h"

namespace godwit {
namespace {

// The residual stream of such models is none that a head could read, or their attention is no
// frame in which the head's fits.
void RefuseModel(const DecoderSpec& model) {
  const auto refuse = [&](std::string_view what) {
    Throw(ErrorKind::kUnsupported,
          "EAGLE-3 heads are supported for models without {}, and this {} model has it: leave "
          "--draft eagle3 out",
          what, model.family);
  };
  if (model.latent) refuse("latent attention");
  if (model.streams) refuse("several residual streams");
  if (!model.alibi.slopes.empty()) refuse("ALiBi");
  if (model.embedding_size) refuse("embeddings of a width of their own");
}

void ExpectPlainHead(const HfConfig& config, const DecoderSpec& head) {
  ExpectString(config, "model_type", "llama", "llama");
  if (head.layers != 1) config.Refuse("num_hidden_layers", "1", ErrorKind::kUnsupported);
  if (head.attention_sink != AttentionSink::kNone) {
    config.Refuse("attention_sink", "none", ErrorKind::kUnsupported);
  }
  for (const std::string_view key :
       {"tie_word_embeddings", "attention_bias", "qkv_bias", "mlp_bias", "bias", "fc_norm",
        "norm_output", "norm_before_fc"}) {
    ExpectBool(config, key, false, false);
  }
  const bool window = config.IntOr("sliding_window", 0, {0, kContextRange.max}) > 0;
  if (window && config.BoolOr("use_sliding_window", true)) {
    config.Refuse("sliding_window", "none", ErrorKind::kUnsupported);
  }
  if (DependsOnContext(head.rotary)) {
    config.Refuse("rope_scaling", "a kind that does not depend on the length of the text",
                  ErrorKind::kUnsupported);
  }
  if (const auto eagle = config.Object("eagle_config")) {
    ExpectBool(*eagle, "use_aux_hidden_state", true, true);
    ExpectBool(*eagle, "use_input_layernorm_in_first_layer", true, true);
    ExpectBool(*eagle, "use_last_layernorm", true, true);
    ExpectBool(*eagle, "use_mtp_layernorm", false, false);
  }
}

void ExpectOfModel(const HfConfig& config, const Eagle3Spec& head, const DecoderSpec& model) {
  const auto expect = [&](std::string_view key, int64_t found, int64_t expected) {
    if (found == expected) return;
    config.Refuse(key, fmt::format("{}, as the model has it", expected), ErrorKind::kInput);
  };
  const bool own_width = config.Has("target_hidden_size");
  expect(own_width ? "target_hidden_size" : "hidden_size", head.model_hidden, model.hidden_size);
  expect("vocab_size", head.vocab, model.vocab_size);
}

std::array<int64_t, Eagle3Spec::kStates> ReadPlaces(const HfConfig& config,
                                                    const DecoderSpec& model) {
  constexpr std::string_view kIds = "eagle_aux_hidden_state_layer_ids";
  const auto eagle = config.Object("eagle_config");
  const int64_t layers = model.layers;
  const auto from = [&](const HfConfig& fields, int64_t first) {
    const std::vector<int64_t> ids = fields.Ints(kIds, {0, layers - first});
    if (std::ssize(ids) != Eagle3Spec::kStates) {
      fields.Refuse(kIds, "the numbers of three layers", ErrorKind::kUnsupported);
    }
    return std::array{ids[0] + first, ids[1] + first, ids[2] + first};
  };
  const auto lists = [&](const HfConfig& fields) {
    return fields.Has(kIds) && !fields.Ints(kIds, {INT64_MIN, INT64_MAX}).empty();
  };
  if (eagle && lists(*eagle)) return from(*eagle, 1);
  if (lists(config)) return from(config, 0);
  if (layers < 5) {
    config.Refuse("eagle_config", fmt::format("{} for a model of {} layers", kIds, layers));
  }
  return {2, layers / 2, layers - 3};
}

}  // namespace

Eagle3Spec ReadEagle3(const HfConfig& config, const DecoderSpec& model) {
  RefuseModel(model);
  DecoderSpec head;
  ReadCommonFields(config, head);
  ReadRotary(config, head.head_dim, "rope_theta", head);
  ExpectPlainHead(config, head);
  Eagle3Spec spec{
      .behind = {},
      .model_hidden = config.IntOr("target_hidden_size", head.hidden_size, kWidthRange),
      .hidden = head.hidden_size,
      .vocab = head.vocab_size,
      .draft_vocab = config.IntOr("draft_vocab_size", head.vocab_size, {1, head.vocab_size}),
      .heads = head.heads,
      .kv_heads = head.kv_heads,
      .head_dim = head.head_dim,
      .rotary = head.rotary,
      .intermediate = head.mlp.intermediate,
      .activation = head.mlp.activation,
      .norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-6, {0, 1})),
      .norm_before_residual = config.BoolOr("norm_before_residual", false)};
  ExpectOfModel(config, spec, model);
  spec.behind = ReadPlaces(config, model);
  CheckUnreadKeys(config, head);
  return spec;
}

}  // namespace godwit
