// The environment and the configuration file as defaults of flags: flag > HEARTH_<NAME> > file.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::cli {

// Gives flags of the parsed `command` that the command line left out the value of HEARTH_<NAME> ("--top-k":
// HEARTH_TOP_K), or else that of name = value (INI or TOML) in $HEARTH_CONFIG, $XDG_CONFIG_HOME/hearth/config or
// ~/.config/hearth/config. What a flag of the command line excludes is left out. Fails with kUsage on a broken file, on
// a name in it that no command of `app` has, and on a value that the command cannot use.
Result<void> apply_settings(CLI::App& app, CLI::App& command);

// $XDG_<kind>_HOME/hearth or its default below $HOME; the folder is made. kind: "CONFIG", "STATE", "CACHE".
Result<std::string> user_folder(std::string_view kind);

}  // namespace hearth::cli
