// HTTP/1.1 on one connection: requests in, responses out, whole or streamed, with limits and deadlines on everything.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/errors.h"

namespace hearth::server {

struct HttpLimits {
  size_t header_bytes = size_t{64} << 10;
  size_t body_bytes = size_t{64} << 20;
  size_t all_body_bytes = size_t{256} << 20;  // of the requests of all connections that are read or answered
  double idle_seconds = 75;                   // between requests
  double header_seconds = 10;                 // from the first byte of a request to the end of its headers
  double body_seconds = 30;                   // for a body, and one more for each 16 KiB of it
  double write_seconds = 30;                  // until the client takes what is sent
  double keepalive_seconds = 10;              // of silence, after which an answer that is streamed says something
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path;   // decoded, without the query
  std::string query;  // as sent, without the question mark
  Headers headers;
  std::string body;
  bool http_1_0 = false;
  bool keep_alive = true;

  // Of the first header with this name, whatever its case; "" without one.
  std::string_view header(std::string_view name) const;
  bool has_header(std::string_view name) const;
};

// A socket that waits at most until a deadline. Owns the descriptor.
class Socket {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Socket(int fd);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  enum class Read : uint8_t { kData, kClosed, kTimeout };
  // Appends what there is, up to 64 KiB.
  Read read(std::string& into, Clock::time_point deadline);
  // All of it; false when the peer is gone or does not take it in time.
  bool write(std::string_view bytes, Clock::time_point deadline);
  // The peer has closed its end, or the connection broke. A peer that closes only its sending side counts as gone: the
  // two cannot be told apart without sending, and no client of a model waits for an answer like that.
  bool peer_gone() const;
  // Says that nothing more is sent and waits a little for the peer to read it: closing at once, with bytes of the peer
  // unread, would take what was sent back.
  void finish_sending();
  // Makes a read that waits return kClosed. Safe from other threads.
  void stop_reading();

 private:
  int fd_;
};

// Waits for poll() events on a descriptor; false when the time is over.
bool wait_for(int fd, short events, Socket::Clock::time_point deadline);
Socket::Clock::duration seconds(double s);

// The requests of one connection.
class Connection {
 public:
  // `body_bytes`: held by all connections; shared between them, and outlives this one.
  Connection(int fd, const HttpLimits& limits, std::atomic<size_t>& body_bytes)
      : socket_(fd), limits_(limits), all_body_bytes_(body_bytes) {}
  ~Connection() { all_body_bytes_ -= own_body_bytes_; }

  enum class Outcome : uint8_t { kRequest, kClosed, kRefused };
  // Of a request whose body is not read: may it go on?
  using Admit = std::function<Answer<void>(const HttpRequest&)>;
  // Blocks for the next request; the body of the last is given up. kRefused: it was malformed, too large, too slow or
  // not admitted; `error` says so, and the connection cannot go on after the answer. A request that came as a whole is
  // admitted by whoever answers it.
  Outcome read(HttpRequest& request, ApiError& error, const Admit& admit = {});

  Socket& socket() { return socket_; }
  const HttpLimits& limits() const { return limits_; }
  // Waits for a request whose first byte has not come.
  bool idle() const { return idle_; }

 private:
  Socket socket_;
  HttpLimits limits_;
  std::string received_;  // what was read beyond the last request
  std::atomic<size_t>& all_body_bytes_;
  size_t own_body_bytes_ = 0;  // of them
  std::atomic<bool> idle_ = true;
};

// One request and the way to answer it. The answer is either respond(), or begin(), any number of write(), end().
class Exchange {
 public:
  using Log = std::function<void(const Exchange& exchange, std::string_view fields)>;
  // `abandoned`: set when running answers are to end. `log`: takes lines about a request that is not done yet.
  Exchange(Connection& connection, const HttpRequest& request, const std::atomic<bool>& abandoned, Log log = {});

  const HttpRequest& request() const { return request_; }
  const HttpLimits& limits() const { return connection_.limits(); }
  const std::string& id() const { return id_; }

  // A header of the answer, before it starts.
  void header(std::string name, std::string value);
  void respond(int status, std::string_view content_type, std::string_view body);
  // Sends status and headers at once. What write() is given follows in pieces as it is given.
  void begin(int status, std::string_view content_type);
  void write(std::string_view bytes);
  void end();

  bool started() const { return status_ != 0; }
  int status() const { return status_; }
  // Nobody is there to take the answer, or nobody is to get it any longer.
  bool gone();
  // Since something was last sent.
  double quiet_seconds() const;
  // The connection can take another request.
  bool reusable() const { return ended_ && keep_alive_ && !failed_; }
  void close_after() { keep_alive_ = false; }

  // Fields of the request's line in the log: " name=value".
  template <class T>
  void note(std::string_view name, const T& value) {
    fmt::format_to(std::back_inserter(notes_), " {}={}", name, value);
  }
  // The same for text that may have anything in it: in quotes, with the escapes of JSON, its first 200 bytes.
  void note_text(std::string_view name, std::string_view text);
  const std::string& notes() const { return notes_; }
  // A line of its own, now, about what is going on: "name=value ...".
  void log(std::string_view fields) const {
    if (log_) log_(*this, fields);
  }

 private:
  void send(std::string_view bytes);
  std::string head(int status, std::string_view content_type) const;

  Connection& connection_;
  const HttpRequest& request_;
  const std::atomic<bool>& abandoned_;
  const Log log_;
  std::string id_;
  Headers headers_;
  std::string notes_;
  Socket::Clock::time_point last_sent_;
  int status_ = 0;
  bool chunked_ = false;
  bool ended_ = false;
  bool failed_ = false;
  bool keep_alive_;
};

// "a%20b" -> "a b"; nullopt for broken escapes.
std::optional<std::string> percent_decoded(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace hearth::server
