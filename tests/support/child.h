// Runs a piece of a test in a child process with little address space.
#pragma once

#include <cstddef>
#include <functional>

namespace hearth::testing {

// False under sanitizers, which map more than any limit, and in emulators, which ignore it.
bool can_limit_address_space();

// What `body` returned (0 to 99) in a child that could map `more_bytes` beside what was mapped already; 100 when there
// was no child, 100 + the signal when it died.
int run_with_address_space(size_t more_bytes, const std::function<int()>& body);

}  // namespace hearth::testing
