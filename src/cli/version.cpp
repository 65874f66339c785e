// hearth version
#include "hearth/version.h"
#include "cli/command.h"

namespace hearth::cli {

void add_version(CLI::App& app, Body& chosen) {
  add_command(app, "version", "Show the version", chosen, []() -> Result<void> {
    print("hearth {}\n", HEARTH_VERSION);
    return {};
  });
}

}  // namespace hearth::cli
