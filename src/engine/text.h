// The text side of a model file: its tokenizer and chat template behind the public interface.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "files/metadata.h"
#include "hearth/text.h"

namespace hearth {

// `chat_template`: source that replaces the file's; empty: the file's. A template of the file that does not parse is a
// warning, and an error of render(); one that the user gave is an error here.
Result<std::unique_ptr<const Text>> make_text(const Metadata& metadata, const std::string& chat_template);

}  // namespace hearth
