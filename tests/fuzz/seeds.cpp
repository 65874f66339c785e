// Writes the seed files of the GGUF fuzzer into a folder: fuzz_gguf_seeds FOLDER.
#include <cstdio>
#include <fstream>
#include <string>

#include "../files/gguf_cases.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_gguf_seeds FOLDER\n");
    return 2;
  }
  int number = 0;
  for (const std::string& seed : hearth::gguf_seeds()) {
    std::ofstream(std::string(argv[1]) + "/seed" + std::to_string(number++), std::ios::binary) << seed;
  }
  return 0;
}
