// Reads GGUF model files (versions 2 and 3, little-endian, single or split): header, metadata, tensor table.
// Every size, count and offset is checked against the bytes that are there before it is used or anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "files/catalog.h"
#include "files/metadata.h"
#include "quant/format.h"

namespace hearth {

// Caps that no real model comes near. Sizes are also bounded by the bytes left in the file.
struct GgufLimits {
  static constexpr uint64_t kKeys = 65'536;
  static constexpr uint64_t kTensors = 1 << 20;
  static constexpr uint64_t kKeyBytes = 65'535;
  static constexpr uint64_t kNameBytes = 63;
  static constexpr uint64_t kStringBytes = 64 << 20;
  static constexpr uint64_t kArrayElements = 64 << 20;
  static constexpr uint32_t kDimensions = 4;
  static constexpr uint32_t kMinAlignment = 8;
  static constexpr uint32_t kMaxAlignment = 1 << 20;
  static constexpr int64_t kSplits = 1000;
};

struct GgufTensor {
  std::string name;
  FormatId format = FormatId::kF32;
  std::vector<int64_t> shape;  // outermost first; empty: a scalar
  size_t offset = 0;           // from the beginning of the file
  size_t size_bytes = 0;       // 0 when a dimension is 0
};

// One file's contents. `metadata` has every key of the file, general.alignment and split.* included.
struct GgufHeader {
  uint32_t version = 0;
  uint32_t alignment = 32;
  size_t data_offset = 0;  // where the data section begins; beyond the end of the file if there is no tensor
  Metadata metadata;
  std::vector<GgufTensor> tensors;  // in the order of the file; [offset, offset + size_bytes) is inside it, disjoint
};

// Parses the bytes of a whole file. Fails with kInvalidInput (damaged, truncated, or not GGUF: then the message says
// what it is instead) or kUnsupported (another version, byte order or tensor type). Peak heap use stays below
// 16 x file + 1 MiB.
Result<GgufHeader> parse_gguf(std::span<const std::byte> file);

// Opens a model. For a split model any of its files will do: the others are found by name in the same folder, and the
// metadata is that of the first. Errors are prefixed with the path.
Result<Catalog> open_gguf(const std::string& path);

}  // namespace hearth
