// Responses that can be asked for again and that later ones can go on from.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server/json.h"

namespace hearth::server {

struct StoredResponse {
  Json response;  // as it was answered
  Json input;     // items that it was an answer to, those of previous responses included
};

// In memory, of bounded size: the oldest go first. Safe from any thread.
class ResponseStore {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;  // of JSON text; in memory it takes a few times as much
  static constexpr size_t kMaxResponses = 1000;

  void put(std::string id, StoredResponse response);
  std::shared_ptr<const StoredResponse> get(std::string_view id) const;
  bool erase(std::string_view id);
  size_t bytes() const;  // of JSON text
  // The item with this id that some response gave out; null: none has it.
  Json item(std::string_view id) const;

 private:
  struct Entry {
    std::shared_ptr<const StoredResponse> response;
    size_t bytes = 0;
  };
  void drop(const std::string& id);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  std::deque<std::string> order_;  // oldest first; may have ids that were erased
  size_t bytes_ = 0;
};

}  // namespace hearth::server
