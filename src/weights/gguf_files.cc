#include "weights/gguf_files.h"

#include <algorithm>
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

constexpr IntRange kPartRange{0, 99999};  // what five digits can name
constexpr IntRange kCountRange{0, int64_t{1} << 40};

int64_t PartsOf(const GgufMetadata& metadata) {
  return metadata.IntOr("split.count", 1, kPartRange);
}

fs::path PartName(const fs::path& file, int64_t part, int64_t parts) {
  const auto ending = [&](int64_t number) {
    return fmt::format("-{:05}-of-{:05}.gguf", number + 1, parts);
  };
  const std::string name = file.filename();
  const std::string own = ending(0);
  const std::string_view rest =
      std::string_view(name).substr(0, name.size() - std::min(name.size(), own.size()));
  // The digits of this part's own number may be any; all else has to fit.
  if (rest.empty() || name.substr(rest.size() + 6) != own.substr(6)) {
    Throw(ErrorKind::kFormat,
          "{}: expected a name that ends with {}, as a part of a model in {} files has, to find "
          "the others",
          QuoteUnlessPlain(file.native()), own, parts);
  }
  return file.parent_path() / (std::string(rest) + ending(part));
}

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

GgufFiles OpenGgufFiles(const fs::path& file) {
  Part first = ReadPart(file);
  const int64_t parts = PartsOf(first.metadata);
  if (parts > 1) first = ReadPart(PartName(file, 0, parts));
  GgufFiles all{
      .files = {}, .metadata = std::move(first.metadata), .tensors = std::move(first.tensors)};
  all.files.push_back(std::move(first.file));
  const auto check_part = [&](const GgufMetadata& metadata, int64_t part) {
    if (metadata.IntOr("split.no", 0, kPartRange) == part && PartsOf(metadata) == parts) return;
    metadata.Refuse("split.no", fmt::format("part {} of {}, as the file's name says", part, parts),
                    "another");
  };
  check_part(all.metadata, 0);
  for (int64_t i = 1; i < parts; ++i) {
    Part part = ReadPart(PartName(file, i, parts));
    check_part(part.metadata, i);
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

bool IsGguf(const fs::path& file) {
  if (!fs::is_regular_file(file)) return false;
  char magic[4] = {};
  std::ifstream(file, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

}  // namespace godwit
