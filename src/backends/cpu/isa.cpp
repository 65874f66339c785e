#include "backends/cpu/isa.h"

#include "backends/backend.h"

#include <cstdint>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace hearth::cpu {
namespace {

struct Isa {
  std::string_view name;
  const KernelTable& (*table)();
  bool (*usable)();
  std::string_view needs;
};

#if defined(__x86_64__)

// What the processor reports, and which registers the operating system saves (XCR0).
struct Features {
  bool avx2 = false, fma = false, f16c = false;
  bool avx512 = false;  // F, BW, DQ, VL
  bool vnni = false, avx_vnni = false;
  bool avx512_bf16 = false;
  bool amx_bf16 = false;  // with tiles, which the operating system saves and this process may use
  bool os_ymm = false, os_zmm = false;
};

// Linux gives the eight kilobytes of tile state only to processes that ask for them, once for all their threads.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kArchReqXcompPerm = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kTileData) == 0;
#else
  return false;
#endif
}

Features read_features() {
  Features f;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return f;
  f.fma = c >> 12 & 1;
  f.f16c = c >> 29 & 1;
  if (c >> 27 & 1) {  // OSXSAVE
    uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    f.os_ymm = (low & 0x06) == 0x06;
    f.os_zmm = (low & 0xe6) == 0xe6;
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    f.avx2 = b >> 5 & 1;
    f.avx512 = (b >> 16 & 1) && (b >> 17 & 1) && (b >> 30 & 1) && (b >> 31 & 1);
    f.vnni = c >> 11 & 1;
    bool tiles = (d >> 24 & 1) && (d >> 22 & 1);
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
      f.avx_vnni = a >> 4 & 1;
      f.avx512_bf16 = a >> 5 & 1;
    }
    f.amx_bf16 = tiles && may_use_tiles();
  }
  return f;
}

const Features& features() {
  static const Features f = read_features();
  return f;
}

bool has_avx2() { return features().avx2 && features().fma && features().f16c && features().os_ymm; }
bool has_avxvnni() { return has_avx2() && features().avx_vnni; }
bool has_avx512() { return has_avx2() && features().avx512 && features().vnni && features().os_zmm; }

bool has_amx() { return has_avx512() && features().avx512_bf16 && features().amx_bf16; }

std::string machine_features() {
  const Features& f = features();
  std::string text;
  auto add = [&](bool has, const char* name) {
    if (has) text.append(text.empty() ? "" : ", ").append(name);
  };
  add(f.avx2, "AVX2"), add(f.fma, "FMA"), add(f.f16c, "F16C"), add(f.avx512, "AVX-512 F/BW/DQ/VL"),
      add(f.vnni, "AVX-512 VNNI"), add(f.avx_vnni, "AVX VNNI"), add(f.avx512_bf16, "AVX-512 BF16"),
      add(f.amx_bf16, "AMX BF16");
  if (text.empty()) text = "none of AVX2, FMA, F16C";
  if (f.avx2 && !f.os_ymm) text += " (but the operating system does not save 256-bit registers)";
  if (f.avx512 && !f.os_zmm) text += " (but the operating system does not save 512-bit registers)";
  return text;
}

constexpr Isa kIsas[] = {
    {"amx", amx_kernels, has_amx, "AMX BF16, AVX-512 F/BW/DQ/VL, VNNI and BF16"},
    {"avx512", avx512_kernels, has_avx512, "AVX-512 F/BW/DQ/VL and VNNI"},
    {"avxvnni", avxvnni_kernels, has_avxvnni, "AVX2, FMA, F16C and AVX VNNI"},
    {"avx2", avx2_kernels, has_avx2, "AVX2, FMA and F16C"},
    {"portable", portable_kernels, [] { return true; }, "nothing"},
};

// Where the architecture has something better, `portable` must be asked for: it would be taken for slowness of Hearth.
constexpr bool kPortableByDefault = false;

#elif defined(__aarch64__)

bool has_dot_product() {
#if defined(__linux__)
  return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#else
  return false;
#endif
}

std::string machine_features() { return has_dot_product() ? "NEON, dot products" : "NEON alone"; }

constexpr Isa kIsas[] = {
    {"neon", neon_kernels, has_dot_product, "NEON and its dot products (ASIMDDP)"},
    {"portable", portable_kernels, [] { return true; }, "nothing"},
};
constexpr bool kPortableByDefault = true;

#else

std::string machine_features() { return "another architecture"; }

constexpr Isa kIsas[] = {{"portable", portable_kernels, [] { return true; }, "nothing"}};
constexpr bool kPortableByDefault = true;

#endif

}  // namespace

std::string features_text() { return machine_features(); }

Result<const KernelTable*> select_isa(std::string_view name) {
  if (name.empty()) {
    if (const char* forced = std::getenv("HEARTH_ISA"); forced && *forced != '\0') {
      Result<const KernelTable*> table = select_isa(forced);
      if (!table) return std::move(table).error().with_context("HEARTH_ISA");
      return table;
    }
  }
  if (name.empty()) {
    const Isa* best = nullptr;
    for (const Isa& isa : kIsas) {
      if (!best && isa.usable() && (isa.name != "portable" || kPortableByDefault)) best = &isa;
    }
    if (best) return &best->table();
    return fail(ErrorCode::kUnsupported,
                "the CPU backend needs at least AVX2, FMA and F16C; this machine has {}; HEARTH_ISA=portable runs "
                "anywhere, slowly",
                features_text());
  }
  std::string usable;
  for (const Isa& isa : kIsas) {
    if (!isa.usable()) continue;
    if (isa.name == name) return &isa.table();
    usable.append(usable.empty() ? "" : ", ").append(isa.name);
  }
  for (const Isa& isa : kIsas) {
    if (isa.name != name) continue;
    return fail(ErrorCode::kUnsupported, "CPU instruction set {} needs {}; this machine has {} and runs: {}", name,
                isa.needs, features_text(), usable);
  }
  return fail(ErrorCode::kUsage, "CPU instruction set \"{}\" is unknown; this machine runs: {}", name, usable);
}

}  // namespace hearth::cpu

namespace hearth {

std::vector<std::string_view> cpu_isa_names() {
  std::vector<std::string_view> names;
  for (const cpu::Isa& isa : cpu::kIsas) names.push_back(isa.name);
  return names;
}

}  // namespace hearth
