#include "console/terminal/result_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/quote.h"
#include "console/terminal/appended_file.h"
#include "console/terminal/output_file.h"

namespace godwit::console {
namespace {

namespace fs = std::filesystem;

// A file's identity in the system.
struct Place {
  std::string_view flag;
  std::string name;  // as given
  fs::path path;     // without links
  struct stat status {};
  bool exists = false;

  bool is_regular() const { return exists && S_ISREG(status.st_mode); }
  bool is_folder() const { return exists && S_ISDIR(status.st_mode); }
};

Place PlaceOf(std::string_view flag, const std::string& name) {
  Place place{.flag = flag, .name = name};
  place.exists = stat(name.c_str(), &place.status) == 0;
  std::error_code ignored;
  place.path = fs::weakly_canonical(FollowLinks(name), ignored);
  return place;
}

Place StreamPlace(std::string_view flag, int stream) {
  Place place{.flag = flag};
  place.exists = fstat(stream, &place.status) == 0;
  return place;
}

bool IsSame(const Place& a, const Place& b) {
  if (a.exists != b.exists) return false;
  if (!a.exists) return a.path == b.path && !a.path.empty();
  return a.is_regular() && a.status.st_dev == b.status.st_dev && a.status.st_ino == b.status.st_ino;
}

bool IsWithin(const Place& place, const Place& folder) {
  const auto [end, rest] =
      std::mismatch(folder.path.begin(), folder.path.end(), place.path.begin(), place.path.end());
  return end == folder.path.end();
}

// Whether a place is a file of the folder under another name. Shards in Hugging Face's cache are
// links to where they are kept.
bool IsFileOf(const Place& place, const Place& folder) {
  if (!place.is_regular()) return false;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder.path, error)) {
    if (IsSame(place, PlaceOf("", entry.path().native()))) return true;
  }
  return false;
}

void CheckInput(const Place& result, const Place& input) {
  if (input.is_folder() && (IsWithin(result, input) || IsFileOf(result, input))) {
    Throw(ErrorKind::kInput, "{}: {} belongs to the model of {}, {}: choose a place outside of it",
          result.flag, Quote(result.name), input.flag, Quote(input.name));
  }
  if (IsSame(result, input)) {
    Throw(ErrorKind::kInput, "{}: {} is the file that {} reads: choose another one", result.flag,
          Quote(result.name), input.flag);
  }
}

}  // namespace

void CheckResultFiles(const std::vector<NamedFile>& results, const std::vector<NamedFile>& inputs) {
  std::vector<Place> read;
  for (const NamedFile& input : inputs) {
    if (!input.path || input.path->empty()) continue;
    read.push_back(*input.path == "-" ? StreamPlace(input.flag, STDIN_FILENO)
                                      : PlaceOf(input.flag, *input.path));
  }
  std::vector<Place> written = {StreamPlace("standard output", STDOUT_FILENO)};
  for (const NamedFile& result : results) {
    if (!result.path || result.path->empty()) continue;
    if (*result.path == "-" && !result.appended) {
      Throw(ErrorKind::kInput, "{}: expected a file, because the result goes to standard output",
            result.flag);
    }
    if (IsOwnDescriptor(*result.path) && !result.appended) continue;
    Place place = PlaceOf(result.flag, *result.path);
    for (const Place& input : read) CheckInput(place, input);
    for (const Place& other : written) {
      if (!IsSame(place, other)) continue;
      Throw(ErrorKind::kInput, "{}: {} is the file that {} writes: choose another one", place.flag,
            Quote(place.name), other.flag);
    }
    result.appended ? AppendedFile::CheckWritable(*result.path)
                    : OutputFile::CheckWritable(*result.path);
    written.push_back(std::move(place));
  }
}

}  // namespace godwit::console
