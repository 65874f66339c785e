#include "models/builder.h"
#include "models/family.h"

namespace hearth {

static constexpr Family kFamilies[] = {
    {"llama", build_llama},
    {"mistral", build_llama},  // llama with a sliding window
    {"qwen2", build_qwen2},
    {"qwen3", build_qwen3},
};

std::span<const Family> all_families() { return kFamilies; }

Result<ModelGraph> build_graph(const Catalog& catalog) {
  HEARTH_ASSIGN(std::string_view architecture, catalog.metadata().string("general.architecture"));
  for (const Family& family : kFamilies) {
    if (family.architecture != architecture) continue;
    GraphBuilder builder(catalog, architecture);
    if (auto ok = family.build(builder); !ok) {
      return std::move(ok).error().with_context(fmt::format("build the {} model", architecture));
    }
    return std::move(builder).finish();
  }
  std::string known;
  for (const Family& family : kFamilies) known.append(known.empty() ? "" : ", ").append(family.architecture);
  return fail(ErrorCode::kUnsupported, "cannot run the architecture \"{}\"; this version runs {}", architecture, known);
}

}  // namespace hearth
