#include "kernels/dispatch.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "kernels/arm_features.h"
#include "kernels/tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace godwit::kernels {
namespace {

#if defined(__x86_64__)

struct CpuidBits {
  uint32_t eax, ebx, ecx, edx;
};

CpuidBits Cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidBits bits{};  // stays zero where the processor has no such leaf
  __get_cpuid_count(leaf, subleaf, &bits.eax, &bits.ebx, &bits.ecx, &bits.edx);
  return bits;
}

// The register files that the operating system saves when it switches threads. A processor may have
// AVX-512 under a system that would lose its registers.
uint64_t SavedState() {
  constexpr uint32_t kOsXsave = 1u << 27;
  if ((Cpuid(1, 0).ecx & kOsXsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool Saved(uint64_t files) { return (SavedState() & files) == files; }

constexpr CpuFeature kAvx2[] = {
    {"AVX2", [] { return (Cpuid(7, 0).ebx & (1u << 5)) != 0; }},
    {"FMA", [] { return (Cpuid(1, 0).ecx & (1u << 12)) != 0; }},
    {"F16C", [] { return (Cpuid(1, 0).ecx & (1u << 29)) != 0; }},
    {"256-bit registers saved by the operating system", [] { return Saved(0x06); }},
};
constexpr CpuFeature kAvx512[] = {
    {"AVX512F", [] { return (Cpuid(7, 0).ebx & (1u << 16)) != 0; }},
    {"AVX512DQ", [] { return (Cpuid(7, 0).ebx & (1u << 17)) != 0; }},
    {"AVX512BW", [] { return (Cpuid(7, 0).ebx & (1u << 30)) != 0; }},
    {"AVX512VL", [] { return (Cpuid(7, 0).ebx & (1u << 31)) != 0; }},
    {"512-bit registers saved by the operating system", [] { return Saved(0xe6); }},
};
constexpr CpuFeature kVnni[] = {
    {"AVX512_VNNI", [] { return (Cpuid(7, 0).ecx & (1u << 11)) != 0; }},
};
// A feature of every processor with bf16 or tiles but Cooper Lake, which is not given bf16 for that
// reason.
constexpr CpuFeature kVbmi[] = {
    {"AVX512_VBMI", [] { return (Cpuid(7, 0).ecx & (1u << 1)) != 0; }},
};
constexpr CpuFeature kBf16[] = {
    {"AVX512_BF16", [] { return (Cpuid(7, 1).eax & (1u << 5)) != 0; }},
};
constexpr CpuFeature kAmxBf16[] = {
    {"AMX_BF16", [] { return (Cpuid(7, 0).edx & (1u << 22)) != 0; }},
};
// VDPBF16PS of this vendor does half of what f32's multiply-adds do. On Zen 4 it does twice as much
// (both measured). A virtual machine may hide AMX, so that AMX is no sign of it.
constexpr CpuFeature kIntel[] = {
    {"the vendor Intel", [] { return Cpuid(0, 0).ebx == signature_INTEL_ebx; }},
};
bool HasAmxInt8() { return (Cpuid(7, 0).edx & (1u << 25)) != 0; }

// Asks Linux for tile registers: it saves their 8 KiB a thread only for processes that asked.
bool TilesPermitted() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return HasAmxInt8() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

constexpr CpuFeature kAmx[] = {
    {"AMX_TILE", [] { return (Cpuid(7, 0).edx & (1u << 24)) != 0; }},
    {"AMX_INT8", HasAmxInt8},
    {"tile registers saved by the operating system",
     [] {
       static const bool permitted = TilesPermitted();
       return permitted && Saved(0x600e6);
     }},
};
#endif

#if defined(__aarch64__)
constexpr CpuFeature kNeon[] = {{"NEON", HasNeon}};
constexpr CpuFeature kDotProducts[] = {{"ASIMDDP", HasDotProducts}};
constexpr CpuFeature kArm86[] = {{"I8MM", HasInt8Matrices}, {"BF16", HasBFloat16}};
#endif

// Instruction sets, best first. The AVX-512 files are compiled with AVX2, FMA and F16C as well.
// Every processor with bf16 products has int8 products, and the bf16 table uses both. avx512-amx
// does without VDPBF16PS.
constexpr Isa kIsas[] = {
#if defined(__x86_64__)
    {"avx512-amx",
     "AVX-512 with int8 and bf16 products of tiles (Sapphire Rapids and later)",
     &kAvx512AmxTable,
     &kAvx512AmxPeak,
     {kAvx2, kAvx512, kVnni, kVbmi, kBf16, kAmx, kAmxBf16}},
    {"avx512-bf16",
     "AVX-512 with bf16 and int8 products (Zen 4 and later)",
     &kAvx512Bf16Table,
     &kAvx512Bf16Peak,
     {kAvx2, kAvx512, kVnni, kVbmi, kBf16},
     kIntel},
    {"avx512-vnni",
     "AVX-512 with int8 products (Cascade Lake, Ice Lake, Xeons whose AMX is hidden)",
     &kAvx512VnniTable,
     &kAvx512VnniPeak,
     {kAvx2, kAvx512, kVnni}},
    {"avx512",
     "AVX-512 F, BW, DQ, VL (Skylake-SP and later)",
     &kAvx512Table,
     &kAvx512Peak,
     {kAvx2, kAvx512}},
    {"avx2", "AVX2, FMA, F16C (Haswell, Zen and later)", &kAvx2Table, &kAvx2Peak, {kAvx2}},
#endif
#if defined(__aarch64__)
    {"neon-i8mm",
     "NEON with int8 and bf16 products of Armv8.6 (Neoverse V1, N2, Apple M2 and later)",
     &kNeonI8mmTable,
     &kNeonI8mmPeak,
     {kNeon, kDotProducts, kArm86}},
    {"neon-dot",
     "NEON with int8 products (Cortex-A76, Neoverse N1, Apple M1 and later)",
     &kNeonDotTable,
     &kNeonDotPeak,
     {kNeon, kDotProducts}},
    {"neon", "NEON, for any 64-bit Arm processor", &kNeonTable, &kNeonPeak, {kNeon}},
#endif
    {"scalar", "plain loops, for any processor", &kScalarTable, &kScalarPeak, {}},
};

// source: where the name came from, for the message.
const Isa& ByName(std::string_view name, std::string_view source) {
  std::string known = "auto";
  for (const Isa& isa : kIsas) {
    if (isa.name == name) {
      if (isa.supported()) return isa;
      Throw(ErrorKind::kUnsupported, "{} '{}': this machine lacks {}; its best is '{}'", source,
            name, isa.Missing(), BestIsa().name);
    }
    known += ", ";
    known += isa.name;
  }
  Throw(ErrorKind::kInput, "unknown {} '{}': expected one of {}", source, name, known);
}

bool IsAuto(std::string_view name) { return name.empty() || name == "auto"; }

}  // namespace

std::string Isa::Missing() const {
  std::string missing;
  for (const std::span<const CpuFeature> features : needs) {
    for (const CpuFeature& feature : features) {
      if (feature.present()) continue;
      if (!missing.empty()) missing += ", ";
      missing += feature.name;
    }
  }
  return missing;
}

bool Isa::preferred() const {
  return supported() && std::ranges::none_of(
                            slow_with, [](const CpuFeature& feature) { return feature.present(); });
}

std::span<const Isa> AllIsas() { return kIsas; }

const Isa& BestIsa() {
  return *std::find_if(std::begin(kIsas), std::end(kIsas),
                       [](const Isa& isa) { return isa.preferred(); });
}

const Isa& SelectIsa(std::string_view name) {
  if (!IsAuto(name)) return ByName(name, "instruction set");
  const char* variable = std::getenv("GODWIT_ISA");
  const std::string_view wanted = variable != nullptr ? variable : "";
  return IsAuto(wanted) ? BestIsa() : ByName(wanted, "instruction set in GODWIT_ISA");
}

}  // namespace godwit::kernels
