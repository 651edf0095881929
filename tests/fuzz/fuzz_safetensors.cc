#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "tests/fuzz/targets.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"

namespace godwit::fuzz {
namespace {

void CheckAccepted(const SafetensorsContents& contents, std::span<const std::byte> file) {
  std::set<std::string> names;
  uint64_t end = contents.tensors.empty() ? file.size() : contents.tensors[0].offset_bytes;
  Require(end > 8, "a header comes first");
  unsigned sum = 0;
  for (const TensorInfo& tensor : contents.tensors) {
    Require(names.insert(tensor.name).second, "names are distinct");
    Require(tensor.offset_bytes == end, "tensors follow each other");
    Require(tensor.bytes.data() == file.data() + tensor.offset_bytes, "bytes are where it says");
    Require(tensor.bytes.size() <= file.size() - tensor.offset_bytes, "bytes lie in the file");
    for (const int64_t dim : tensor.shape) Require(dim >= 0, "no dim is negative");
    if (tensor.dtype) {
      Require(
          static_cast<size_t>(tensor.NumElements()) * SizeOf(*tensor.dtype) == tensor.bytes.size(),
          "size is shape times dtype");
      Require(tensor.dtype_name == Name(*tensor.dtype), "dtype and dtype_name agree");
    }
    Require(!tensor.Describe().empty(), "a tensor describes itself");
    end += tensor.bytes.size();
    for (const std::byte b : tensor.bytes) sum += static_cast<unsigned>(b);
  }
  Require(end == file.size(), "tensors cover the file");
  volatile unsigned keep = sum;  // the address sanitizer checks the reads above
  static_cast<void>(keep);
}

bool ParseFile(std::span<const std::byte> file) {
  return Accepts([&] { CheckAccepted(ParseSafetensors(file, "fuzz.safetensors"), file); });
}

std::string Framed(std::string_view header, std::string_view data) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  file += header;
  file += data;
  return file;
}

bool ParseFile(const std::string& file) {
  return ParseFile(std::as_bytes(std::span(file.data(), file.size())));
}

struct Type {
  const char* name;
  uint64_t bits;
};
constexpr Type kTypes[] = {{"F32", 32}, {"BF16", 16}, {"I64", 64},    {"U8", 8},
                           {"BOOL", 8}, {"F4", 4},    {"F6_E2M3", 6}, {"C64", 64}};
constexpr uint64_t kOddNumbers[] = {uint64_t{1} << 32, uint64_t{1} << 62, uint64_t{1} << 63,
                                    ~uint64_t{0},      ~uint64_t{0} - 7,  uint64_t{1} << 61};

// A header whose numbers are right except for those that the input disturbs. Mutations of JSON text
// hardly ever get two tensors and their offsets nearly right at once.
void ParseGeneratedLayout(std::span<const uint8_t> input) {
  const auto next = [&] {
    if (input.empty()) return uint8_t{0};
    const uint8_t byte = input[0];
    input = input.subspan(1);
    return byte;
  };
  bool disturbed = false;
  const auto number = [&](uint64_t right) {
    const uint8_t choice = next();
    if (choice < 192) return right;
    disturbed = true;
    if (choice < 208) return right + 1;
    if (choice < 224) return right - 1;
    if (choice < 240) return uint64_t{choice} - 224;
    return kOddNumbers[choice % std::size(kOddNumbers)];
  };
  std::string header = "{";
  uint64_t end = 0;
  for (int i = 0; i < 8 && !input.empty(); ++i) {
    const Type& type = kTypes[next() % std::size(kTypes)];
    std::string shape;
    uint64_t bits = type.bits;
    for (int rank = next() % 4; rank > 0; --rank) {
      const uint64_t dim = next() % 5;
      bits *= dim;
      shape += fmt::format("{}{}", shape.empty() ? "" : ",", number(dim));
    }
    if (bits % 8 != 0) disturbed = true;
    const uint64_t begin = number(end);  // in statements: arguments have no order of evaluation
    end += bits / 8;
    const uint64_t stop = number(end);
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          i ? "," : "", i, type.name, shape, begin, stop);
  }
  const bool accepted = ParseFile(Framed(header + "}", std::string(number(end) % 4096, 'x')));
  Require(accepted || disturbed || end >= 4096, "what is right is accepted");
}

}  // namespace

void FuzzSafetensors(std::span<const uint8_t> input) {
  // 0xff begins no JSON and no plausible length.
  if (!input.empty() && input[0] == 0xff) return ParseGeneratedLayout(input.subspan(1));
  ParseFile(std::as_bytes(input));

  // Parses again with a length field that fits: the header ends at the first zero byte, the rest is
  // data. By itself the fuzzer hardly ever keeps the length in step with the header that it
  // mutates.
  const std::string_view text = AsText(input);
  const size_t header_bytes = std::min(text.find('\0'), text.size());
  ParseFile(
      Framed(text.substr(0, header_bytes), text.substr(std::min(header_bytes + 1, text.size()))));

  Accepts([&] {
    for (const auto& [name, shard] : ParseShardIndex(text, "fuzz.index.json")) {
      Require(!shard.empty() && shard != ".." && shard.find('/') == std::string::npos,
              "a shard stays in its folder");
    }
  });
}

}  // namespace godwit::fuzz
