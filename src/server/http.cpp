// This file and http_client.cpp are the only ones that include Boost.Beast: its parser, not its sockets.
#include "server/http.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <ctime>

#include "server/chat.h"

namespace hearth::server {

namespace beast = boost::beast;

// ---- requests ----

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

bool HttpRequest::has_header(std::string_view name) const {
  return std::ranges::any_of(headers, [&](const auto& h) { return equal_ignoring_case(h.first, name); });
}

std::optional<std::string> percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0) return std::nullopt;
    out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return out;
}

// ---- socket ----

Socket::Socket(int fd) : fd_(fd) {}
Socket::~Socket() { ::close(fd_); }

Socket::Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Socket::Clock::duration>(std::chrono::duration<double>(s));
}

bool wait_for(int fd, short events, Socket::Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Socket::Clock::now()).count();
    pollfd wait{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the call that follows says what is wrong
    if (left <= 0) return false;
  }
}

Socket::Read Socket::read(std::string& into, Clock::time_point deadline) {
  char buffer[size_t{64} << 10];
  while (true) {
    if (!wait_for(fd_, POLLIN, deadline)) return Read::kTimeout;
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) {
      into.append(buffer, static_cast<size_t>(n));
      return Read::kData;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    return Read::kClosed;
  }
}

bool Socket::write(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd_, POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Socket::peer_gone() const {
  pollfd look{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

void Socket::finish_sending() {
  ::shutdown(fd_, SHUT_WR);
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(2);
  std::string unread;
  while (Clock::now() < deadline && read(unread, deadline) == Read::kData) unread.clear();
}

void Socket::stop_reading() { ::shutdown(fd_, SHUT_RD); }

// ---- connection ----

namespace {

using Parser = beast::http::request_parser<beast::http::string_body>;

std::string text_of(const auto& view) { return std::string(view.data(), view.size()); }

ApiError parse_error(const beast::error_code& ec, const HttpLimits& limits) {
  using E = beast::http::error;
  if (ec == E::header_limit) {
    return refuse(Refusal::kHeadersTooLarge, fmt::format("the headers have more than {} bytes", limits.header_bytes));
  }
  if (ec == E::body_limit) {
    return refuse(Refusal::kTooLarge, fmt::format("the body has more than {} bytes", limits.body_bytes));
  }
  return refuse(Refusal::kInvalid, fmt::format("the request is not valid HTTP/1.1: {}", ec.message()));
}

// "identity" is what no coding is called.
bool knows_codings(const Parser::value_type& message) {
  return std::ranges::all_of(message, [](const auto& field) {
    if (field.name() != beast::http::field::transfer_encoding) return true;
    const std::string coding = text_of(field.value());
    return equal_ignoring_case(coding, "chunked") || equal_ignoring_case(coding, "identity");
  });
}

Answer<void> take_request(const Parser::value_type& message, HttpRequest& request) {
  request = {};
  request.method = text_of(message.method_string());
  request.http_1_0 = message.version() == 10;
  request.keep_alive = message.keep_alive();
  for (const auto& field : message) request.headers.emplace_back(text_of(field.name_string()), text_of(field.value()));
  std::string target = text_of(message.target());
  for (std::string_view scheme : {"http://", "https://"}) {  // as sent to proxies
    if (!target.starts_with(scheme)) continue;
    const size_t slash = target.find('/', scheme.size());
    target = slash == std::string::npos ? "/" : target.substr(slash);
  }
  const size_t question = target.find('?');
  if (question != std::string::npos) request.query = target.substr(question + 1);
  std::optional<std::string> path = percent_decoded(std::string_view(target).substr(0, question));
  if (!path || (!path->starts_with('/') && *path != "*")) {
    return refuse(Refusal::kInvalid, "the request asks for a path that is none; it must begin with a slash");
  }
  request.path = *std::move(path);
  return {};
}

}  // namespace

Connection::Outcome Connection::read(HttpRequest& request, ApiError& error, const Admit& admit) {
  request = {};
  all_body_bytes_ -= std::exchange(own_body_bytes_, 0);
  Parser parser;
  const auto refused = [&](ApiError e) {
    error = std::move(e);
    request = {};
    all_body_bytes_ -= std::exchange(own_body_bytes_, 0);
    // Whose form the error has is known by the path.
    if (!parser.get().target().empty()) (void)take_request(parser.get(), request);
    return Outcome::kRefused;
  };
  parser.eager(true);
  parser.header_limit(static_cast<uint32_t>(limits_.header_bytes));
  parser.body_limit(limits_.body_bytes);
  bool admitted = false, continued = false, in_body = false;
  size_t body_received = 0;
  Socket::Clock::time_point body_start;
  idle_ = received_.empty();
  Socket::Clock::time_point deadline =
      Socket::Clock::now() + seconds(idle_ ? limits_.idle_seconds : limits_.header_seconds);
  while (true) {
    if (!received_.empty()) {
      beast::error_code ec;
      const size_t used = parser.put(boost::asio::buffer(received_), ec);
      received_.erase(0, used);
      if (parser.is_header_done() && !knows_codings(parser.get())) {
        return refused(refuse(Refusal::kUnsupported, "Transfer-Encoding: only chunked is known here"));
      }
      if (in_body) body_received += used;
      if (ec && ec != beast::http::error::need_more) return refused(parse_error(ec, limits_));
      if (parser.is_header_done() && !parser.is_done() && !admitted && admit) {
        admitted = true;
        if (auto ok = take_request(parser.get(), request); !ok) return refused(std::move(ok).error());
        if (auto ok = admit(request); !ok) return refused(std::move(ok).error());
      }
      const size_t more = parser.get().body().size() - own_body_bytes_;
      own_body_bytes_ += more;
      if (more > 0 && all_body_bytes_.fetch_add(more) + more > limits_.all_body_bytes) {
        ApiError full = refuse(Refusal::kOverloaded,
                               fmt::format("the requests that the server has in hand are {} MiB, more than it takes at "
                                           "a time; try again later",
                                           limits_.all_body_bytes >> 20));
        full.retry_seconds = 5;
        return refused(std::move(full));
      }
      if (parser.is_done()) break;
      // With what is left of it in hand, the parser may go on at once.
      if (!ec && used > 0 && !received_.empty()) continue;
    }
    if (parser.is_header_done() && !in_body) {
      in_body = true;
      body_start = Socket::Clock::now();
    }
    if (in_body) {
      deadline = body_start + seconds(limits_.body_seconds + static_cast<double>(body_received) / (size_t{16} << 10));
      if (!continued && equal_ignoring_case(text_of(parser.get()[beast::http::field::expect]), "100-continue")) {
        socket_.write("HTTP/1.1 100 Continue\r\n\r\n", Socket::Clock::now() + seconds(limits_.write_seconds));
      }
      continued = true;
    }
    switch (socket_.read(received_, deadline)) {
      case Socket::Read::kClosed:
        return Outcome::kClosed;
      case Socket::Read::kTimeout:
        if (idle_) return Outcome::kClosed;
        return refused(refuse(Refusal::kTimeout, "the request did not arrive in time"));
      case Socket::Read::kData:
        if (idle_) {
          idle_ = false;
          deadline = Socket::Clock::now() + seconds(limits_.header_seconds);
        }
    }
  }
  Parser::value_type message = parser.release();
  if (auto ok = take_request(message, request); !ok) {
    error = std::move(ok).error();
    return Outcome::kRefused;
  }
  request.body = std::move(message.body());
  return Outcome::kRequest;
}

// ---- exchange ----

Exchange::Exchange(Connection& connection, const HttpRequest& request, const std::atomic<bool>& abandoned, Log log)
    : connection_(connection),
      request_(request),
      abandoned_(abandoned),
      log_(std::move(log)),
      id_(random_id("req_")),
      last_sent_(Socket::Clock::now()),
      keep_alive_(request.keep_alive) {}

void Exchange::note_text(std::string_view name, std::string_view text) {
  note(name, dump(Json(std::string(text.substr(0, 200)))));
}

void Exchange::header(std::string name, std::string value) { headers_.emplace_back(std::move(name), std::move(value)); }

std::string Exchange::head(int status, std::string_view content_type) const {
  const auto reason = beast::http::obsolete_reason(static_cast<beast::http::status>(status));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", status, text_of(reason));
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char date[64];
  const size_t length = std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  text += fmt::format("Date: {}\r\nServer: hearth\r\nX-Request-Id: {}\r\n", std::string_view(date, length), id_);
  if (!content_type.empty()) text += fmt::format("Content-Type: {}\r\n", content_type);
  for (const auto& [name, value] : headers_) text += fmt::format("{}: {}\r\n", name, value);
  text += keep_alive_ ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  return text;
}

void Exchange::send(std::string_view bytes) {
  if (failed_) return;
  last_sent_ = Socket::Clock::now();
  if (!connection_.socket().write(bytes, last_sent_ + seconds(connection_.limits().write_seconds))) failed_ = true;
}

void Exchange::respond(int status, std::string_view content_type, std::string_view body) {
  status_ = status;
  std::string text = head(status, content_type);
  if (status != 204) text += fmt::format("Content-Length: {}\r\n", body.size());
  text += "\r\n";
  if (request_.method != "HEAD") text += body;
  send(text);
  ended_ = true;
}

void Exchange::begin(int status, std::string_view content_type) {
  status_ = status;
  chunked_ = !request_.http_1_0;
  if (!chunked_) keep_alive_ = false;
  std::string text = head(status, content_type);
  if (chunked_) text += "Transfer-Encoding: chunked\r\n";
  send(text + "\r\n");
}

void Exchange::write(std::string_view bytes) {
  if (bytes.empty()) return;  // an empty piece would end the answer
  send(chunked_ ? fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes) : std::string(bytes));
}

void Exchange::end() {
  if (chunked_) send("0\r\n\r\n");
  ended_ = true;
}

bool Exchange::gone() { return failed_ || abandoned_ || connection_.socket().peer_gone(); }

double Exchange::quiet_seconds() const {
  return std::chrono::duration<double>(Socket::Clock::now() - last_sent_).count();
}

}  // namespace hearth::server
