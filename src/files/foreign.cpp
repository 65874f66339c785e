#include "files/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace hearth {
namespace {

struct Magic {
  std::string_view bytes;
  std::string_view meaning;
};

using namespace std::string_view_literals;

constexpr std::string_view kConvert = "; convert the model to GGUF, or download a .gguf file of it";

constexpr Magic kMagics[] = {
    {"PK\x03\x04"sv, "a zip archive, probably a PyTorch checkpoint (.bin, .pt)"},
    {"\x80\x02"sv, "a Python pickle, probably a PyTorch checkpoint"},
    {"lmgg"sv, "an old GGML file (before GGUF)"},
    {"fmgg"sv, "an old GGMF file (before GGUF)"},
    {"tjgg"sv, "an old GGJT file (before GGUF)"},
    {"algg"sv, "an old GGLA adapter (before GGUF)"},
    {"\x89HDF"sv, "an HDF5 file"},
    {"\x08\x00\x00\x00ONNX"sv, "an ONNX file"},
    {"\x1f\x8b"sv, "a gzip archive; unpack it first"},
    {"\x28\xb5\x2f\xfd"sv, "a zstd archive; unpack it first"},
    {"\xfd\x37zXZ"sv, "an xz archive; unpack it first"},
    {"7z\xbc\xaf\x27\x1c"sv, "a 7-zip archive; unpack it first"},
};

// A safetensors file begins with the length of a JSON object (at most 100 MB by its specification).
bool looks_like_safetensors(std::string_view head) {
  if (head.size() < 10 || head[8] != '{') return false;
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(head[static_cast<size_t>(i)]);
  return length >= 2 && length <= 100'000'000;
}

bool begins_with_ignoring_case(std::string_view text, std::string_view lower_prefix) {
  if (text.size() < lower_prefix.size()) return false;
  return std::equal(lower_prefix.begin(), lower_prefix.end(), text.begin(),
                    [](char p, char t) { return p == (t >= 'A' && t <= 'Z' ? static_cast<char>(t - 'A' + 'a') : t); });
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kMaxChars = 80;
  std::string out;
  for (char c : text) {
    if (out.size() >= kMaxChars) return out + "...";
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    }
  }
  return out;
}

std::string describe_foreign_file(std::span<const std::byte> file) {
  std::string_view head(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 512));
  if (head.size() < 4) return fmt::format("the file has only {} bytes; download it again", head.size());
  if (head.starts_with("version https://git-lfs")) {
    return "this is a Git LFS pointer, not the model itself; fetch the model with `git lfs pull`, or download the file";
  }
  if (looks_like_safetensors(head)) {
    return fmt::format("this is a safetensors file{}", kConvert);
  }
  for (const Magic& magic : kMagics) {
    if (!head.starts_with(magic.bytes)) continue;
    bool archive = magic.meaning.find("unpack") != std::string_view::npos;
    return fmt::format("this is {}{}", magic.meaning, archive ? "" : kConvert);
  }
  std::string_view text = head.substr(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  if (begins_with_ignoring_case(text, "<!doctype") || begins_with_ignoring_case(text, "<html")) {
    return "this is a web page, not a model; the download link led to a page, use the link of the file itself";
  }
  if (head.find_first_not_of('\0') == std::string_view::npos) {
    return "the file begins with zeros; the download is incomplete, download it again";
  }
  bool is_text =
      std::all_of(head.begin(), head.end(), [](char c) { return c >= 0x20 || c == '\n' || c == '\r' || c == '\t'; });
  if (is_text) {
    return fmt::format("this is a text that begins with \"{}\", not a model; download the .gguf file",
                       printable(head.substr(0, 60)));
  }
  return fmt::format("it begins with \"{}\" instead of \"GGUF\"; it is another kind of file, or damaged",
                     printable(head.substr(0, 4)));
}

}  // namespace hearth
