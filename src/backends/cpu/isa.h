// Instruction sets that the kernels are compiled for, and which of them this machine has.
#pragma once

#include <string>
#include <string_view>

#include "backends/cpu/kernels.h"
#include "base/result.h"

namespace hearth::cpu {

// The kernels of an ISA: "avx512", "avx2" or "portable" (plain C++, for machines that have no variant of their own).
// "": the environment variable HEARTH_ISA, or else the best that this machine has; portable only where the
// architecture has nothing better. Fails with kUnsupported when the machine lacks it, kUsage on an unknown name.
Result<const KernelTable*> select_isa(std::string_view name);

}  // namespace hearth::cpu
