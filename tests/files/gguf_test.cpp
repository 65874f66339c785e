#include "files/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "files/gguf_writer.h"
#include "gguf_cases.h"
#include "heap_meter.h"

namespace hearth {
namespace {

using Shape = std::vector<int64_t>;
namespace fs = std::filesystem;

// A folder that is removed with the object.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_(fs::temp_directory_path() / ("hearth_gguf_" + name)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }

 private:
  fs::path path_;
};

std::string error_of(std::string_view bytes) {
  auto header = parse_gguf(std::as_bytes(std::span(bytes)));
  return header ? "accepted" : header.error().message;
}

#define EXPECT_ERROR(bytes, words) EXPECT_NE(error_of(bytes).find(words), std::string::npos) << error_of(bytes)

// A file of one raw tensor record, for shapes and offsets that the builder would not write.
std::string one_tensor(const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset, size_t data_bytes,
                       const std::string& name = "t") {
  std::string out = "GGUF";
  auto put = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  put(uint32_t{3});
  put(uint64_t{1});
  put(uint64_t{0});
  put(uint64_t{name.size()});
  out += name;
  put(static_cast<uint32_t>(dims.size()));
  for (uint64_t dim : dims) put(dim);
  put(type);
  put(offset);
  out.resize((out.size() + 31) / 32 * 32 + data_bytes);
  return out;
}

// A file of one raw key record.
std::string one_key(const std::string& key, uint32_t type, const std::string& value) {
  std::string out = "GGUF";
  auto put = [&](auto v) { out.append(reinterpret_cast<const char*>(&v), sizeof(v)); };
  put(uint32_t{3});
  put(uint64_t{0});
  put(uint64_t{1});
  put(uint64_t{key.size()});
  out += key;
  put(type);
  return out + value;
}

template <class... T>
std::string raw(T... values) {
  std::string out;
  (out.append(reinterpret_cast<const char*>(&values), sizeof(values)), ...);
  return out;
}

TEST(Gguf, ReadsBackWhatTheWriterWrote) {
  Folder folder("roundtrip");
  GgufBuilder builder;
  builder.add("general.architecture", "llama");
  builder.add("llama.block_count", uint32_t{2});
  std::vector<float> scores = {0.5f, -1.0f};
  builder.add("tokenizer.ggml.scores", std::span<const float>(scores));
  builder.add_tensor("a", FormatId::kF32, Shape{3, 5});
  builder.add_tensor("none", FormatId::kF32, Shape{0, 4});
  builder.add_tensor("b", FormatId::kQ8_0, Shape{2, 32});
  std::string data(60 + 68, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i + 1);

  auto writer = GgufFileWriter::create(folder.file("m.gguf"), builder);
  ASSERT_TRUE(writer);
  for (size_t at = 0; at < data.size(); at += 50) {  // pieces that straddle tensors
    ASSERT_TRUE(writer->write(as_bytes(data).subspan(at, std::min<size_t>(50, data.size() - at))));
  }
  ASSERT_TRUE(writer->finish());

  auto opened = open_gguf(folder.file("m.gguf"));
  ASSERT_TRUE(opened) << opened.error().message;
  Catalog catalog = *std::move(opened);  // views survive the move
  EXPECT_EQ(*catalog.metadata().integer("llama.block_count"), 2);
  ASSERT_EQ(catalog.tensors().size(), 3u);
  EXPECT_EQ(catalog.total_bytes(), data.size());
  const TensorEntry* a = catalog.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape, (Shape{3, 5}));
  EXPECT_EQ(a->elements(), 15);
  EXPECT_EQ(shape_text(a->shape), "[3, 5]");
  EXPECT_EQ(std::memcmp(a->bytes.data(), data.data(), 60), 0);
  const TensorEntry* b = catalog.find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->format, FormatId::kQ8_0);
  EXPECT_EQ(std::memcmp(b->bytes.data(), data.data() + 60, 68), 0);
  EXPECT_EQ(catalog.find("none")->bytes.size(), 0u);
  EXPECT_EQ(catalog.find("c"), nullptr);
  catalog.release(*b);
  catalog.prefetch(*b);
  catalog.release(*catalog.find("none"));
  EXPECT_EQ(static_cast<int>(b->bytes[0]), 61);
  EXPECT_EQ(catalog.paths(), std::vector<std::string>{folder.file("m.gguf")});
}

