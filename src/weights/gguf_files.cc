#include "weights/gguf_files.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

constexpr IntRange kPartRange{0, 99999};  // the numbers of five digits
constexpr IntRange kCountRange{0, int64_t{1} << 40};

struct Part {
  MappedFile file;
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;
};

Part ReadPart(const fs::path& path) {
  MappedFile file(path);
  GgufContents contents = ParseGguf(file.Span(), file.path());
  GgufMetadata metadata(std::move(contents.values), file.path());
  return {std::move(file), std::move(metadata), std::move(contents.tensors)};
}

}  // namespace

std::vector<fs::path> GgufParts(const fs::path& file) {
  const std::string name = file.filename();
  int first = 0, parts = 0;
  const auto ending = [&](int part) { return fmt::format("-{:05}-of-{:05}.gguf", part, parts); };
  const size_t size = ending(1).size();
  const size_t begin = name.size() - std::min(name.size(), size);
  const std::string own = name.substr(begin);
  // An ending counts only if the numbers read from it give the same ending again.
  if (std::sscanf(own.c_str(), "-%5d-of-%5d.gguf", &first, &parts) != 2 || first < 1 ||
      first > parts || own != ending(first)) {
    return {file};
  }
  std::vector<fs::path> all;
  for (int part = 1; part <= parts; ++part) {
    all.push_back(file.parent_path() / (name.substr(0, begin) + ending(part)));
  }
  return all;
}

GgufFiles OpenGgufFiles(const fs::path& file) {
  const std::vector<fs::path> paths = GgufParts(file);
  std::vector<Part> parts;
  for (const fs::path& path : paths) {
    const GgufMetadata& metadata = parts.emplace_back(ReadPart(path)).metadata;
    const int64_t count = metadata.IntOr("split.count", 1, kPartRange);
    const int64_t number = metadata.IntOr("split.no", 0, kPartRange);
    if (count == std::ssize(paths) && number + 1 == std::ssize(parts)) continue;
    metadata.Refuse(
        "split.count and split.no",
        fmt::format("part {} of {}, according to the file's name", parts.size(), paths.size()),
        fmt::format("part {} of {}", number + 1, count));
  }
  GgufFiles all{.files = {}, .metadata = std::move(parts[0].metadata), .tensors = {}};
  for (Part& part : parts) {
    std::ranges::move(part.tensors, std::back_inserter(all.tensors));
    all.files.push_back(std::move(part.file));
  }

  std::set<std::string_view> names;
  for (const TensorInfo& tensor : all.tensors) {
    if (names.insert(tensor.name).second) continue;
    Throw(ErrorKind::kFormat, "{}: tensor {}: expected in one part, found in two", tensor.file,
          Quote(tensor.name));
  }
  const int64_t expected =
      all.metadata.IntOr("split.tensors.count", std::ssize(all.tensors), kCountRange);
  if (expected != std::ssize(all.tensors)) {
    all.metadata.Refuse("split.tensors.count", fmt::format("{}", std::ssize(all.tensors)),
                        fmt::format("{}", expected));
  }
  return all;
}

void RequireGguf(const fs::path& file) {
  const MappedFile mapped(file);
  CheckGgufMagic(mapped.Span(), QuoteUnlessPlain(mapped.path()));
}

bool IsGguf(const fs::path& file) {
  if (!fs::is_regular_file(file)) return false;
  char magic[4] = {};
  std::ifstream(file, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

}  // namespace godwit
