// Counts the heap use of this test program: how much is allocated now, and the most since reset_peak().
#pragma once

#include <cstddef>

namespace hearth {

size_t heap_bytes();
size_t heap_peak_bytes();
void reset_heap_peak();

}  // namespace hearth
