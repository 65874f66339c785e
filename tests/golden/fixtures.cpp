#include "fixtures.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"

namespace hearth::testing {

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HEARTH_TEST_DATA "/golden")) {
    if (entry.path().extension() == ".gguf") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::optional<Fixture> load_fixture(const std::string& name) {
  std::string base = std::string(HEARTH_TEST_DATA "/golden/") + name;
  auto catalog = open_gguf(base + ".gguf");
  HEARTH_CHECK(catalog, "{}", catalog.error().message);
  auto model = build_graph(*catalog);
  if (!model && model.error().code == ErrorCode::kUnsupported) return std::nullopt;
  HEARTH_CHECK(model, "{}", model.error().message);
  return Fixture{.catalog = std::move(*catalog), .model = std::move(*model), .golden = read_golden(base + ".bin")};
}

}  // namespace hearth::testing
