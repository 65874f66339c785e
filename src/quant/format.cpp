#include "quant/format.h"

#include <array>
#include <string>

#include "base/check.h"
#include "quant/formats.h"

namespace hearth {
namespace {

template <class... F>
constexpr std::array<FormatInfo, sizeof...(F)> infos(TypeList<F...>) {
  return {F::kInfo...};
}
template <class... F>
constexpr std::array<FormatId, sizeof...(F)> ids(TypeList<F...>) {
  return {F::kId...};
}

constexpr auto kInfos = infos(FormatList{});
constexpr auto kIds = ids(FormatList{});

constexpr bool list_matches_enum() {
  for (size_t i = 0; i < kIds.size(); ++i) {
    if (static_cast<size_t>(kIds[i]) != i) return false;
  }
  return true;
}
static_assert(list_matches_enum(), "FormatList and FormatId must have the same order");

// Ids that appear in files but hold no weights Hearth can read.
struct OtherType {
  uint32_t ggml_type;
  const char* name;
};

constexpr OtherType kRemoved[] = {
    {4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"},
};
constexpr OtherType kActivations[] = {
    {9, "Q8_1"},     {15, "Q8_K"},      {97, "Q8_0_X4"},   {98, "Q8_1_X4"},  {99, "Q8_2_X4"},
    {136, "Q8_K64"}, {147, "Q8_K16"},   {148, "Q8_K32"},   {149, "Q8_KR8"},  {150, "Q8_K128"},
    {151, "Q8_KV"},  {397, "Q8_K_R16"}, {398, "Q8_KV_R8"}, {399, "Q8_K_R8"},
};
constexpr OtherType kIkOnly[] = {
    {133, "Q6_0"},      {134, "IQ1_BN"},     {135, "IQ2_BN"},    {137, "IQ2_K"},      {138, "IQ3_K"},
    {139, "IQ4_K"},     {140, "IQ5_K"},      {141, "IQ6_K"},     {144, "IQ4_KS"},     {145, "IQ2_KS"},
    {146, "IQ4_KSS"},   {152, "IQ5_KS"},     {153, "IQ2_KT"},    {154, "IQ3_KT"},     {155, "IQ4_KT"},
    {156, "IQ3_KS"},    {157, "IQ2_KL"},     {158, "IQ1_KT"},    {202, "Q4_0_R8"},    {206, "Q5_0_R4"},
    {208, "Q8_0_R8"},   {210, "Q2_K_R4"},    {211, "Q3_K_R4"},   {212, "Q4_K_R4"},    {213, "Q5_K_R4"},
    {214, "Q6_K_R4"},   {216, "IQ2_XXS_R4"}, {217, "IQ2_XS_R4"}, {218, "IQ3_XXS_R4"}, {219, "IQ1_S_R4"},
    {220, "IQ4_NL_R4"}, {221, "IQ3_S_R4"},   {222, "IQ2_S_R4"},  {223, "IQ4_XS_R8"},  {229, "IQ1_M_R4"},
    {230, "BF16_R16"},  {233, "Q6_0_R4"},    {335, "IQ2_BN_R4"}, {337, "IQ2_K_R4"},   {338, "IQ3_K_R4"},
    {339, "IQ4_K_R4"},  {340, "IQ5_K_R4"},   {344, "IQ4_KS_R4"}, {352, "IQ5_KS_R4"},  {353, "MXFP4_R8"},
};

template <size_t N>
const char* find(const OtherType (&types)[N], uint32_t ggml_type) {
  for (const OtherType& type : types) {
    if (type.ggml_type == ggml_type) return type.name;
  }
  return nullptr;
}

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (upper(a[i]) != upper(b[i])) return false;
  }
  return true;
}

}  // namespace

const FormatInfo& format_info(FormatId id) { return kInfos[static_cast<size_t>(id)]; }

std::span<const FormatId> all_formats() { return kIds; }

Result<FormatId> format_from_ggml(uint32_t ggml_type) {
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].ggml_type == ggml_type) return kIds[i];
  }
  if (const char* name = find(kRemoved, ggml_type)) {
    return fail(ErrorCode::kUnsupported, "tensor type {} ({}) was removed from GGUF; convert the model again",
                ggml_type, name);
  }
  if (const char* name = find(kActivations, ggml_type)) {
    return fail(ErrorCode::kUnsupported, "tensor type {} ({}) is for activations, not for weights; the file is damaged",
                ggml_type, name);
  }
  if (const char* name = find(kIkOnly, ggml_type)) {
    return fail(ErrorCode::kUnsupported,
                "tensor type {} ({}) exists only in ik_llama.cpp; use a file quantized with mainline types", ggml_type,
                name);
  }
  return fail(ErrorCode::kUnsupported, "tensor type {} is unknown; the file is damaged or newer than this build",
              ggml_type);
}

Result<FormatId> format_from_name(std::string_view name) {
  std::string known;
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (same_name(kInfos[i].name, name)) return kIds[i];
    known += i ? ", " : "";
    known += kInfos[i].name;
  }
  return fail(ErrorCode::kUsage, "unknown format {}; known are {}", name, known);
}

size_t row_bytes(FormatId id, int64_t n) {
  const FormatInfo& info = format_info(id);
  HEARTH_CHECK(n >= 0 && n % info.block_elems == 0, "{} elements in blocks of {} ({})", n, info.block_elems, info.name);
  size_t bytes;
  bool overflow = __builtin_mul_overflow(static_cast<size_t>(n / info.block_elems), info.block_bytes, &bytes);
  HEARTH_CHECK(!overflow, "{} elements of {}", n, info.name);
  return bytes;
}

void decode_row(FormatId id, const std::byte* row, std::span<float> out) {
  with_format(id, [&]<class F>() {
    constexpr size_t kElems = F::kInfo.block_elems;
    HEARTH_CHECK(out.size() % kElems == 0, "{} elements in blocks of {} ({})", out.size(), kElems, F::kInfo.name);
    auto* blocks = reinterpret_cast<const typename F::Block*>(row);  // alignment 1, trivially copyable
    for (size_t i = 0; i < out.size() / kElems; ++i) F::decode(blocks[i], out.subspan(i * kElems).first<kElems>());
  });
}

}  // namespace hearth
