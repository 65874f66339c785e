// Small GGUF files of every kind, their mutants, and a summary of what the reader found in them.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "files/gguf.h"

namespace hearth {

// Valid files of 200 to 2,000 bytes: all value types, several tensor formats, alignments, versions, split keys.
std::vector<std::string> gguf_seeds();

// One to four random edits: bits, bytes, telling integers, cut, inserted, repeated or foreign pieces.
std::string mutate(std::string file, const std::vector<std::string>& seeds, std::mt19937_64& rng);

// CRC-32 of the canonical summary, as tools/reference/gguf_reader.py computes it.
uint32_t summary_crc(const GgufHeader& header);

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

}  // namespace hearth
