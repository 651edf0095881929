#include "checkpoint/generation_config.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/written_file.h"
#include "text/tokenizer_config.h"

namespace godwit::fuzz {

void FuzzGenerationConfig(std::span<const uint8_t> input) {
  static const WrittenFile file("generation_config.json");
  file.Write(input);
  Accepts([&] {
    const TokenizerConfig config = ReadTokenizerConfig(file.folder());
    Require(config.bos_id.value_or(0) >= 0, "an id is not negative");
    for (const int32_t id : config.eos_ids) Require(id >= 0, "an id is not negative");
    Require(config.named_tokens.empty(), "texts are in other files");
  });
  Accepts([&] {
    const SamplerDefaults defaults = ReadGenerationConfig(file.folder());
    Require(defaults.choices.temperature.value_or(0) >= 0, "a bad value is a problem, no default");
  });
}

}  // namespace godwit::fuzz
