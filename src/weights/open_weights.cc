#include "weights/open_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "weights/safetensors_source.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::array<std::string_view, 8> kWeightExtensions = {
    ".safetensors", ".bin", ".gguf", ".pt", ".pth", ".onnx", ".h5", ".msgpack"};

bool IsWeightFile(const fs::path& name) {
  return std::ranges::find(kWeightExtensions, name.extension().string()) != kWeightExtensions.end();
}

// Files that look like weights under another name or in another format.
std::vector<std::string> OtherWeights(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (IsWeightFile(entry.path())) names.push_back(Quote(entry.path().filename().string()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void ThrowNoWeights(const fs::path& folder) {
  std::vector<std::string> others = OtherWeights(folder);
  const std::string expected = fmt::format("expected {} or {}", kSingle, kIndex);
  if (others.empty()) {
    Throw(ErrorKind::kIo, "{}: no weights: {}, found neither", QuoteUnlessPlain(folder.native()),
          expected);
  }
  constexpr size_t kShown = 3;
  const size_t hidden = others.size() > kShown ? others.size() - kShown : 0;
  others.resize(others.size() - hidden);
  Throw(ErrorKind::kUnsupported,
        "{}: no weights in a supported format: {}, found {}{}; save_pretrained of transformers "
        "converts them",
        QuoteUnlessPlain(folder.native()), expected, fmt::join(others, ", "),
        hidden ? fmt::format(" and {} more", hidden) : "");
}

}  // namespace

bool HoldsWeights(const fs::path& name) {
  return IsWeightFile(name) || name.native().ends_with(".index.json");
}

std::unique_ptr<WeightSource> OpenWeights(const fs::path& folder) try {
  const fs::file_status status = fs::status(folder);
  if (!fs::exists(status)) {
    Throw(ErrorKind::kIo, "{}: expected a model folder, found nothing there",
          QuoteUnlessPlain(folder.native()));
  }
  if (!fs::is_directory(status)) {
    Throw(ErrorKind::kInput,
          "{}: expected a model folder (config.json, a tokenizer, {}), found a file",
          QuoteUnlessPlain(folder.native()), kSingle);
  }
  if (IsListed(folder / kSingle)) return OpenSafetensors(folder / kSingle);
  if (IsListed(folder / kIndex)) return OpenShardedSafetensors(folder / kIndex);
  ThrowNoWeights(folder);
} catch (const fs::filesystem_error& error) {
  Throw(ErrorKind::kIo, "{}: cannot read: {}", QuoteUnlessPlain(folder.native()),
        error.code().message());
}

}  // namespace godwit
