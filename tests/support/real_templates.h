// The chat templates that models ship.
#pragma once

#include <algorithm>
#include <filesystem>
#include <vector>

namespace hearth {

// The real templates, sorted by name; empty if they are not there.
inline std::vector<std::filesystem::path> real_templates() {
  std::vector<std::filesystem::path> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(HEARTH_SHARED_DATA "/templates", error)) {
    if (entry.path().extension() == ".jinja") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace hearth