TEST(Gguf, RefusesOtherVersionsAndByteOrders) {
  std::string file = gguf_seeds()[0];
  file[4] = 1;
  EXPECT_ERROR(file, "version 1 is no longer in use");
  file[4] = 4;
  EXPECT_ERROR(file, "version 4 is unknown");
  file[4] = 0;
  file[7] = 3;
  EXPECT_ERROR(file, "big-endian");
}

TEST(Gguf, SaysWhatForeignFilesAre) {
  using namespace std::string_view_literals;
  EXPECT_ERROR("", "only 0 bytes");
  EXPECT_ERROR("GG", "only 2 bytes");
  EXPECT_ERROR("\x10\0\0\0\0\0\0\0{\"a\":{}}      "sv, "safetensors");
  EXPECT_ERROR("PK\x03\x04 archive/data.pkl", "PyTorch");
  EXPECT_ERROR("tjgg\x03\0\0\0 more"sv, "GGJT");
  EXPECT_ERROR("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer");
  EXPECT_ERROR("\n <!DOCTYPE html><html>", "web page");
  EXPECT_ERROR("Entry not found", "text that begins with \"Entry not found\"");
  EXPECT_ERROR(std::string(100, '\0'), "incomplete");
  EXPECT_ERROR(
      "\x7f"
      "ELF\x02\x01\x01",
      "\\x7fELF");
}

TEST(Gguf, EveryTruncationIsRefusedAndSaysSo) {
  std::string file = gguf_seeds()[0];
  auto header = parse_gguf(as_bytes(file));
  ASSERT_TRUE(header);
  const GgufTensor& last = header->tensors.back();
  size_t needed = last.offset + last.size_bytes;
  for (size_t size = 4; size < needed; ++size) {
    std::string message = error_of(std::string_view(file).substr(0, size));
    ASSERT_NE(message.find("the file ends at byte " + std::to_string(size)), std::string::npos) << size << message;
    ASSERT_NE(message.find("download it again"), std::string::npos) << message;
  }
  EXPECT_EQ(error_of(std::string_view(file).substr(0, needed)), "accepted");  // padding after the last may be missing
  EXPECT_ERROR(std::string_view(file).substr(0, needed - 1),
               "tensor blk.0.attn_k.weight needs it to reach byte " + std::to_string(needed));
}

TEST(Gguf, RefusesSizesThatOverflow) {
  constexpr uint64_t k32 = uint64_t{1} << 32, k62 = uint64_t{1} << 62, k63 = uint64_t{1} << 63;
  for (std::vector<uint64_t> dims : {std::vector<uint64_t>{k32, k32},
                                     {k32, k32, 2},
                                     {k62, 4},
                                     {k63},
                                     {k62, 2, 2, 2},
                                     {1, k63},
                                     {0, k63},
                                     {k32, k32, 0},
                                     {~uint64_t{0}}}) {
    EXPECT_ERROR(one_tensor(dims, 0, 0, 0), "its size is out of range");
  }
  EXPECT_ERROR(one_tensor({k62}, 0, 0, 64), "its size is out of range");  // elements fit, bytes do not
  EXPECT_ERROR(one_tensor({k32}, 0, 0, 64), "tensor t needs it to reach byte");
  EXPECT_ERROR(one_tensor({4}, 0, ~uint64_t{31}, 64), "offset 18446744073709551584 is out of range");
  EXPECT_ERROR(one_tensor({4}, 0, k62, 64), "tensor t needs it to reach byte");
  EXPECT_ERROR(one_tensor({4}, 0, 64, 64), "tensor t needs it to reach byte");
  EXPECT_EQ(error_of(one_tensor({4}, 0, 32, 64)), "accepted");
  EXPECT_EQ(error_of(one_tensor({0, 5}, 0, 64, 64)), "accepted");
  EXPECT_EQ(error_of(one_tensor({}, 0, 0, 4)), "accepted");
}

