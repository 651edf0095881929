#include "text/pre_tokenizers.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "text/vocabulary.h"

namespace godwit {
namespace {

using nlohmann::ordered_json;

// Expressions of Oniguruma. \x{...} keeps letters of other scripts out of this file.
constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                               R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kBloom =
    R"( ?[^(\s|[.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{0964}\x{06d4}\x{060c}])]+)";
constexpr const char* kDeepSeekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepSeekHan = R"([\x{4e00}-\x{9fa5}\x{0800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
// The letters that DeepSeek's file lists: those with a case, except some scripts and Mathematics.
constexpr const char* kDeepSeekLetters =
    R"(\s?[\p{Lu}\p{Ll}\p{Lt}&&[^\x{560}-\x{588}\x{10c7}\x{10cd}\x{10d0}-\x{10ff}\x{1c80}-\x{1c8f})"
    R"(\x{2d00}-\x{2d2d}\x{a790}-\x{a7ff}\x{ab30}-\x{ab6f}\x{10570}-\x{105bf}\x{10d50}-\x{10d85})"
    R"(\x{16e40}-\x{16e7f}\x{1d400}-\x{1d7ff}\x{1df00}-\x{1dfff}]]+)";
constexpr const char* kDeepSeekSigns =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";

ordered_json Split(const char* regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

ordered_json Digits(bool individual) {
  return {{"type", "Digits"}, {"individual_digits", individual}};
}

// Spells bytes as letters. With `words`, first cuts as GPT-2 does.
ordered_json ByteLevel(bool words) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", words}};
}

const ordered_json kPunctuation = {{"type", "Punctuation"}, {"behavior", "Contiguous"}};

}  // namespace

const std::vector<PreTokenizer>& PreTokenizers() {
  static const std::vector<PreTokenizer> all = {
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"},
       .steps = {Split(kLlama3), ByteLevel(false)},
       .ignore_merges = true,
       .add_bos = true},
      {.names = {"qwen2", "deepseek-r1-qwen", "stablelm2"},
       .steps = {Split(kQwen2), ByteLevel(false)},
       .nfc = true},
      {.names = {"qwen35"}, .steps = {Split(kQwen35), ByteLevel(false)}, .nfc = true},
      {.names = {"gpt-2", "phi-2"}, .steps = {ByteLevel(true)}},
      {.names = {"mpt", "olmo"}, .steps = {ByteLevel(true)}, .nfc = true},
      {.names = {"falcon"},
       .steps = {kPunctuation, ByteLevel(true), Digits(false), Split("[0-9][0-9][0-9]")}},
      {.names = {"starcoder", "refact", "smollm", "codeshell"},
       .steps = {Digits(true), ByteLevel(true)}},
      {.names = {"command-r"}, .steps = {Digits(true), ByteLevel(true)}, .nfc = true},
      {.names = {"tekken"},
       .steps = {Split(kTekken), ByteLevel(false)},
       .ignore_merges = true,
       .add_bos = true},
      {.names = {"gpt-4o", "llama4"}, .steps = {Split(kGpt4o), ByteLevel(false)}},
      {.names = {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"},
       .steps = {Split(kLlama3), ByteLevel(false)}},
      {.names = {"deepseek-v3"},
       .steps = {Split(R"(\p{N}{1,3})"), Split(R"([\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+)"),
                 Split(kDeepSeekV3), ByteLevel(false)}},
      {.names = {"deepseek-llm"},
       .steps = {Split(R"([\r\n])"), Split(kDeepSeekLetters), Split(kDeepSeekSigns),
                 Split(R"(\s+$)"), Split(kDeepSeekHan), Digits(true), ByteLevel(false)}},
      {.names = {"deepseek-coder"},
       .steps = {Split(R"([\r\n])"), Split(R"(\s?\p{L}+)"), Split(R"(\s?\p{P}+)"),
                 Split(kDeepSeekHan), Digits(true), ByteLevel(false)}},
      {.names = {"bloom", "poro-chat", "gpt3-finnish"}, .steps = {Split(kBloom), ByteLevel(false)}},
      // For files whose converter did not know the model: llama.cpp's cuts.
      {.names = {"default"},
       .steps = {Split(R"([\p{P}\$\+<=>\^~\|]+)"), Split(kGpt2), Split(R"(\p{N}+)"),
                 Split("[0-9][0-9][0-9]"), ByteLevel(false)}},
  };
  return all;
}

std::vector<std::string> PreTokenizerNames() {
  std::vector<std::string> names;
  for (const PreTokenizer& each : PreTokenizers()) {
    names.insert(names.end(), each.names.begin(), each.names.end());
  }
  return names;
}

const PreTokenizer& FindPreTokenizer(std::string_view name, std::string_view what) {
  const auto found = std::ranges::find_if(PreTokenizers(), [&](const PreTokenizer& each) {
    return std::ranges::find(each.names, name) != each.names.end();
  });
  if (found != PreTokenizers().end()) return *found;
  Throw(ErrorKind::kUnsupported, "{}: the pre-tokenizer {} is not known; known are {}", what,
        Quote(name), NameList(PreTokenizerNames(), [](const std::string& each) { return each; }));
}

}  // namespace godwit
