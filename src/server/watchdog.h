// Tells whoever runs the server when the engine of a model stalls, and when it goes on.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "server/models.h"

namespace hearth::server {

class Watchdog {
 public:
  Watchdog(const Models& models, std::function<void(const std::string&)> tell)
      : models_(models), tell_(std::move(tell)) {}

  // To be called about once a second. False while an engine stalls.
  bool look();

 private:
  const Models& models_;
  std::function<void(const std::string&)> tell_;
  std::map<std::string, std::chrono::steady_clock::time_point> stalled_since_;  // by the id of the model
};

}  // namespace hearth::server
