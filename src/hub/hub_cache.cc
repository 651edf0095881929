#include "hub/hub_cache.h"

#include <algorithm>
#include <fstream>

#include "hub/environment.h"

namespace godwit::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "models--";

}  // namespace

fs::path HomeFolder() {
  if (const auto home = Variable("HF_HOME"); !home.empty()) return home;
  const auto xdg = Variable("XDG_CACHE_HOME");
  const fs::path caches = xdg.empty() ? fs::path(Variable("HOME")) / ".cache" : fs::path(xdg);
  return caches / "huggingface";
}

fs::path CacheFolder() {
  if (const auto hub = Variable("HF_HUB_CACHE"); !hub.empty()) return hub;
  return HomeFolder() / "hub";
}

std::string RepositoryFolder(const std::string& repository) {
  const size_t slash = repository.find('/');
  return std::string(kBegin) + repository.substr(0, slash) + "--" + repository.substr(slash + 1);
}

std::optional<std::string> RepositoryOf(std::string_view folder) {
  if (!folder.starts_with(kBegin)) return std::nullopt;
  std::string name(folder.substr(kBegin.size()));
  if (const size_t dashes = name.find("--"); dashes != name.npos) name.replace(dashes, 2, "/");
  return name;
}

std::optional<fs::path> MainSnapshot(const fs::path& folder) {
  std::ifstream file(folder / "refs" / "main");
  std::string commit;
  if (!(file >> commit) || commit.find('/') != std::string::npos) return std::nullopt;
  const fs::path snapshot = folder / "snapshots" / commit;
  std::error_code error;
  return fs::is_directory(snapshot, error) ? std::optional(snapshot) : std::nullopt;
}

bool IsSafeFileName(std::string_view name) {
  constexpr size_t kMaxBytes = 1024, kMaxPartBytes = 255;
  if (name.empty() || name.size() > kMaxBytes) return false;
  if (std::any_of(name.begin(), name.end(),
                  [](unsigned char c) { return c < ' ' || c == 0x7f || c == '\\'; })) {
    return false;
  }
  while (true) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxPartBytes) return false;
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

}  // namespace godwit::hub