TEST(Gguf, RefusesBadTensorRecords) {
  EXPECT_ERROR(one_tensor({33}, 2, 0, 64), "rows of 33 elements do not consist of Q4_0 blocks of 32");
  EXPECT_ERROR(one_tensor({1, 1, 1, 1, 1}, 0, 0, 64), "5 dimensions");
  EXPECT_ERROR(one_tensor({1}, 0, 8, 64), "offset 8 is not a multiple of the alignment 32");
  EXPECT_ERROR(one_tensor({1}, 4, 0, 64), "tensor t: tensor type 4 (Q4_2) was removed");
  EXPECT_ERROR(one_tensor({256}, 139, 0, 256), "(IQ4_K) exists only in ik_llama.cpp");
  EXPECT_ERROR(one_tensor({1}, 0, 0, 64, std::string(64, 'n')), "more than the 63 allowed");
  EXPECT_EQ(error_of(one_tensor({1}, 0, 0, 64, std::string(63, 'n'))), "accepted");

  GgufBuilder twice;
  twice.add_tensor("t", FormatId::kF32, Shape{1});
  twice.add_tensor("t", FormatId::kF32, Shape{1});
  EXPECT_ERROR(twice.header() + std::string(64, 'x'), "tensor t appears twice");

  GgufBuilder overlap;
  overlap.add_tensor("first", FormatId::kF32, Shape{16});
  overlap.add_tensor("second", FormatId::kF32, Shape{1});
  std::string file = overlap.header() + std::string(96, 'x');
  EXPECT_EQ(error_of(file), "accepted");
  size_t at = file.find("second") + 6 + 4 + 8 + 4;
  uint64_t offset = 32;
  std::memcpy(file.data() + at, &offset, 8);
  EXPECT_ERROR(file, "tensors first and second overlap");
}

TEST(Gguf, RefusesBadMetadata) {
  constexpr uint64_t k63 = uint64_t{1} << 63;
  EXPECT_ERROR(one_key("", 4, raw(uint32_t{1})), "is empty");
  EXPECT_ERROR(one_key("k", 13, raw(uint32_t{1})), "value type 13 is unknown");
  EXPECT_ERROR(one_key("k", 9, raw(uint32_t{9}, uint64_t{1}, uint32_t{4}, uint64_t{0})), "array of elements of type 9");
  EXPECT_ERROR(one_key("k", 9, raw(uint32_t{4}, k63)), "an array of 9223372036854775808 elements");
  EXPECT_ERROR(one_key("k", 9, raw(uint32_t{8}, uint64_t{1} << 25)), "inside a metadata array");
  EXPECT_ERROR(one_key("k", 9, raw(uint32_t{10}, uint64_t{1}, k63)), "is out of range");
  EXPECT_ERROR(one_key("k", 8, raw(~uint64_t{0})), "claims 18446744073709551615 bytes");
  EXPECT_ERROR(one_key("k", 8, raw(uint64_t{100})), "inside a metadata string");
  EXPECT_ERROR(one_key(std::string(65536, 'k'), 0, "x"), "more than the 65535 allowed");
  EXPECT_EQ(error_of(one_key(std::string(65535, 'k'), 0, "x")), "accepted");
  EXPECT_ERROR(one_key("general.alignment", 4, raw(uint32_t{0})), "0 is not a power of two from 8 to 1048576");
  EXPECT_ERROR(one_key("general.alignment", 4, raw(uint32_t{4})), "is not a power of two");
  EXPECT_ERROR(one_key("general.alignment", 4, raw(uint32_t{48})), "is not a power of two");
  EXPECT_ERROR(one_key("general.alignment", 4, raw(uint32_t{2} << 20)), "is not a power of two");
  EXPECT_ERROR(one_key("general.alignment", 10, raw(uint64_t{32})), "expected u32");
  EXPECT_EQ(error_of(one_key("general.alignment", 4, raw(uint32_t{1} << 20))), "accepted");

  GgufBuilder twice;
  twice.add("k\x1b[31m", true);
  twice.add("k\x1b[31m", true);
  EXPECT_ERROR(twice.header(), "metadata key k\\x1b[31m appears twice");  // and no escape reaches the terminal
}

