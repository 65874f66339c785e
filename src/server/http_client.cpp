#include "server/http_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "server/json.h"

namespace hearth::server {

namespace beast = boost::beast;

// ---- addresses ----

std::string Url::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}{}", v6 ? "[" : "", host, v6 ? "]" : "", port, path);
}

Result<Url> parse_url(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kUsage, "\"{}\" is no address of a server: {}; one looks like http://127.0.0.1:8080", text,
                why);
  };
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://")) return refuse("https is not supported");
  if (!text.starts_with(kScheme)) return refuse("it does not begin with http://");
  const auto plain = [](char c) {
    return c > ' ' && c < 0x7F && std::string_view("?#@\\\"<>").find(c) == std::string::npos;
  };
  if (!std::ranges::all_of(text, plain)) return refuse("it holds characters that have no place there");
  std::string_view rest = text.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash), path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  while (path.ends_with('/')) path.remove_suffix(1);

  Url url{.path = std::string(path)};
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse("a bracket is not closed");
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (url.host.empty()) return refuse("it names no machine");
  if (!port.empty()) {
    const char* end = port.data() + port.size();
    const auto [read, error] = std::from_chars(port.data() + 1, end, url.port);
    if (port[0] != ':' || read != end || error != std::errc() || url.port == 0) {
      return refuse("its port is no number from 1 to 65535");
    }
  }
  return url;
}

// ---- client ----

namespace {

Result<std::unique_ptr<Socket>> connect_to(const Url& url, double limit_seconds) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(url.host.c_str(), fmt::format("{}", url.port).c_str(), &hints, &found);
      code != 0) {
    return fail(ErrorCode::kNotFound, "cannot connect to {}: {}", url.text(), ::gai_strerror(code));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  const auto deadline = Socket::Clock::now() + seconds(limit_seconds);
  int problem = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) {
      problem = errno;
      continue;
    }
    auto socket = std::make_unique<Socket>(fd);
    problem = ::connect(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (problem == EINPROGRESS) {
      problem = ETIMEDOUT;
      socklen_t size = sizeof problem;
      if (wait_for(fd, POLLOUT, deadline)) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size);
    }
    if (problem != 0) continue;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }
  return fail(ErrorCode::kNotFound, "cannot connect to {}: {}", url.text(), std::strerror(problem));
}

std::string text_of(const auto& view) { return std::string(view.data(), view.size()); }

}  // namespace

Result<HttpReply> HttpClient::exchange(std::string_view method, std::string_view path, std::string_view body,
                                       const Reader& reader) const {
  HEARTH_ASSIGN(const std::unique_ptr<Socket> socket, connect_to(url_, limits_.connect_seconds));
  const std::string origin = url_.text();
  const std::string_view host =
      std::string_view(origin).substr(7, origin.size() - 7 - url_.path.size());  // after "http://"
  std::string head = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: hearth\r\nConnection: close\r\n", method,
                                 url_.path, path, host);
  for (const auto& [name, value] : headers_) head += fmt::format("{}: {}\r\n", name, value);
  if (method == "POST") head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  head += "\r\n";
  const auto deadline = Socket::Clock::now() + seconds(limits_.idle_seconds);
  // A server may answer and close before it has taken all: what it says is then read all the same.
  const bool sent = socket->write(head, deadline) && socket->write(body, deadline);
  Result<HttpReply> reply = guarded("reading the answer of " + origin, [&] { return receive(*socket, reader); });
  if (!reply && !sent) return fail(ErrorCode::kIo, "{} did not take the request", origin);
  return reply;
}

Result<HttpReply> HttpClient::receive(Socket& socket, const Reader& reader) const {
  // A stream of tokens never comes near this, and what announces more is refused before memory is taken for it.
  constexpr uint64_t kMostStreamed = uint64_t{1} << 30;
  beast::http::response_parser<beast::http::string_body> parser;
  parser.eager(true);
  parser.header_limit(uint32_t{64} << 10);
  parser.body_limit(reader ? kMostStreamed : uint64_t{limits_.body_bytes});
  HttpReply reply;
  std::string received;
  bool more = true;
  const auto broken = [&](std::string_view why) {
    return fail(ErrorCode::kIo, "the answer of {} broke off: {}", url_.text(), why);
  };
  while (more && !parser.is_done()) {
    bool closed = false;
    switch (socket.read(received, Socket::Clock::now() + seconds(limits_.idle_seconds))) {
      case Socket::Read::kData:
        break;
      case Socket::Read::kClosed:
        closed = true;
        break;
      case Socket::Read::kTimeout:
        return broken(fmt::format("nothing came for {} s", limits_.idle_seconds));
    }
    beast::error_code ec;
    while (!received.empty() && !parser.is_done()) {
      const size_t used = parser.put(boost::asio::buffer(received), ec);
      received.erase(0, used);
      if (ec || used == 0) break;
    }
    if (closed && (!ec || ec == beast::http::error::need_more)) {
      if (!parser.got_some()) return broken("the connection was closed before it began");
      ec = {};
      parser.put_eof(ec);
      if (ec) return broken("the connection was closed in the middle of it");
    }
    if (ec && ec != beast::http::error::need_more) return broken(ec.message());
    if (!parser.is_header_done()) continue;
    if (reply.status == 0) {
      reply.status = static_cast<int>(parser.get().result_int());
      for (const auto& field : parser.get()) {
        reply.headers.emplace_back(text_of(field.name_string()), text_of(field.value()));
      }
    }
    std::string& body = parser.get().body();
    if (reader && reply.good()) {
      if (!body.empty()) more = reader(body);
    } else {
      reply.body += body;
      if (reply.body.size() > limits_.body_bytes)
        return broken(fmt::format("it has more than {} bytes", limits_.body_bytes));
    }
    body.clear();
  }
  return reply;
}

std::string error_text(const HttpReply& reply) {
  std::string text = reply.body;
  if (Answer<Json> json = parse_json(reply.body)) {
    const Json error = json->value("error", Json());
    const Json message = error.is_object() ? error.value("message", Json()) : error;
    if (message.is_string()) text = message.get<std::string>();
  }
  if (text.empty()) return fmt::format("status {}", reply.status);
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return fmt::format("status {}: {}", reply.status, text.substr(0, 500));
}

// ---- events ----

Result<void> EventReader::add(std::string_view piece,
                              const std::function<bool(std::string_view, std::string_view)>& take) {
  for (size_t end; (end = piece.find('\n')) != std::string_view::npos; piece.remove_prefix(end + 1)) {
    buffer_.append(piece.substr(0, end));
    std::string_view line = buffer_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto value_of = [&](std::string_view name) -> std::optional<std::string_view> {
      if (!line.starts_with(name)) return std::nullopt;
      return line.substr(name.size() + (line.substr(name.size()).starts_with(' ') ? 1 : 0));
    };
    bool go_on = true;
    if (line.empty()) {
      if (!data_.empty()) go_on = take(type_, data_);
      type_.clear();
      data_.clear();
    } else if (auto type = value_of("event:")) {
      type_ = *type;
    } else if (auto data = value_of("data:")) {
      if (!data_.empty()) data_ += '\n';
      data_ += *data;
    }  // else a comment, or a field that nobody here asks for
    buffer_.clear();
    if (!go_on) return {};
    if (data_.size() > kMaxEventBytes) break;
  }
  if (buffer_.size() + piece.size() > kMaxEventBytes || data_.size() > kMaxEventBytes) {
    return fail(ErrorCode::kInvalidInput, "an event of the stream has more than {} bytes", kMaxEventBytes);
  }
  buffer_ += piece;
  return {};
}

}  // namespace hearth::server
