// hearth inspect: what a model file contains.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

#include "cli/command.h"
#include "files/gguf.h"
#include "quant/format.h"

namespace hearth::cli {
namespace {

struct InspectFlags {
  std::string file;
  bool tensors = false;
  bool json = false;
};

// Long arrays and texts are cut in listings; their length is what matters.
std::string value_text(const MetadataValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          nlohmann::json quoted = v.size() > 100 ? v.substr(0, 100) : v;
          std::string text = quoted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
          return v.size() > 100 ? fmt::format("{} ... ({} bytes)", text, v.size()) : text;
        } else if constexpr (requires { v.begin(); }) {
          std::string text = "[";
          for (size_t i = 0; i < std::min<size_t>(v.size(), 6); ++i) {
            nlohmann::json entry = v[i];
            text += (i ? ", " : "") + entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
          }
          return text + (v.size() > 6 ? fmt::format(", ... ({} entries)]", v.size()) : "]");
        } else {
          return fmt::format("{}", v);
        }
      },
      value);
}

Result<void> inspect(const InspectFlags& flags) {
  HEARTH_ASSIGN(Catalog catalog, open_gguf(flags.file));
  std::map<std::string_view, std::pair<int64_t, size_t>> by_format;  // tensors, bytes
  int64_t parameters = 0;
  for (const TensorEntry& tensor : catalog.tensors()) {
    auto& [count, bytes] = by_format[format_info(tensor.format).name];
    ++count;
    bytes += tensor.bytes.size();
    parameters += tensor.elements();
  }
  if (flags.json) {
    using nlohmann::ordered_json;
    ordered_json document = {{"files", catalog.paths()},
                             {"parameters", parameters},
                             {"bytes", catalog.total_bytes()},
                             {"metadata", ordered_json::object()},
                             {"tensors", ordered_json::array()}};
    for (const auto& [key, value] : catalog.metadata().values()) {
      std::visit([&](const auto& v) { document["metadata"][key] = v; }, value);
    }
    for (const TensorEntry& tensor : catalog.tensors()) {
      document["tensors"].push_back({{"name", tensor.name},
                                     {"format", format_info(tensor.format).name},
                                     {"shape", tensor.shape},
                                     {"bytes", tensor.bytes.size()}});
    }
    print("{}\n", document.dump(1, ' ', false, ordered_json::error_handler_t::replace));
    return {};
  }
  for (const std::string& path : catalog.paths()) print("{}\n", path);
  print("{} tensors, {} parameters, {}\n", catalog.tensors().size(), parameters,
        bytes_text(static_cast<double>(catalog.total_bytes())));
  for (const auto& [name, sum] : by_format) {
    print("  {:<8} {:>5} tensors {:>12}\n", name, sum.first, bytes_text(static_cast<double>(sum.second)));
  }
  print("\nmetadata\n");
  for (const auto& [key, value] : catalog.metadata().values()) print("  {} = {}\n", key, value_text(value));
  if (!flags.tensors) {
    print("\n--tensors lists the tensors\n");
    return {};
  }
  print("\ntensors\n");
  for (const TensorEntry& tensor : catalog.tensors()) {
    print("  {:<32} {:<8} {:<20} {:>12}\n", tensor.name, format_info(tensor.format).name, shape_text(tensor.shape),
          bytes_text(static_cast<double>(tensor.bytes.size())));
  }
  return {};
}

}  // namespace

void add_inspect(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command =
      add_command(app, "inspect", "Show what a model file contains", chosen, [flags] { return inspect(*flags); });
  command->add_option("FILE", flags->file, "A GGUF file (any part of a split one)")->required();
  command->add_flag("--tensors", flags->tensors, "List every tensor");
  command->add_flag("--json", flags->json, "Print everything as JSON");
}

}  // namespace hearth::cli
