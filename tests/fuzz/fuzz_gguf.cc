#include <algorithm>
#include <set>
#include <string>

#include "checkpoint/gguf_tokenizer.h"
#include "model/archs/all.h"
#include "model/gguf_model.h"
#include "model/model_tensors.h"
#include "tests/fuzz/targets.h"
#include "weights/gguf.h"
#include "weights/gguf_metadata.h"
#include "weights/gguf_types.h"

namespace godwit::fuzz {
namespace {

uint64_t Sum(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (const std::byte b : bytes) sum += static_cast<unsigned>(b);
  return sum;
}

void CheckTensors(const GgufContents& contents, std::span<const std::byte> file) {
  std::set<std::string> names;
  uint64_t end = 0, sum = 0;
  for (const TensorInfo& tensor : contents.tensors) {
    Require(names.insert(tensor.name).second, "names are distinct");
    Require(tensor.offset_bytes >= end, "tensors are apart");
    Require(tensor.bytes.data() == file.data() + tensor.offset_bytes, "bytes are where it says");
    Require(tensor.bytes.size() <= file.size() - tensor.offset_bytes, "bytes lie in the file");
    for (const int64_t dim : tensor.shape) Require(dim > 0, "every dim is positive");
    Require(!tensor.dtype || tensor.blocks == nullptr, "it is of one type");
    const int64_t elements = tensor.NumElements();
    if (tensor.dtype) {
      Require(static_cast<size_t>(elements) * SizeOf(*tensor.dtype) == tensor.bytes.size(),
              "size is shape times dtype");
    }
    if (tensor.blocks != nullptr) {
      Require(elements / tensor.blocks->elements * tensor.blocks->bytes == std::ssize(tensor.bytes),
              "size is blocks times their bytes");
      DecodedBlock block;
      for (int64_t at = 0; at < std::ssize(tensor.bytes); at += tensor.blocks->bytes) {
        DecodeBlock(*tensor.blocks, tensor.bytes.data() + at, block);
        sum += block.codes[0];
      }
    }
    sum += Sum(tensor.bytes);
    end = tensor.offset_bytes + tensor.bytes.size();
  }
  volatile uint64_t keep = sum;  // the address sanitizer checks the reads above
  static_cast<void>(keep);
}

// A value read as any other type than its own is refused.
void CheckValues(const GgufContents& contents) {
  const GgufMetadata metadata(contents.values, "fuzz.gguf");
  for (const auto& entry : contents.values) {
    const std::string& key = entry.first;
    Accepts([&] { (void)metadata.Int(key, {0, 100}); });
    Accepts([&] { (void)metadata.Float(key, {0, 100}); });
    Accepts([&] { (void)metadata.BoolOr(key, true); });
    Accepts([&] { (void)metadata.String(key); });
    Accepts([&] { (void)metadata.Ints(key, {0, 100}); });
    Accepts([&] { (void)metadata.Floats(key); });
    Accepts([&] {
      for (const std::string_view text : metadata.Strings(key)) {
        Sum(std::as_bytes(std::span(text.data(), text.size())));
      }
    });
  }
}

// Describes the model, up to the tensors that would be loaded.
void CheckModel(const GgufContents& contents) {
  Accepts([&] {
    const GgufMetadata metadata(contents.values, "fuzz.gguf");
    const GgufModel model =
        TranslateGguf({.files = {}, .metadata = metadata, .tensors = contents.tensors});
    for (const std::string& name : model.weights->Names()) {
      const TensorInfo& tensor = *model.weights->Find(name);
      if (tensor.row_order == nullptr) continue;
      const std::set<int64_t> rows(tensor.row_order->begin(), tensor.row_order->end());
      Require(std::ssize(rows) == tensor.shape[0] && *rows.begin() == 0 &&
                  *rows.rbegin() == tensor.shape[0] - 1,
              "every row has a place of its own");
    }
    const DecoderSpec spec = DescribeModel(HfConfig::Parse(model.config, "fuzz.gguf"));
    (void)ResolveTensors(spec, *model.weights);
  });
}

void CheckText(const GgufContents& contents) {
  const GgufMetadata metadata(contents.values, "fuzz.gguf");
  Accepts([&] {
    const Vocabulary vocabulary = GgufVocabulary(metadata);
    (void)TokenizerJson(vocabulary, "fuzz.gguf");
  });
  Accepts([&] {
    const TokenizerConfig config = GgufTokenizerConfig(metadata, 100);
    for (const int32_t id : config.eos_ids) Require(id >= 0 && id < 100, "ids are in range");
  });
  Accepts([&] { (void)GgufChatTemplate(metadata, ""); });
}

}  // namespace

void FuzzGguf(std::span<const uint8_t> input) {
  const auto file = std::as_bytes(input);
  Accepts([&] {
    const GgufContents contents = ParseGguf(file, "fuzz.gguf");
    CheckTensors(contents, file);
    CheckValues(contents);
    CheckModel(contents);
    CheckText(contents);
  });
}

}  // namespace godwit::fuzz
