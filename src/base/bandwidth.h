// The speed at which this machine's memory can be read: the ceiling that decode speed is compared with.
#pragma once

#include <cstdint>

namespace hearth {

// Reads a buffer far larger than the caches with `threads` threads for about `seconds`, several passes; returns the
// best pass in bytes per second.
double measure_read_bandwidth(int64_t threads, double seconds = 0.3);

}  // namespace hearth
