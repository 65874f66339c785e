#include "files/gguf_writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hearth {
namespace {

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace

void GgufBuilder::put_string(std::string_view text) {
  put<uint64_t>(text.size());
  metadata_ += text;
}

void GgufBuilder::begin_key(std::string_view key, uint32_t type) {
  put_string(key);
  put(type);
  ++key_count_;
}

void GgufBuilder::begin_array(std::string_view key, uint32_t element_type, uint64_t count) {
  begin_key(key, kArray);
  put(element_type);
  put(count);
}

void GgufBuilder::add_tensor(std::string_view name, FormatId format, std::span<const int64_t> shape) {
  append<uint64_t>(table_, name.size());
  table_ += name;
  append(table_, static_cast<uint32_t>(shape.size()));
  int64_t rows = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    append(table_, static_cast<uint64_t>(shape[i]));
    if (i + 1 < shape.size()) rows *= shape[i];
  }
  append(table_, format_info(format).ggml_type);
  append<uint64_t>(table_, data_bytes_);
  size_t size_bytes = static_cast<size_t>(rows) * row_bytes(format, shape.empty() ? 1 : shape.back());
  tensors_.push_back({std::string(name), data_bytes_, size_bytes});
  data_bytes_ += size_bytes + padding(size_bytes);
}

std::string GgufBuilder::header() const {
  std::string out = "GGUF";
  append<uint32_t>(out, 3);
  append<uint64_t>(out, tensors_.size());
  append<uint64_t>(out, key_count_);
  out += metadata_;
  out += table_;
  out.append(padding(out.size()), '\0');
  return out;
}

Result<GgufFileWriter> GgufFileWriter::create(const std::string& path, GgufBuilder builder) {
  HEARTH_ASSIGN(ReplacingFile file, ReplacingFile::create(path));
  std::string header = builder.header();
  HEARTH_TRY(file.write(header.data(), header.size()));
  return GgufFileWriter(std::move(builder), std::move(file));
}

Result<void> GgufFileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    HEARTH_CHECK(tensor_ < builder_.tensors().size(), "{} bytes after the last tensor", bytes.size());
    size_t size_bytes = builder_.tensors()[tensor_].size_bytes;
    auto piece = bytes.first(std::min(bytes.size(), size_bytes - written_bytes_));
    HEARTH_TRY(file_.write(piece.data(), piece.size()));
    written_bytes_ += piece.size();
    bytes = bytes.subspan(piece.size());
    if (written_bytes_ == size_bytes) {
      std::string zeros(builder_.padding(size_bytes), '\0');
      HEARTH_TRY(file_.write(zeros.data(), zeros.size()));
      ++tensor_;
      written_bytes_ = 0;
    }
  }
  return {};
}

Result<void> GgufFileWriter::finish() {
  while (tensor_ < builder_.tensors().size() && builder_.tensors()[tensor_].size_bytes == 0) ++tensor_;
  HEARTH_CHECK(tensor_ == builder_.tensors().size(), "{} of {} tensors written", tensor_, builder_.tensors().size());
  return file_.commit();
}

}  // namespace hearth
