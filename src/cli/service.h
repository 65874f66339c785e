// What a service manager is told that waits for it, such as systemd for a unit of Type=notify.
#pragma once

#include <string_view>

namespace hearth::cli {

// Sends the state as sd_notify(3) does: "READY=1", "WATCHDOG=1", "STOPPING=1". Nothing happens when nobody waits for
// it, or does not take it.
void notify_service(std::string_view state);

}  // namespace hearth::cli
