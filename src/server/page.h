// The chat page, built into the program: page.cpp has it, page_absent.cpp says how to get it.
#pragma once

#include <string_view>

namespace hearth::server {

std::string_view chat_page();

}  // namespace hearth::server
