#include "graph/passes.h"

#include <algorithm>

namespace hearth {

static constexpr Pass kPasses[] = {
    {"merge_linears", merge_linears},  // matrices that multiply the same value become one step
    {"fold_norm", fold_norm},          // a norm that only feeds matrices is done by their step
    {"fold_glu", fold_glu},            // act(gate) * up is done while gate and up are written
    {"fold_residual", fold_residual},  // the residual is added while a matrix writes its result
    {"fold_rope", fold_rope},          // head norms and rotation are done by attention
};

std::span<const Pass> all_passes() { return kPasses; }

Result<void> run_passes(Graph& graph, std::span<const std::string> disabled) {
  for (const std::string& name : disabled) {
    if (name == "all" || std::ranges::any_of(kPasses, [&](const Pass& p) { return p.name == name; })) continue;
    std::string known = "all";
    for (const Pass& pass : kPasses) known.append(", ").append(pass.name);
    return fail(ErrorCode::kUsage, "cannot disable the pass \"{}\": there is none; passes are {}", name, known);
  }
  auto is_disabled = [&](std::string_view name) {
    return std::ranges::any_of(disabled, [&](const std::string& d) { return d == "all" || d == name; });
  };
  HEARTH_TRY(verify(graph));
  for (const Pass& pass : kPasses) {
    if (is_disabled(pass.name)) continue;
    pass.run(graph);
    if (auto ok = verify(graph); !ok) return std::move(ok).error().with_context(pass.name);
  }
  return {};
}

}  // namespace hearth
