#include "cli/doctor/examine.h"

#include "cli/doctor/checks.h"

namespace godwit::cli {
namespace {

constexpr Check kChecks[] = {
    {"processor", ExamineProcessor},
    {"cores", ExamineCores},
    {"clock", ExamineClock},
    {"load", ExamineLoad},
    {"memory", ExamineMemory},
    {"huge pages", ExamineHugePages},
    {"swap", ExamineSwap},
    {"NUMA", ExamineNuma},
    {"cache disk", ExamineDisk},
    {"open files", ExamineOpenFiles},
    {"MPI", ExamineMpi},
    {"downloads", ExamineDownloads},
};

}  // namespace

std::span<const Check> AllChecks() { return kChecks; }

std::string_view NameOf(Finding::Status status) {
  switch (status) {
    case Finding::Status::kGood:
      return "good";
    case Finding::Status::kAdvice:
      return "advice";
    case Finding::Status::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace godwit::cli
