#include <nlohmann/json.hpp>
#include <string>

#include "tests/fuzz/targets.h"
#include "text/sentencepiece_model.h"

namespace godwit::fuzz {

// A tokenizer.model, up to the text for the tokenizer's process.
void FuzzSentencePiece(std::span<const uint8_t> input) {
  Accepts([&] {
    const Vocabulary vocabulary = ParseSentencePieceModel(AsText(input), "tokenizer.model");
    Require(!vocabulary.tokens.empty(), "there are pieces");
    Require(vocabulary.tokens.size() <= input.size(), "every piece takes bytes");
    for (const auto& id : {vocabulary.unk_id, vocabulary.bos_id, vocabulary.eos_id}) {
      Require(!id || (*id >= 0 && *id < std::ssize(vocabulary.tokens)), "ids are those of pieces");
    }
    const std::string json = TokenizerJson(vocabulary, "tokenizer.model");
    Require(nlohmann::json::accept(json), "what is written is JSON");
  });
}

}  // namespace godwit::fuzz
