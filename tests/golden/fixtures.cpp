#include "fixtures.h"

#include <algorithm>
#include <filesystem>
#include <set>

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

// Fixtures that wait for their family.
static const std::set<std::string> kNoFamilyYet = {"qwen3moe"};

std::optional<Fixture> load_fixture(const std::string& name) {
  std::string base = std::string(HEARTH_TEST_DATA "/golden/") + name;
  auto catalog = open_gguf(base + ".gguf");
  HEARTH_CHECK(catalog, "{}", catalog.error().message);
  auto model = build_graph(*catalog);
  if (kNoFamilyYet.contains(name)) {
    HEARTH_CHECK(!model, "{} runs now: take it off the list", name);
    return std::nullopt;
  }
  HEARTH_CHECK(model, "{}", model.error().message);
  return Fixture{.catalog = std::move(*catalog), .model = std::move(*model), .golden = read_golden(base + ".bin")};
}

}  // namespace hearth::testing
