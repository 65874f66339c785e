#include "gguf_cases.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "files/gguf_writer.h"

namespace hearth {
namespace {

// Header plus filler bytes for every tensor.
std::string whole_file(const GgufBuilder& builder) {
  std::string file = builder.header();
  for (const GgufBuilder::Tensor& tensor : builder.tensors()) {
    file.append(tensor.size_bytes, 'w');
    file.append(builder.padding(tensor.size_bytes), '\0');
  }
  return file;
}

template <class T>
void add_array(GgufBuilder& b, const char* key, std::vector<T> values) {
  b.add(key, std::span<const T>(values));
}

GgufBuilder every_value_type() {
  GgufBuilder b;
  b.add("general.architecture", "llama");
  b.add("a.u8", uint8_t{200});
  b.add("a.i8", int8_t{-100});
  b.add("a.u16", uint16_t{60000});
  b.add("a.i16", int16_t{-30000});
  b.add("a.u32", uint32_t{4000000000});
  b.add("a.i32", int32_t{-2000000000});
  b.add("a.u64", std::numeric_limits<uint64_t>::max());
  b.add("a.i64", std::numeric_limits<int64_t>::min());
  b.add("a.f32", 1.5f);
  b.add("a.f64", 1e300);
  b.add("a.bool", true);
  b.add("a.empty", "");
  add_array<uint8_t>(b, "v.u8", {1, 2, 255});
  add_array<int8_t>(b, "v.i8", {-1, 2, -128});
  add_array<uint16_t>(b, "v.u16", {1, 65535});
  add_array<int16_t>(b, "v.i16", {-1, -32768});
  add_array<uint32_t>(b, "v.u32", {1, 4294967295});
  add_array<int32_t>(b, "v.i32", {-1, 2147483647});
  add_array<uint64_t>(b, "v.u64", {1, uint64_t{1} << 62});
  add_array<int64_t>(b, "v.i64", {-1, 1});
  add_array<float>(b, "v.f32", {0.5f, -0.0f, INFINITY});
  add_array<double>(b, "v.f64", {0.1, 1e300, -1e-300});
  b.add("v.bool", std::span<const bool>(std::array<bool, 3>{true, false, true}));
  std::vector<std::string> words = {"<s>", "", "\xff\xfe", "hello world"};
  b.add("v.string", std::span<const std::string>(words));
  return b;
}

void add_tensors(GgufBuilder& b) {
  using Shape = std::vector<int64_t>;
  b.add_tensor("token_embd.weight", FormatId::kQ4_0, Shape{3, 32});
  b.add_tensor("output_norm.weight", FormatId::kF32, Shape{5});
  b.add_tensor("blk.0.ffn_gate_exps.weight", FormatId::kQ8_0, Shape{2, 1, 32});
  b.add_tensor("scalar", FormatId::kBF16, Shape{});
  b.add_tensor("empty", FormatId::kF16, Shape{0, 7});
  b.add_tensor("blk.0.attn_k.weight", FormatId::kIQ4_NL, Shape{1, 1, 1, 64});
}

}  // namespace

std::vector<std::string> gguf_seeds() {
  std::vector<std::string> seeds;
  GgufBuilder full = every_value_type();
  add_tensors(full);
  seeds.push_back(whole_file(full));

  seeds.push_back(whole_file(every_value_type()));  // no tensors

  GgufBuilder wide(64);
  wide.add("general.alignment", uint32_t{64});
  wide.add("general.architecture", "qwen3");
  add_tensors(wide);
  seeds.push_back(whole_file(wide));

  GgufBuilder narrow(8);
  narrow.add("general.alignment", uint32_t{8});
  add_tensors(narrow);
  narrow.add_tensor("q4k", FormatId::kQ4_K, std::vector<int64_t>{1, 256});
  seeds.push_back(whole_file(narrow));

  GgufBuilder split;
  split.add("split.no", uint16_t{0});
  split.add("split.count", uint16_t{2});
  split.add("split.tensors.count", int32_t{9});
  add_tensors(split);
  seeds.push_back(whole_file(split));

  std::string version_2 = seeds[0];
  version_2[4] = 2;
  seeds.push_back(version_2);

  GgufBuilder bare;
  seeds.push_back(whole_file(bare));
  return seeds;
}

std::string mutate(std::string file, const std::vector<std::string>& seeds, std::mt19937_64& rng) {
  static constexpr uint64_t kTelling[] = {
      0,
      1,
      2,
      3,
      4,
      6,
      7,
      8,
      9,
      10,
      12,
      13,
      16,
      31,
      32,
      63,
      64,
      65,
      255,
      256,
      65535,
      65536,
      0x7fffffff,
      0x80000000,
      0xffffffff,
      0x100000000,
      uint64_t{1} << 40,
      uint64_t{1} << 59,
      uint64_t{1} << 61,
      uint64_t{1} << 62,
      uint64_t{1} << 63,
      ~uint64_t{0},
      ~uint64_t{0} >> 1,
      ~uint64_t{31},
  };
  auto below = [&](size_t n) { return n ? static_cast<size_t>(rng() % n) : 0; };
  size_t edits = 1 + below(4);
  for (size_t e = 0; e < edits; ++e) {
    if (file.empty()) return file;
    size_t at = below(file.size());
    switch (below(9)) {
      case 0:
        file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
        break;
      case 1:
        file[at] = static_cast<char>(rng());
        break;
      case 2:
      case 3:
      case 4: {  // a telling integer of 4 or 8 bytes
        uint64_t value = below(4) ? kTelling[below(std::size(kTelling))] : below(file.size() * 2);
        size_t width = below(2) ? 8 : 4;
        std::memcpy(file.data() + at, &value, std::min(width, file.size() - at));
        break;
      }
      case 5:
        file.resize(at);
        break;
      case 6:
        file.erase(at, 1 + below(16));
        break;
      case 7:
        file.insert(at, file.substr(below(file.size()), 1 + below(64)));
        break;
      case 8: {
        const std::string& other = seeds[below(seeds.size())];
        file.replace(at, 1 + below(64), other.substr(below(other.size()), 1 + below(64)));
        break;
      }
    }
  }
  return file;
}

namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = crc_table();

class Summary {
 public:
  template <class T>
  void put(T value) {
    put_bytes(&value, sizeof(T));
  }
  void put_string(std::string_view text) {
    put<uint64_t>(text.size());
    put_bytes(text.data(), text.size());
  }
  void put_bytes(const void* data, size_t size_bytes) {
    auto* bytes = static_cast<const uint8_t*>(data);
    for (size_t i = 0; i < size_bytes; ++i) crc_ = kTable[(crc_ ^ bytes[i]) & 255] ^ (crc_ >> 8);
  }
  uint32_t crc() const { return ~crc_; }

