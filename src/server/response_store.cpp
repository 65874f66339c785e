#include "server/response_store.h"

#include <utility>

namespace hearth::server {

void ResponseStore::put(std::string id, StoredResponse response) {
  const size_t bytes = dump(response.response).size() + dump(response.input).size();
  auto shared = std::make_shared<const StoredResponse>(std::move(response));
  std::lock_guard lock(mutex_);
  while (!order_.empty() && (bytes_ + bytes > kMaxBytes || order_.size() >= kMaxResponses)) {
    drop(order_.front());
    order_.pop_front();
  }
  if (bytes > kMaxBytes) return;
  bytes_ += bytes;
  order_.push_back(id);
  entries_.emplace(std::move(id), Entry{.response = std::move(shared), .bytes = bytes});
}

std::shared_ptr<const StoredResponse> ResponseStore::get(std::string_view id) const {
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(std::string(id));
  return it == entries_.end() ? nullptr : it->second.response;
}

bool ResponseStore::erase(std::string_view id) {
  std::lock_guard lock(mutex_);
  if (!entries_.contains(std::string(id))) return false;
  drop(std::string(id));
  return true;
}

size_t ResponseStore::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

Json ResponseStore::item(std::string_view id) const {
  std::lock_guard lock(mutex_);
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    const auto entry = entries_.find(*it);
    if (entry == entries_.end()) continue;
    for (const Json& item : entry->second.response->response["output"]) {
      if (item["id"] == id) return item;
    }
  }
  return nullptr;
}

void ResponseStore::drop(const std::string& id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  bytes_ -= it->second.bytes;
  entries_.erase(it);
}

}  // namespace hearth::server
