// Instruction sets that the kernels are compiled for, and which of them this machine has.
#pragma once

#include <string>
#include <string_view>

#include "backends/cpu/kernels.h"
#include "base/result.h"

namespace hearth::cpu {

// The kernels of an ISA, by a name of cpu_isa_names(); "portable" needs no more than every machine of the architecture
// has. "": the environment variable HEARTH_ISA, or else the best that this machine has; portable never on x86-64. Fails
// with kUnsupported when the machine lacks it, kUsage on an unknown name; both say what it runs.
Result<const KernelTable*> select_isa(std::string_view name);

// Of what kernels are compiled for, all that this machine has: "AVX2, FMA, F16C".
std::string features_text();

}  // namespace hearth::cpu
