#include "files/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/checked_math.h"
#include "files/foreign.h"

namespace hearth {
namespace {

// The value types of GGUF, by their ids.
enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// Smallest possible bytes of a key-value record (8 + 1 for the key, 4 type, 1 value) and of a tensor's record (8 for
// the name, 4 dimensions, 4 type, 8 offset): counts are compared with them before anything is reserved.
constexpr uint64_t kMinKeyRecord = 14;
constexpr uint64_t kMinTensorRecord = 24;

// A cursor over the file that never passes its end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {}

  size_t position() const { return position_; }
  size_t left() const { return file_.size() - position_; }

  // Precondition: sizeof(T) <= left().
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, file_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  template <class T>
  Result<T> read(std::string_view what) {
    if (left() < sizeof(T)) return ends_inside(what);
    return take<T>();
  }

  // A string of at most `max_bytes` bytes. The view lives as long as the file.
  Result<std::string_view> read_string(std::string_view what, uint64_t max_bytes) {
    HEARTH_ASSIGN(uint64_t length, read<uint64_t>(what));
    if (length > max_bytes) {
      return fail(ErrorCode::kInvalidInput,
                  "{} at byte {} claims {} bytes, more than the {} allowed; the file is damaged", what, position_ - 8,
                  length, max_bytes);
    }
    if (length > left()) return ends_inside(what);
    std::string_view text(reinterpret_cast<const char*>(file_.data() + position_), length);
    position_ += length;
    return text;
  }

  Error ends_inside(std::string_view what) const {
    return fail(ErrorCode::kInvalidInput,
                "the file ends at byte {}, inside {}; it is truncated or damaged, download it again", file_.size(),
                what);
  }

 private:
  std::span<const std::byte> file_;
  size_t position_ = 0;
};

size_t scalar_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  return 0;
}

// Reads `count` numbers that are known to be there.
template <class T, class Out>
std::vector<Out> take_numbers(Reader& reader, size_t count) {
  std::vector<Out> out(count);
  for (Out& value : out) value = static_cast<Out>(reader.take<T>());
  return out;
}

Result<MetadataValue> read_array(Reader& reader, std::string_view key) {
  HEARTH_ASSIGN(auto type_id, reader.read<uint32_t>("a metadata value"));
  HEARTH_ASSIGN(auto count, reader.read<uint64_t>("a metadata value"));
  auto type = static_cast<ValueType>(type_id);
  if (type_id > static_cast<uint32_t>(ValueType::kF64) || type == ValueType::kArray) {
    return fail(ErrorCode::kInvalidInput,
                "metadata key {}: an array of elements of type {} is not possible; the file is damaged", printable(key),
                type_id);
  }
  if (count > GgufLimits::kArrayElements) {
    return fail(ErrorCode::kInvalidInput,
                "metadata key {}: an array of {} elements, more than the {} allowed; the file is damaged",
                printable(key), count, GgufLimits::kArrayElements);
  }
  size_t element_bytes = type == ValueType::kString ? 8 : scalar_bytes(type);  // a string has at least its length
  if (count > reader.left() / element_bytes) return reader.ends_inside("a metadata array");
  switch (type) {
    case ValueType::kU8:
      return MetadataValue(take_numbers<uint8_t, int64_t>(reader, count));
    case ValueType::kI8:
      return MetadataValue(take_numbers<int8_t, int64_t>(reader, count));
    case ValueType::kU16:
      return MetadataValue(take_numbers<uint16_t, int64_t>(reader, count));
    case ValueType::kI16:
      return MetadataValue(take_numbers<int16_t, int64_t>(reader, count));
    case ValueType::kU32:
      return MetadataValue(take_numbers<uint32_t, int64_t>(reader, count));
    case ValueType::kI32:
      return MetadataValue(take_numbers<int32_t, int64_t>(reader, count));
    case ValueType::kI64:
      return MetadataValue(take_numbers<int64_t, int64_t>(reader, count));
    case ValueType::kF32:
      return MetadataValue(take_numbers<float, float>(reader, count));
    case ValueType::kF64:
      return MetadataValue(take_numbers<double, float>(reader, count));
    case ValueType::kBool: {
      std::vector<int64_t> out(count);
      for (int64_t& value : out) value = reader.take<uint8_t>() != 0;
      return MetadataValue(std::move(out));
    }
    case ValueType::kU64: {
      std::vector<int64_t> out(count);
      for (int64_t& value : out) {
        auto element = reader.take<uint64_t>();
        if (element > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
          return fail(ErrorCode::kInvalidInput, "metadata key {}: the array element {} is out of range", printable(key),
                      element);
        }
        value = static_cast<int64_t>(element);
      }
      return MetadataValue(std::move(out));
    }
    default: {
      std::vector<std::string> out;
      out.reserve(count);
      for (uint64_t i = 0; i < count; ++i) {
        HEARTH_ASSIGN(auto text, reader.read_string("a string of a metadata array", GgufLimits::kStringBytes));
        out.emplace_back(text);
      }
      return MetadataValue(std::move(out));
    }
  }
}

