// The checks of `godwit doctor`, by subject. Each reads kernel files below machine.root. A file
// that is missing makes the finding unknown, never an error.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "cli/doctor/examine.h"

namespace godwit::cli {

// processor_checks.cc
Finding ExamineProcessor(const MachineFacts& machine);
Finding ExamineCores(const MachineFacts& machine);
Finding ExamineClock(const MachineFacts& machine);
Finding ExamineLoad(const MachineFacts& machine);
Finding ExamineNuma(const MachineFacts& machine);

// memory_checks.cc
Finding ExamineMemory(const MachineFacts& machine);
Finding ExamineHugePages(const MachineFacts& machine);
Finding ExamineSwap(const MachineFacts& machine);

// system_checks.cc
Finding ExamineDisk(const MachineFacts& machine);
Finding ExamineOpenFiles(const MachineFacts& machine);
Finding ExamineMpi(const MachineFacts& machine);
Finding ExamineDownloads(const MachineFacts& machine);

// The first line of a kernel's file below the root, without blanks around it. Empty: it is not
// there.
std::string KernelLine(const MachineFacts& machine, std::string_view path);

// The choice in a line such as "always [madvise] never". Empty: there are no brackets.
std::string_view Chosen(std::string_view line);

template <typename... Args>
Finding Good(fmt::format_string<Args...> text, Args&&... args) {
  return {.text = fmt::format(text, std::forward<Args>(args)...)};
}
template <typename... Args>
Finding Unknown(fmt::format_string<Args...> text, Args&&... args) {
  return {.status = Finding::Status::kUnknown,
          .text = fmt::format(text, std::forward<Args>(args)...)};
}
template <typename... Args>
Finding Advice(std::string command, fmt::format_string<Args...> text, Args&&... args) {
  return {.status = Finding::Status::kAdvice,
          .text = fmt::format(text, std::forward<Args>(args)...),
          .command = std::move(command)};
}

}  // namespace godwit::cli
