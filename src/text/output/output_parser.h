// Chooses the parser of a model's answers by its chat template.
#pragma once

#include <memory>
#include <string_view>

#include "hearth/output.h"

namespace hearth {

OutputMarkers detect_output_markers(std::string_view chat_template);
std::unique_ptr<OutputParser> make_output_parser(const OutputMarkers& markers, const OutputOptions& options);

}  // namespace hearth