Result<MetadataValue> read_value(Reader& reader, uint32_t type_id, std::string_view key) {
  auto type = static_cast<ValueType>(type_id);
  if (type_id > static_cast<uint32_t>(ValueType::kF64)) {
    return fail(ErrorCode::kInvalidInput, "metadata key {}: value type {} is unknown; the file is damaged",
                printable(key), type_id);
  }
  if (type == ValueType::kArray) return read_array(reader, key);
  if (type == ValueType::kString) {
    HEARTH_ASSIGN(auto text, reader.read_string("a metadata string", GgufLimits::kStringBytes));
    return MetadataValue(std::string(text));
  }
  if (reader.left() < scalar_bytes(type)) return reader.ends_inside("a metadata value");
  switch (type) {
    case ValueType::kU8:
      return MetadataValue(uint64_t{reader.take<uint8_t>()});
    case ValueType::kU16:
      return MetadataValue(uint64_t{reader.take<uint16_t>()});
    case ValueType::kU32:
      return MetadataValue(uint64_t{reader.take<uint32_t>()});
    case ValueType::kU64:
      return MetadataValue(reader.take<uint64_t>());
    case ValueType::kI8:
      return MetadataValue(int64_t{reader.take<int8_t>()});
    case ValueType::kI16:
      return MetadataValue(int64_t{reader.take<int16_t>()});
    case ValueType::kI32:
      return MetadataValue(int64_t{reader.take<int32_t>()});
    case ValueType::kI64:
      return MetadataValue(reader.take<int64_t>());
    case ValueType::kF32:
      return MetadataValue(double{reader.take<float>()});
    case ValueType::kF64:
      return MetadataValue(reader.take<double>());
    default:
      return MetadataValue(reader.take<uint8_t>() != 0);
  }
}

Result<uint32_t> checked_alignment(uint32_t type_id, const MetadataValue& value) {
  if (static_cast<ValueType>(type_id) != ValueType::kU32) {
    return fail(ErrorCode::kInvalidInput, "metadata key general.alignment: expected u32, the file has another type");
  }
  uint64_t alignment = std::get<uint64_t>(value);
  if (!std::has_single_bit(alignment) || alignment < GgufLimits::kMinAlignment ||
      alignment > GgufLimits::kMaxAlignment) {
    return fail(ErrorCode::kInvalidInput, "metadata key general.alignment: {} is not a power of two from {} to {}",
                alignment, GgufLimits::kMinAlignment, GgufLimits::kMaxAlignment);
  }
  return static_cast<uint32_t>(alignment);
}

