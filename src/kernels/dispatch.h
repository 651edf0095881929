// The instruction sets that this build has kernels for, best first, and the choice among them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "kernels/kernel_table.h"
#include "kernels/peak.h"

namespace godwit::kernels {

// A feature that a processor or its operating system may lack.
struct CpuFeature {
  std::string_view name;
  bool (*present)();
};

struct Isa {
  std::string_view name;         // as in --isa and GODWIT_ISA
  std::string_view description;  // one line for people
  const KernelTable* table;
  const PeakTable* peak;  // what a core could do at best
  std::array<std::span<const CpuFeature>, 7> needs;
  // A processor that has one of these is faster with a set that comes later, and this one is chosen
  // by name alone.
  std::span<const CpuFeature> slow_with = {};

  bool supported() const { return Missing().empty(); }
  bool preferred() const;       // supported, and not slow here
  std::string Missing() const;  // the names of what this machine lacks
};

// Every instruction set of this build, best first. The last is "scalar", always supported.
std::span<const Isa> AllIsas();

// The best that this processor supports and is not slow with, whatever the environment says.
const Isa& BestIsa();

// The instruction set called `name`, or the best supported one for "" and "auto" (then the
// environment variable GODWIT_ISA decides where it is set). Throws Error(kInput) with the list of
// names when it is unknown, Error(kUnsupported) when this processor lacks it.
const Isa& SelectIsa(std::string_view name);

}  // namespace godwit::kernels
