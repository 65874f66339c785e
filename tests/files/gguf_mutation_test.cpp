// Mutated files: the reader never crashes, never uses much memory, never accepts what an independent reader refuses,
// and where both accept they find the same.
#include <gtest/gtest.h>

#include <cstring>

#include "../quant/reference_process.h"
#include "gguf_cases.h"
#include "heap_meter.h"

namespace hearth {
namespace {

constexpr size_t kHeapFactor = 16;
constexpr size_t kHeapBase = 1 << 20;

struct Outcome {
  bool accepted = false;
  uint32_t crc = 0;
};

// Parses, and checks what must hold whatever the input.
Outcome parse_checked(const std::string& file) {
  size_t before = heap_bytes();
  reset_heap_peak();
  auto header = parse_gguf(as_bytes(file));
  EXPECT_LE(heap_peak_bytes() - before, kHeapFactor * file.size() + kHeapBase);
  if (!header) {
    EXPECT_FALSE(header.error().message.empty());
    EXPECT_LT(header.error().message.size(), 1000u);
    for (char c : header.error().message) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << header.error().message;
    return {};
  }
  for (const GgufTensor& tensor : header->tensors) {
    EXPECT_LE(tensor.offset, std::max(file.size(), header->data_offset));
    EXPECT_TRUE(tensor.size_bytes == 0 || tensor.size_bytes <= file.size() - tensor.offset);
  }
  return {true, summary_crc(*header)};
}

TEST(GgufMutation, SurvivesTwentyThousandMutants) {
  std::vector<std::string> seeds = gguf_seeds();
  std::mt19937_64 rng(1);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    accepted += parse_checked(mutate(seeds[static_cast<size_t>(i) % seeds.size()], seeds, rng)).accepted;
    ASSERT_FALSE(HasFailure()) << "mutant " << i;
  }
  EXPECT_GT(accepted, 1'000);  // else the mutants never get past the first check
  EXPECT_LT(accepted, 15'000);
}

void compare_with_python(int mutants, uint64_t seed) {
  auto python = ReferenceProcess::start("gguf_reader.py", "--serve");
  if (!python) GTEST_SKIP() << "python3 is not installed";
  std::vector<std::string> seeds = gguf_seeds();
  std::mt19937_64 rng(seed);
  constexpr int kBatch = 200;  // few enough that the answers fit into the pipe while cases are being written
  int accepted = 0;
  for (int first = 0; first < mutants; first += kBatch) {
    std::string frames;
    std::vector<std::string> files;
    for (int i = first; i < std::min(first + kBatch, mutants); ++i) {
      const std::string& base = seeds[static_cast<size_t>(i) % seeds.size()];
      files.push_back(i < static_cast<int>(seeds.size()) ? base : mutate(base, seeds, rng));
      auto size = static_cast<uint32_t>(files.back().size());
      frames.append(reinterpret_cast<const char*>(&size), 4);
      frames += files.back();
    }
    ASSERT_TRUE(python->write(frames.data(), frames.size()));
    for (size_t i = 0; i < files.size(); ++i) {
      Outcome ours = parse_checked(files[i]);
      char answer[5];
      ASSERT_TRUE(python->read(answer, 5)) << "the reference crashed on mutant " << first + static_cast<int>(i);
      uint32_t crc;
      std::memcpy(&crc, answer + 1, 4);
      ASSERT_EQ(ours.accepted, answer[0] == 1) << "mutant " << first + static_cast<int>(i) << ": "
                                               << (ours.accepted ? "" : parse_gguf(as_bytes(files[i])).error().message);
      ASSERT_EQ(ours.crc, crc) << "mutant " << first + static_cast<int>(i);
      ASSERT_FALSE(testing::Test::HasFailure()) << "mutant " << first + static_cast<int>(i);
      accepted += ours.accepted;
    }
  }
  testing::Test::RecordProperty("accepted", accepted);
  std::printf("%d mutants, %d accepted by both readers\n", mutants, accepted);
}

TEST(GgufMutation, AgreesWithThePythonReader) { compare_with_python(5'000, 2); }
TEST(GgufMutation, AgreesWithThePythonReaderOnAMillionMutants_slow) { compare_with_python(1'000'000, 3); }

}  // namespace
}  // namespace hearth