// Bytes of a tensor of these dimensions (innermost first). nullopt: some product is out of range; products ignore
// zero dimensions, so that a zero cannot hide an overflow.
std::optional<size_t> tensor_bytes(const FormatInfo& info, std::span<const uint64_t> dims) {
  auto block_elems = static_cast<uint64_t>(info.block_elems);
  uint64_t inner = dims.empty() ? 1 : dims[0];
  int64_t elements = 1;
  uint64_t blocks = std::max<uint64_t>(inner / block_elems, 1);
  bool is_empty = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    uint64_t dim = dims[i];
    if (dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    if (dim == 0) {
      is_empty = true;
      continue;
    }
    auto product = checked_mul(elements, static_cast<int64_t>(dim));
    if (!product) return std::nullopt;
    elements = *product;
    if (i > 0) blocks *= dim;  // blocks <= elements
  }
  auto bytes = checked_mul(blocks, static_cast<uint64_t>(info.block_bytes));
  if (!bytes || *bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return is_empty ? 0 : *bytes;
}

// Reads one tensor record. `offset` stays relative to the data section.
Result<GgufTensor> read_tensor(Reader& reader) {
  GgufTensor tensor;
  HEARTH_ASSIGN(auto name, reader.read_string("a tensor name", GgufLimits::kNameBytes));
  tensor.name = name;
  HEARTH_ASSIGN(auto rank, reader.read<uint32_t>("a tensor record"));
  if (rank > GgufLimits::kDimensions) {
    return fail(ErrorCode::kInvalidInput, "tensor {}: {} dimensions, at most {} are possible; the file is damaged",
                printable(name), rank, GgufLimits::kDimensions);
  }
  uint64_t dims[GgufLimits::kDimensions];
  for (uint32_t i = 0; i < rank; ++i) {
    HEARTH_ASSIGN(dims[i], reader.read<uint64_t>("a tensor record"));
  }
  HEARTH_ASSIGN(auto type_id, reader.read<uint32_t>("a tensor record"));
  HEARTH_ASSIGN(tensor.offset, reader.read<uint64_t>("a tensor record"));

  auto format = format_from_ggml(type_id);
  if (!format) return std::move(format).error().with_context(fmt::format("tensor {}", printable(name)));
  tensor.format = *format;
  const FormatInfo& info = format_info(tensor.format);
  uint64_t inner = rank ? dims[0] : 1;
  if (inner % static_cast<uint64_t>(info.block_elems) != 0) {
    return fail(ErrorCode::kInvalidInput,
                "tensor {}: rows of {} elements do not consist of {} blocks of {}; the file is damaged",
                printable(name), inner, info.name, info.block_elems);
  }
  auto bytes = tensor_bytes(info, {dims, rank});
  if (!bytes) {
    return fail(ErrorCode::kInvalidInput, "tensor {}: its size is out of range; the file is damaged", printable(name));
  }
  tensor.size_bytes = *bytes;
  tensor.shape.reserve(rank);
  for (uint32_t i = rank; i-- > 0;) tensor.shape.push_back(static_cast<int64_t>(dims[i]));
  return tensor;
}

Result<void> check_unique_names(std::span<const GgufTensor> tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    return fail(ErrorCode::kInvalidInput, "tensor {} appears twice; the file is damaged", printable(*twice));
  }
  return {};
}

Result<void> check_no_overlap(std::span<const GgufTensor> tensors) {
  std::vector<const GgufTensor*> by_offset;
  by_offset.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors) {
    if (tensor.size_bytes > 0) by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const GgufTensor &a = *by_offset[i - 1], &b = *by_offset[i];
    if (a.offset + a.size_bytes > b.offset) {
      return fail(ErrorCode::kInvalidInput, "tensors {} and {} overlap; the file is damaged", printable(a.name),
                  printable(b.name));
    }
  }
  return {};
}

// Turns offsets in the data section into offsets in the file, and checks that all tensors are inside it.
Result<void> place_tensors(GgufHeader& header, size_t header_end, size_t file_bytes) {
  auto data_offset = checked_align_up<size_t>(header_end, header.alignment);
  if (!data_offset)
    return fail(ErrorCode::kInvalidInput, "the header's size is out of range");  // needs a 2^64 byte file
  header.data_offset = *data_offset;
  size_t data_bytes = file_bytes > *data_offset ? file_bytes - *data_offset : 0;
  for (GgufTensor& tensor : header.tensors) {
    if (tensor.offset % header.alignment != 0) {
      return fail(ErrorCode::kInvalidInput,
                  "tensor {}: offset {} is not a multiple of the alignment {}; the file is damaged",
                  printable(tensor.name), tensor.offset, header.alignment);
    }
    auto end = checked_add(tensor.offset, tensor.size_bytes);
    if (!end || *end > data_bytes) {
      auto needed = end ? checked_add(*end, *data_offset) : std::nullopt;
      if (!needed) {
        return fail(ErrorCode::kInvalidInput, "tensor {}: offset {} is out of range; the file is damaged",
                    printable(tensor.name), tensor.offset);
      }
      return fail(ErrorCode::kInvalidInput,
                  "the file ends at byte {}, tensor {} needs it to reach byte {}; it is truncated, download it again",
                  file_bytes, printable(tensor.name), *needed);
    }
    tensor.offset += *data_offset;
  }
  return check_no_overlap(header.tensors);
}

