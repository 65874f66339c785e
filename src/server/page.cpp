#include "server/page.h"

// The assembler copies the file as it is; HEARTH_PAGE is its path in quotes.
asm(R"(
  .section .rodata
  .global hearth_page_begin, hearth_page_end
hearth_page_begin:
  .incbin )" HEARTH_PAGE R"(
hearth_page_end:
  .byte 0
  .section .text
)");

extern "C" const char hearth_page_begin[], hearth_page_end[];

namespace hearth::server {

std::string_view chat_page() { return {hearth_page_begin, static_cast<size_t>(hearth_page_end - hearth_page_begin)}; }

}  // namespace hearth::server
