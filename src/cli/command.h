// What every command of `hearth` shares: registration, exit codes, where text goes.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <span>
#include <string>

#include "base/result.h"

namespace hearth::cli {

// Text that was asked for goes to stdout; progress, notes, statistics and errors go to stderr.

// 2 for kUsage, 1 for every other error.
int exit_code(const Error& error);

// Adds a subcommand whose body runs after parsing. A failed body prints one line and sets the exit code.
CLI::App* add_command(CLI::App& app, std::string name, std::string what, int& exit_code,
                      std::function<Result<void>()> body);

// One function per command, each in its own file.
void add_run(CLI::App& app, int& exit_code);
void add_chat(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_render(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_synth(CLI::App& app, int& exit_code);
void add_completions(CLI::App& app, int& exit_code);
void add_version(CLI::App& app, int& exit_code);

// The whole of a file, or of stdin for "-". At most 256 MiB.
Result<std::string> read_text(const std::string& path);
// Replaces the file atomically.
Result<void> write_text(const std::string& path, std::string_view text);

// True when the stream is a terminal.
bool is_terminal(int fd);

// "1.2 GiB"
std::string bytes_text(double bytes);

}  // namespace hearth::cli
