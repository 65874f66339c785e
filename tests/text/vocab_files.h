// The real vocabularies and the small made-up ones that the tokenizer tests share.
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "files/gguf.h"
#include "text/tokenizer.h"

namespace hearth {

// Seconds of CPU that this thread has used: unlike the clock on the wall, not lengthened by other work on the machine.
inline double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline std::string vocab_path(const std::string& file) { return HEARTH_SHARED_DATA "/vocab/" + file; }

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Loads each file once per test program; nullptr when it is not there.
inline const Tokenizer* real_tokenizer(const std::string& path) {
  static std::map<std::string, std::unique_ptr<const Tokenizer>> cache;
  auto [it, inserted] = cache.try_emplace(path);
  if (!inserted || !std::filesystem::exists(path)) return it->second.get();
  auto file = open_gguf(path);
  EXPECT_TRUE(file) << file.error().message;
  if (!file) return nullptr;
  auto vocab = read_vocab(file->metadata());
  EXPECT_TRUE(vocab) << vocab.error().message;
  if (!vocab) return nullptr;
  auto tokenizer = Tokenizer::create(std::move(*vocab));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  if (tokenizer) it->second = std::move(*tokenizer);
  return it->second.get();
}

// Skips the test when the file is not there.
#define HEARTH_REAL_TOKENIZER(variable, name)                                          \
  const Tokenizer* variable = real_tokenizer(vocab_path(std::string(name) + ".gguf")); \
  if (!variable) GTEST_SKIP() << "needs " << vocab_path(std::string(name) + ".gguf")

// Random text that likes what tokenizers trip over: spaces, line ends, digits, marks, all planes, bits of markup.
inline std::string random_text(std::mt19937& rng, size_t characters) {
  static const std::vector<std::string> kBits = {
      " ",       "  ", "\n", "\r\n",   "\t",      "'s",           "'LL",    "123", "<|im_end|>", "</s>",
      "<think>", "<",  "|>", "\u2581", "e\u0301", "\uAC00\u11A8", "\u00BD", "!!",  "=-",         "\u3000"};
  std::string out;
  for (size_t i = 0; i < characters; ++i) {
    switch (rng() % 6) {
      case 0:
        out += kBits[rng() % kBits.size()];
        break;
      case 1:
        append_utf8(out, 0x20 + rng() % 0x5F);
        break;
      case 2:
        append_utf8(out, 'a' + rng() % 26);
        break;
      case 3:
        append_utf8(out, rng() % 0x800);
        break;
      case 4:
        append_utf8(out, rng() % 0xD800);
        break;
      default:
        append_utf8(out, 0xE000 + rng() % (0x110000 - 0xE000));
        break;
    }
  }
  return out;
}

inline std::string random_bytes(std::mt19937& rng, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(static_cast<char>(rng() % 3 ? rng() % 256 : "\xE2\x96\x81\xF0 a"[rng() % 6]));
  return out;
}

}  // namespace hearth
