// The configuration file and the environment as defaults of flags: flag > HEARTH_<NAME> > file.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "base/result.h"

namespace hearth::cli {

// Reads name = value lines (INI or TOML) from $HEARTH_CONFIG, else $XDG_CONFIG_HOME/hearth/config, else
// ~/.config/hearth/config, if there is one, and puts them into the environment where it says nothing. Fails with kUsage
// on a broken file.
Result<void> load_config();
// Fails with kUsage when the file set a name that no command has as a flag.
Result<void> check_config(const CLI::App& app);

// Ties an option to its environment variable: "--top-k" to HEARTH_TOP_K.
CLI::Option* with_environment(CLI::Option* option);

// $XDG_<kind>_HOME/hearth or its default below $HOME; the folder is made. kind: "CONFIG", "STATE", "CACHE".
Result<std::string> user_folder(std::string_view kind);

}  // namespace hearth::cli
