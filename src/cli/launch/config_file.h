// Configuration files of other programs: changed in one place, all else kept.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "cli/launch/client.h"
#include "server/json.h"

namespace hearth::cli {

// The variable, or `below_home` under HOME when it is not set.
std::string folder_or(const char* variable, std::string_view below_home);

// "" when there is no such file.
Result<std::string> text_if_any(const std::string& path);

// A file of plain JSON, one object. JSON with comments and other extensions is refused, because writing it back would
// lose them: the message says what to add by hand, which is `addition`.
class JsonConfig {
 public:
  static Result<JsonConfig> open(const std::string& path, const server::Json& addition);

  server::Json root;

  // The member below these names; objects that are missing on the way are made.
  Result<server::Json*> at(std::initializer_list<std::string_view> names);
  // Indented as the file was.
  ConfigFile file() const;

 private:
  std::string path_;
  int indent_ = 2;
  char indent_char_ = ' ';
};

// The text of a TOML file with the block of this program at its beginning, in the place of an earlier one. The block
// must hold no table header, so that what follows means what it did.
Result<std::string> with_block(const std::string& path, std::string_view text, std::string_view block);

// A TOML string: its escapes are those of JSON.
std::string toml_string(std::string_view text);

// Writes the file and keeps what was there before: the first time as PATH.bak-hearth, which stays, later as
// PATH.bak-hearth.1 when it is something else than was kept last; older ones become .2 and .3 and go then. Says what it
// did on stderr. Nothing happens when the file holds this text already.
Result<void> write_config(const ConfigFile& file);

}  // namespace hearth::cli
