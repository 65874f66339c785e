#include "server/page.h"

// The assembler copies the file as it is; HEARTH_PAGE is its path.
asm(".section .rodata\n"
    ".global hearth_page_begin, hearth_page_end\n"
    "hearth_page_begin:\n"
    ".incbin \"" HEARTH_PAGE
    "\"\n"
    "hearth_page_end:\n"
    ".byte 0\n"
    ".section .text\n");

extern "C" const char hearth_page_begin[], hearth_page_end[];

namespace hearth::server {

std::string_view chat_page() { return {hearth_page_begin, static_cast<size_t>(hearth_page_end - hearth_page_begin)}; }

}  // namespace hearth::server