Result<void> check_version(uint32_t version) {
  if (version == 2 || version == 3) return {};
  if (version == 1) {
    return fail(ErrorCode::kUnsupported,
                "GGUF version 1 is no longer in use; convert the model again (versions 2 and 3 work)");
  }
  if ((version & 0xffff) == 0 && version != 0) {
    return fail(ErrorCode::kUnsupported,
                "the file is big-endian (its version reads {:#010x}); use the little-endian file of this model",
                version);
  }
  return fail(ErrorCode::kUnsupported,
              "GGUF version {} is unknown (versions 2 and 3 work); the file is damaged or newer than this build",
              version);
}

}  // namespace

Result<GgufHeader> parse_gguf(std::span<const std::byte> file) {
  if (file.size() < 4 || std::memcmp(file.data(), "GGUF", 4) != 0) {
    return fail(ErrorCode::kInvalidInput, "not a GGUF file: {}", describe_foreign_file(file));
  }
  Reader reader(file);
  reader.take<uint32_t>();
  GgufHeader header;
  HEARTH_ASSIGN(header.version, reader.read<uint32_t>("the header"));
  HEARTH_TRY(check_version(header.version));
  HEARTH_ASSIGN(auto tensor_count, reader.read<uint64_t>("the header"));
  HEARTH_ASSIGN(auto key_count, reader.read<uint64_t>("the header"));
  if (key_count > GgufLimits::kKeys || tensor_count > GgufLimits::kTensors) {
    return fail(ErrorCode::kInvalidInput,
                "the header claims {} keys and {} tensors, at most {} and {} are allowed; the file is damaged",
                key_count, tensor_count, GgufLimits::kKeys, GgufLimits::kTensors);
  }
  if (key_count > reader.left() / kMinKeyRecord) return reader.ends_inside("the metadata");

  for (uint64_t i = 0; i < key_count; ++i) {
    HEARTH_ASSIGN(auto key, reader.read_string("a metadata key", GgufLimits::kKeyBytes));
    if (key.empty()) return fail(ErrorCode::kInvalidInput, "metadata key {} is empty; the file is damaged", i);
    HEARTH_ASSIGN(auto type_id, reader.read<uint32_t>("a metadata value"));
    HEARTH_ASSIGN(auto value, read_value(reader, type_id, key));
    if (key == "general.alignment") {
      HEARTH_ASSIGN(header.alignment, checked_alignment(type_id, value));
    }
    if (header.metadata.contains(key)) {
      return fail(ErrorCode::kInvalidInput, "metadata key {} appears twice; the file is damaged", printable(key));
    }
    HEARTH_TRY(header.metadata.insert(std::string(key), std::move(value)));
  }

  if (tensor_count > reader.left() / kMinTensorRecord) return reader.ends_inside("the tensor table");
  header.tensors.reserve(tensor_count);
  for (uint64_t i = 0; i < tensor_count; ++i) {
    HEARTH_ASSIGN(auto tensor, read_tensor(reader));
    header.tensors.push_back(std::move(tensor));
  }
  HEARTH_TRY(check_unique_names(header.tensors));
  HEARTH_TRY(place_tensors(header, reader.position(), file.size()));
  return header;
}

