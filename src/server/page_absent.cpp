#include "server/page.h"

namespace hearth::server {

std::string_view chat_page() {
  return R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Hearth</title>
<p>Hearth is running. This build has no chat page: <code>./dev web</code> makes it, <code>./dev build</code> puts it in.
<p>The OpenAI protocol is at <code>/v1</code>: chat clients want this address with <code>/v1</code> behind it.
</html>
)";
}

}  // namespace hearth::server
