// hearth version
#include "hearth/version.h"
#include "cli/command.h"

namespace hearth::cli {

void add_version(CLI::App& app, int& exit_code) {
  add_command(app, "version", "Show the version", exit_code, []() -> Result<void> {
    fmt::print("hearth {}\n", HEARTH_VERSION);
    return {};
  });
}

}  // namespace hearth::cli