 private:
  uint32_t crc_ = ~0u;
};

}  // namespace

uint32_t summary_crc(const GgufHeader& header) {
  Summary s;
  s.put(header.version);
  s.put(header.alignment);
  s.put<uint64_t>(header.data_offset);
  s.put<uint64_t>(header.metadata.values().size());
  for (const auto& [key, value] : header.metadata.values()) {
    s.put_string(key);
    s.put(static_cast<uint8_t>(value.index()));
    if (auto* b = std::get_if<bool>(&value)) s.put(static_cast<uint8_t>(*b));
    if (auto* i = std::get_if<int64_t>(&value)) s.put(*i);
    if (auto* u = std::get_if<uint64_t>(&value)) s.put(*u);
    if (auto* d = std::get_if<double>(&value)) {
      if (std::isnan(*d)) {
        s.put<uint64_t>(0x7ff8000000000000);
      } else {
        s.put(*d);
      }
    }
    if (auto* text = std::get_if<std::string>(&value)) s.put_string(*text);
    if (auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
      s.put<uint64_t>(ints->size());
      for (int64_t i : *ints) s.put(i);
    }
    if (auto* floats = std::get_if<std::vector<float>>(&value)) {
      s.put<uint64_t>(floats->size());
      for (float f : *floats) {
        if (std::isnan(f)) {
          s.put<uint32_t>(0x7fc00000);
        } else {
          s.put(f);
        }
      }
    }
    if (auto* strings = std::get_if<std::vector<std::string>>(&value)) {
      s.put<uint64_t>(strings->size());
      for (const std::string& text : *strings) s.put_string(text);
    }
  }
  for (const GgufTensor& tensor : header.tensors) {
    s.put_string(tensor.name);
    s.put(format_info(tensor.format).ggml_type);
    s.put(static_cast<uint32_t>(tensor.shape.size()));
    for (int64_t dim : tensor.shape) s.put(dim);
    s.put<uint64_t>(tensor.offset);
    s.put<uint64_t>(tensor.size_bytes);
  }
  return s.crc();
}

}  // namespace hearth
