// A hash of bytes: to find out that something changed or was damaged, not against someone who wants it to collide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace hearth {

// FNV-1a over words of eight bytes, the last one of each add() filled with zeros.
class Hasher {
 public:
  void add(std::span<const std::byte> bytes) {
    for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, bytes.size() - i < sizeof word ? bytes.size() - i : sizeof word);
      value_ = (value_ ^ word) * 0x100000001b3u;
      value_ ^= value_ >> 32;
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace hearth