TEST(Gguf, RefusesCountsBeforeUsingThem) {
  auto header = [](uint64_t tensors, uint64_t keys, size_t more) {
    return "GGUF" + raw(uint32_t{3}, tensors, keys) + std::string(more, '\0');
  };
  EXPECT_ERROR(header(0, ~uint64_t{0}, 1000), "claims 18446744073709551615 keys");
  EXPECT_ERROR(header(uint64_t{1} << 63, 0, 1000), "at most 65536 and 1048576");
  EXPECT_ERROR(header(0, 65536, 1000), "inside the metadata");
  EXPECT_ERROR(header(1 << 20, 0, 1000), "inside the tensor table");
}

// The inputs that cost the most memory for their size.
TEST(Gguf, HeapStaysBelowSixteenTimesTheFile) {
  std::vector<std::pair<const char*, std::string>> files;
  GgufBuilder keys;
  for (int i = 0; i < 65'536; ++i) keys.add(fmt::format("{:x}", i), true);
  files.emplace_back("shortest keys", keys.header());
  GgufBuilder tensors;
  for (int i = 0; i < 50'000; ++i) tensors.add_tensor(fmt::format("{:x}", i), FormatId::kF16, Shape{0, 1, 1, 1});
  files.emplace_back("shortest tensors", tensors.header());
  std::vector<uint8_t> numbers(1 << 20, 1);
  GgufBuilder bytes;
  bytes.add("k", std::span<const uint8_t>(numbers));
  files.emplace_back("array of bytes", bytes.header());
  std::vector<std::string> words(100'000);
  GgufBuilder empty_words;
  empty_words.add("k", std::span<const std::string>(words));
  files.emplace_back("empty strings", empty_words.header());
  std::fill(words.begin(), words.end(), std::string(16, 'w'));  // just too long to be stored inside the object
  GgufBuilder short_words;
  short_words.add("k", std::span<const std::string>(words));
  files.emplace_back("short strings", short_words.header());
  for (const auto& [what, file] : files) {
    size_t before = heap_bytes();
    reset_heap_peak();
    auto header = parse_gguf(as_bytes(file));
    size_t peak = heap_peak_bytes() - before;
    ASSERT_TRUE(header) << what << ": " << header.error().message;
    EXPECT_LE(peak, 16 * file.size() + (1 << 20)) << what;
    RecordProperty(what, fmt::format("{:.2f} x", static_cast<double>(peak) / static_cast<double>(file.size())));
  }
}

// Writes shard `number` (from 0) of `count`; each has two tensors.
std::string shard(int number, int count, int total_tensors, const char* tensor_prefix = "t") {
  GgufBuilder b;
  b.add("split.no", static_cast<uint16_t>(number));
  b.add("split.count", static_cast<uint16_t>(count));
  b.add("split.tensors.count", static_cast<int32_t>(total_tensors));
  if (number == 0) b.add("general.architecture", "llama");
  for (int i = 0; i < 2; ++i)
    b.add_tensor(fmt::format("{}{}", tensor_prefix, 2 * number + i), FormatId::kF32, Shape{1});
  std::string file = b.header();
  for (int i = 0; i < 2; ++i) file += raw(static_cast<float>(2 * number + i)) + std::string(28, '\0');
  return file;
}

TEST(GgufSplit, AnyFileOpensTheWholeModel) {
  Folder folder("split");
  for (int i = 0; i < 3; ++i) folder.write(fmt::format("M-{:05}-of-00003.gguf", i + 1), shard(i, 3, 6));
  for (int given = 1; given <= 3; ++given) {
    auto catalog = open_gguf(folder.file(fmt::format("M-{:05}-of-00003.gguf", given)));
    ASSERT_TRUE(catalog) << catalog.error().message;
    EXPECT_EQ(*catalog->metadata().string("general.architecture"), "llama");
    ASSERT_EQ(catalog->tensors().size(), 6u);
    EXPECT_EQ(catalog->paths().size(), 3u);
    for (int i = 0; i < 6; ++i) {
      const TensorEntry* tensor = catalog->find(fmt::format("t{}", i));
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(tensor->file_index, i / 2);
      float value = NAN;
      std::memcpy(&value, tensor->bytes.data(), sizeof(value));
      EXPECT_EQ(value, static_cast<float>(i));
    }
  }
}

TEST(GgufSplit, EveryInconsistencyIsSaid) {
  auto message = [](const std::string& path) {
    auto catalog = open_gguf(path);
    return catalog ? std::string("accepted") : catalog.error().message;
  };
  auto expect = [&](const std::string& path, const char* words) {
    EXPECT_NE(message(path).find(words), std::string::npos) << message(path);
  };
  Folder folder("split_errors");
  std::string first = folder.write("M-00001-of-00002.gguf", shard(0, 2, 4));
  expect(first, "file 2 of its 2 is missing; download");
  folder.write("M-00002-of-00002.gguf", shard(0, 2, 4));
  expect(first, "its name says file 2 of 2, its contents file 1 of 2");
  folder.write("M-00002-of-00002.gguf", shard(1, 2, 4).substr(0, 100));
  expect(first, "M-00002-of-00002.gguf: the file ends at byte 100");
  folder.write("M-00002-of-00002.gguf", shard(1, 2, 5));
  EXPECT_EQ(message(first), "accepted");  // the first file's total counts
  folder.write("M-00001-of-00002.gguf", shard(0, 2, 5));
  expect(first, "have 4 tensors, split.tensors.count says 5");
  folder.write("M-00001-of-00002.gguf", shard(0, 2, 4, "t"));
  folder.write("M-00002-of-00002.gguf", shard(1, 2, 4, ""));
  EXPECT_EQ(message(first), "accepted");
  GgufBuilder same;
  same.add("split.no", uint16_t{1});
  same.add("split.count", uint16_t{2});
  same.add_tensor("t0", FormatId::kF32, Shape{1});
  same.add_tensor("t1", FormatId::kF32, Shape{1});
  folder.write("M-00002-of-00002.gguf", same.header() + std::string(64, 'x'));
  expect(first, "tensor t0 is in two of its files");
  expect(folder.write("renamed.gguf", shard(0, 2, 4)), "whose name must end in -00001-of-00002.gguf");
  expect(folder.write("X-00003-of-00002.gguf", shard(2, 2, 4)), "split.no 2 of split.count 2 is not possible");
  expect(folder.write("Y.gguf", shard(0, 1001, 4)), "at most 1000 files");
  EXPECT_EQ(message(folder.write("one.gguf", shard(0, 1, 2))), "accepted");
  EXPECT_EQ(open_gguf(folder.file("none.gguf")).error().code, ErrorCode::kNotFound);
}

TEST(Gguf, OpensRealFiles) {
  std::string folder = std::string(HEARTH_SHARED_DATA);
  std::string model = folder + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!fs::exists(model)) GTEST_SKIP() << "no " << model;
  auto catalog = open_gguf(model);
  ASSERT_TRUE(catalog) << catalog.error().message;
  EXPECT_EQ(*catalog->metadata().string("general.architecture"), "llama");
  EXPECT_EQ(catalog->tensors().size(), 272u);
  const TensorEntry* embedding = catalog->find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->shape, (Shape{49152, 576}));
  for (const auto& entry : fs::directory_iterator(folder + "/vocab")) {
    if (entry.path().extension() != ".gguf") continue;
    auto vocab = open_gguf(entry.path().string());
    ASSERT_TRUE(vocab) << vocab.error().message;
    EXPECT_GT(vocab->metadata().strings("tokenizer.ggml.tokens")->size(), 30'000u);
  }
}

}  // namespace
}  // namespace hearth
