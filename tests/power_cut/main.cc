// power_cut begin LIVE DISK; power_cut image LIVE DISK IMAGE SEED: tests/power_cut/power_cut.h, for
// tests of whole programs.
#include <cstdlib>
#include <span>
#include <string_view>

#include "tests/power_cut/power_cut.h"

int main(int count, char** values) {
  const std::span<char*> arguments(values, static_cast<size_t>(count));
  if (count == 4 && std::string_view(arguments[1]) == "begin") {
    godwit::power_cut::BeginDisk(arguments[2], arguments[3]);
    return 0;
  }
  if (count == 6 && std::string_view(arguments[1]) == "image") {
    godwit::power_cut::MakeImage(arguments[2], arguments[3], arguments[4],
                                 std::strtoull(arguments[5], nullptr, 10));
    return 0;
  }
  return 2;
}
