// hearth: runs the language model you want on the machine you have.
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/settings.h"
#include "hearth/version.h"

static int run(int argc, char** argv) {
  using namespace hearth::cli;
  if (auto ok = load_config(); !ok) {
    fmt::print(stderr, "hearth: {}\n", ok.error().message);
    return exit_code(ok.error());
  }
  CLI::App app("Runs the language model you want on the machine you have.", "hearth");
  app.require_subcommand(1);
  app.set_version_flag("--version", HEARTH_VERSION);
  app.footer(
      "Every flag can be set by HEARTH_<NAME> in the environment or by name = value in "
      "$XDG_CONFIG_HOME/hearth/config;\n"
      "flags win over the environment, the environment over the file. `hearth COMMAND --help` lists a command's "
      "flags.");
  int code = 0;
  add_chat(app, code);
  add_run(app, code);
  add_inspect(app, code);
  add_tokenize(app, code);
  add_render(app, code);
  add_bench(app, code);
  add_eval(app, code);
  add_synth(app, code);
  add_completions(app, code);
  add_version(app, code);
  if (auto ok = check_config(app); !ok) {
    fmt::print(stderr, "hearth: {}\n", ok.error().message);
    return exit_code(ok.error());
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "hearth: {}; see `hearth {}--help`\n", error.what(),
               app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ");
    return 2;
  }
  // Output that was lost is a failure, even when the command itself went well.
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::fputs("hearth: cannot write the output: the other end is full or closed\n", stderr);
    if (code == 0) code = 1;
  }
  return code;
}

int main(int argc, char** argv) {
  hearth::exit_when_files_shrink();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // fmt throws when a stream is full or closed
    std::fprintf(stderr, "hearth: %s\n", error.what());
    return 1;
  }
}