namespace {

struct OpenedFile {
  MappedFile file;
  GgufHeader header;
};

Result<OpenedFile> open_one(const std::string& path) {
  HEARTH_ASSIGN(auto file, MappedFile::open(path));
  auto header = parse_gguf(file.bytes());
  if (!header) return std::move(header).error().with_context(fmt::format("cannot open {}", path));
  return OpenedFile{std::move(file), *std::move(header)};
}

struct Split {
  int64_t number = 0;  // from 0
  int64_t count = 1;
};

Result<Split> read_split(const Metadata& metadata) {
  HEARTH_ASSIGN(int64_t count, metadata.integer_or("split.count", 1));
  HEARTH_ASSIGN(int64_t number, metadata.integer_or("split.no", 0));
  if (count == 0 && number == 0) count = 1;
  if (count < 1 || count > GgufLimits::kSplits || number < 0 || number >= count) {
    return fail(ErrorCode::kInvalidInput, "split.no {} of split.count {} is not possible (at most {} files)", number,
                count, GgufLimits::kSplits);
  }
  return Split{number, count};
}

std::string split_suffix(Split split) { return fmt::format("-{:05}-of-{:05}.gguf", split.number + 1, split.count); }

// Moves a file's tensors into the list of the model.
void append(OpenedFile& opened, int file_index, std::vector<TensorEntry>& tensors) {
  for (GgufTensor& tensor : opened.header.tensors) {
    tensors.push_back({.name = std::move(tensor.name),
                       .format = tensor.format,
                       .shape = std::move(tensor.shape),
                       .bytes = opened.file.bytes().subspan(tensor.size_bytes ? tensor.offset : 0, tensor.size_bytes),
                       .file_index = file_index});
  }
  std::vector<GgufTensor>().swap(opened.header.tensors);
}

Result<Catalog> open_split(const std::string& path, OpenedFile given, Split split) {
  std::string suffix = split_suffix(split);
  std::string name = std::filesystem::path(path).filename().string();
  if (!name.ends_with(suffix)) {
    return fail(ErrorCode::kInvalidInput,
                "cannot open {}: it is file {} of {} of a split model, whose name must end in {}; give the files their "
                "original names",
                path, split.number + 1, split.count, suffix);
  }
  std::string prefix = path.substr(0, path.size() - suffix.size());

  std::vector<MappedFile> files;
  std::vector<TensorEntry> tensors;
  Metadata metadata;
  for (Split at{0, split.count}; at.number < split.count; ++at.number) {
    std::string at_path = prefix + split_suffix(at);
    std::optional<OpenedFile> opened;
    if (at.number == split.number) {
      opened = std::move(given);
    } else {
      auto sibling = open_one(at_path);
      if (!sibling && sibling.error().code == ErrorCode::kNotFound) {
        return fail(ErrorCode::kNotFound,
                    "cannot open {}: file {} of its {} is missing; download {} into the same folder", path,
                    at.number + 1, at.count, at_path);
      }
      if (!sibling) return std::move(sibling).error();
      auto its = read_split(sibling->header.metadata);
      if (!its) return std::move(its).error().with_context(fmt::format("cannot open {}", at_path));
      if (its->number != at.number || its->count != at.count) {
        return fail(ErrorCode::kInvalidInput,
                    "cannot open {}: its name says file {} of {}, its contents file {} of {}; give the files their "
                    "original names",
                    at_path, at.number + 1, at.count, its->number + 1, its->count);
      }
      opened = *std::move(sibling);
    }
    append(*opened, static_cast<int>(at.number), tensors);
    if (at.number == 0) metadata = std::move(opened->header.metadata);
    files.push_back(std::move(opened->file));
  }

  auto total = metadata.integer_or("split.tensors.count", static_cast<int64_t>(tensors.size()));
  if (!total) return std::move(total).error().with_context(fmt::format("cannot open {}", path));
  if (*total != static_cast<int64_t>(tensors.size())) {
    return fail(ErrorCode::kInvalidInput,
                "cannot open {}: its {} files have {} tensors, split.tensors.count says {}; they are not of one model",
                path, split.count, tensors.size(), *total);
  }
  std::vector<std::string_view> names;
  for (const TensorEntry& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  if (auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    return fail(ErrorCode::kInvalidInput, "cannot open {}: tensor {} is in two of its files", path, printable(*twice));
  }
  return Catalog(std::move(metadata), std::move(tensors), std::move(files));
}

}  // namespace

Result<Catalog> open_gguf(const std::string& path) {
  HEARTH_ASSIGN(auto opened, open_one(path));
  auto split = read_split(opened.header.metadata);
  if (!split) return std::move(split).error().with_context(fmt::format("cannot open {}", path));
  if (split->count > 1) return open_split(path, std::move(opened), *split);
  std::vector<TensorEntry> tensors;
  tensors.reserve(opened.header.tensors.size());
  append(opened, 0, tensors);
  std::vector<MappedFile> files;
  files.push_back(std::move(opened.file));
  return Catalog(std::move(opened.header.metadata), std::move(tensors), std::move(files));
}

}  // namespace hearth
