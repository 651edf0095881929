#include <string>

#include "model/archs/families.h"

namespace godwit {

// Published files keep the text model beside the vision model. Since 4.52, transformers keeps it
// inside the whole.
DecoderSpec BesideVision(const HfConfig& config, DecoderSpec text, std::string_view vision) {
  text.family = config.model_type();
  ModuleNames& names = text.names;
  for (std::string* name : {&names.embedding,
                            &names.final_norm,
                            &names.head,
                            &names.attention_norm,
                            &names.mixer_in,
                            &names.mixer_out,
                            &names.convolution,
                            &names.delta_z,
                            &names.delta_gates,
                            &names.delta_update,
                            &names.delta_decay,
                            &names.mixer_norm,
                            &names.decay_rates,
                            &names.decay_biases,
                            &names.q,
                            &names.k,
                            &names.v,
                            &names.query_down,
                            &names.query_down_norm,
                            &names.kv_down,
                            &names.kv_down_norm,
                            &names.kv_up,
                            &names.q_norm,
                            &names.k_norm,
                            &names.attention_out,
                            &names.attention_out_norm,
                            &names.mlp_norm,
                            &names.router,
                            &names.gate,
                            &names.up,
                            &names.down,
                            &names.dense_gate,
                            &names.dense_up,
                            &names.dense_down,
                            &names.shared_gate,
                            &names.shared_up,
                            &names.shared_down,
                            &names.shared_share,
                            &names.per_expert_gate,
                            &names.per_expert_up,
                            &names.per_expert_down,
                            &names.router_gains,
                            &names.expert_scales,
                            &names.experts_norm,
                            &names.experts_out_norm,
                            &names.shared_out_norm,
                            &names.layer_table,
                            &names.layer_model,
                            &names.layer_model_norm,
                            &names.layer_gate,
                            &names.layer_out,
                            &names.layer_out_norm,
                            &names.layer_scale,
                            &names.streams_in,
                            &names.streams_out,
                            &names.stream_router,
                            &names.stream_norm,
                            &names.stream_predict,
                            &names.stream_correct,
                            &names.stream_factors,
                            &names.laurel_down,
                            &names.laurel_up,
                            &names.laurel_norm,
                            &names.mlp_out_norm}) {
    name->insert(0, "language_model.");
  }
  names.renamed = {{"language_model.model.", "model.language_model."}, {"language_model.", ""}};
  for (const std::string_view module : {vision, std::string_view("multi_modal_projector")}) {
    names.others.push_back(fmt::format("{}.", module));
    names.others.push_back(fmt::format("model.{}.", module));
  }
  text.warnings.push_back(
      fmt::format("config.json: vision_config is ignored: a {} model reads text only, and its "
                  "tensors {}.* and multi_modal_projector.* are left out",
                  text.family, vision));
  return text;
}

}  // namespace godwit
