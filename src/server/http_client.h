// The other end of http.h: a blocking client for http:// servers whose answers are read as they arrive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http.h"

namespace hearth::server {

struct Url {
  std::string host;  // a name or an address, without brackets
  uint16_t port = 80;
  std::string path;  // "" or "/prefix", never with a slash at its end

  // "http://host:port/prefix"
  std::string text() const;
};

// Where a server is. Clients write the OpenAI base URL with or without "/v1"; here it goes without.
Result<Url> parse_url(std::string_view text);

struct HttpReply {
  int status = 0;
  Headers headers;
  std::string body;  // what was not given to a reader

  bool good() const { return status >= 200 && status < 300; }
};

struct ClientLimits {
  double connect_seconds = 5;
  double idle_seconds = 600;  // between two arrivals of bytes
  size_t body_bytes = size_t{64} << 20;
};

class HttpClient {
 public:
  // `headers` go with every request.
  HttpClient(Url url, Headers headers, ClientLimits limits = {})
      : url_(std::move(url)), headers_(std::move(headers)), limits_(limits) {}

  // Takes a stretch of a body; false: nothing more is wanted.
  using Reader = std::function<bool(std::string_view)>;

  // One request on a connection of its own. With a reader the body of a good answer goes there as it arrives. kNotFound
  // when nothing listens at the address, kIo when the exchange breaks or takes too long. Safe from several threads.
  Result<HttpReply> get(std::string_view path) const { return exchange("GET", path, "", {}); }
  Result<HttpReply> post(std::string_view path, std::string_view body, const Reader& reader = {}) const {
    return exchange("POST", path, body, reader);
  }

  const Url& url() const { return url_; }

 private:
  Result<HttpReply> exchange(std::string_view method, std::string_view path, std::string_view body,
                             const Reader& reader) const;
  Result<HttpReply> receive(Socket& socket, const Reader& reader) const;

  Url url_;
  Headers headers_;
  ClientLimits limits_;
};

// What went wrong, in the words of the server: the message of its JSON error, or the beginning of the body.
std::string error_text(const HttpReply& reply);

// Server-sent events out of the pieces of a body, cut anywhere.
class EventReader {
 public:
  static constexpr size_t kMaxEventBytes = size_t{16} << 20;

  // Calls `take(type, data)` for each event that is complete, until it returns false. kInvalidInput: the event is too
  // long.
  Result<void> add(std::string_view piece, const std::function<bool(std::string_view, std::string_view)>& take);
  // The body may end here.
  bool complete() const { return buffer_.empty() && data_.empty(); }

 private:
  std::string buffer_;  // a line that has begun
  std::string type_, data_;
};

}  // namespace hearth::server
