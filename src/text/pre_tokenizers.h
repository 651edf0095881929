// The ways in which texts of byte-level BPE are cut into words before any merge, by GGUF's names
// (tokenizer.ggml.pre, as llama.cpp's converter writes it). GGUF holds no more than the name. The
// rest is taken from the tokenizer.json of the models so named.
//
// Internal to src/text.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace godwit {

struct PreTokenizer {
  std::vector<std::string_view> names;
  std::vector<nlohmann::ordered_json> steps;  // of a "Sequence" of tokenizer.json
  bool nfc = false;                           // the text is put into Unicode's composed form first
  bool ignore_merges = false;  // a word that is a token is one, whatever the merges make of it
  bool add_bos = false;        // what models of this kind do where their files do not say
};

// Never changes.
const std::vector<PreTokenizer>& PreTokenizers();

// `what` names the vocabulary in messages. Throws Error(kUnsupported) that lists the known names.
const PreTokenizer& FindPreTokenizer(std::string_view name, std::string_view what);

}  // namespace godwit
