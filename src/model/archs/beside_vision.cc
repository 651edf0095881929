#include "model/archs/families.h"

namespace godwit {

// Published files name the model that writes as one beside what sees, transformers since 4.52 as a
// part of the whole.
DecoderSpec BesideVision(const HfConfig& config, DecoderSpec text) {
  text.family = config.model_type();
  ModuleNames& names = text.names;
  for (std::string* name :
       {&names.embedding, &names.final_norm, &names.head, &names.attention_norm, &names.q, &names.k,
        &names.v, &names.q_norm, &names.k_norm, &names.attention_out, &names.attention_out_norm,
        &names.mlp_norm, &names.gate, &names.up, &names.down, &names.mlp_out_norm}) {
    name->insert(0, "language_model.");
  }
  names.renamed = {{"language_model.model.", "model.language_model."}, {"language_model.", ""}};
  names.others = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                  "model.multi_modal_projector."};
  text.warnings.push_back(fmt::format(
      "config.json: vision_config is ignored: a {} model reads texts here, and its tensors "
      "vision_tower.* and multi_modal_projector.* are left out",
      text.family));
  return text;
}

}  // namespace godwit
