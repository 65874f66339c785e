// libFuzzer: no bytes make the GGUF reader crash, read out of bounds, or place a tensor outside of the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "files/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  auto header = hearth::parse_gguf(std::as_bytes(std::span(data, size_bytes)));
  if (!header) return 0;
  for (const hearth::GgufTensor& tensor : header->tensors) {
    bool inside =
        tensor.size_bytes == 0 || (tensor.offset <= size_bytes && tensor.size_bytes <= size_bytes - tensor.offset);
    if (!inside) std::abort();
  }
  return 0;
}
