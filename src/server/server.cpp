#include "server/server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>

#include "server/json.h"

namespace hearth::server {
namespace {

// Connections beyond the limit that are told so in the form of what they ask for; others are closed.
constexpr int64_t kMostTurnedAway = 64;
constexpr double kTurnAwaySeconds = 2;  // to say what they ask for

ApiError too_many_connections() {
  ApiError error = refuse(Refusal::kOverloaded, "too many connections; try again later");
  error.retry_seconds = 2;
  return error;
}

bool is_loopback_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
  }
  if (address->sa_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
  }
  return false;
}

// "[::1]:8080" -> "::1", "localhost:80" -> "localhost"; "" for what is no host with or without a port.
std::string_view host_name(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  if (!bracketed && std::ranges::count(host, ':') > 1) return host;
  const size_t end = host.find(bracketed ? ']' : ':');
  if (end == std::string_view::npos) return bracketed ? "" : host;
  const std::string_view rest = host.substr(bracketed ? end + 1 : end);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!rest.empty() && (rest[0] != ':' || rest.size() > 6 || !std::ranges::all_of(rest.substr(1), digit))) return "";
  return bracketed ? host.substr(1, end - 1) : host.substr(0, end);
}

bool is_loopback_name(std::string_view name) {
  if (equal_ignoring_case(name, "localhost") || name == "::1") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, std::string(name).c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

// What browsers ask before a page's request goes out.
bool is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && !request.header("Origin").empty();
}

// Takes as long for a wrong key as for the right one, whatever they have in common.
bool same_key(std::string_view given, std::string_view key) {
  size_t difference = given.size() ^ key.size();
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
  }
  return difference == 0;
}

}  // namespace

Server::Server(ServerOptions options) : options_(std::move(options)) { std::erase(options_.api_keys, ""); }

Server::~Server() {
  drain(0);
  constexpr double kForever = 1e9;
  stop(kForever);
}

void Server::set_error_form(std::string prefix, ErrorForm form) {
  error_forms_.emplace_back(std::move(prefix), form);
  std::ranges::stable_sort(error_forms_, std::ranges::greater{}, [](const auto& f) { return f.first.size(); });
}

// ---- listening ----

Result<void> Server::start() {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const std::string host(host_name(options_.host));
  if (int error = ::getaddrinfo(host.c_str(), std::to_string(options_.port).c_str(), &hints, &found); error != 0) {
    return fail(ErrorCode::kUsage, "cannot listen on {}: {}; --host takes an address or a name of this machine",
                options_.host, gai_strerror(error));
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  port_ = options_.port;
  loopback_ = true;
  int problem = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      problem = errno;
      continue;
    }
    const int on = 1, off = 0;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) {
      // "::" is every address; others must not take the port of IPv4 away.
      const bool every = IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(a->ai_addr)->sin6_addr) != 0;
      ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, every ? &off : &on, sizeof on);
    }
    // The second address of a name gets the port that was free for the first.
    auto* port = a->ai_family == AF_INET6 ? &reinterpret_cast<sockaddr_in6*>(a->ai_addr)->sin6_port
                                          : &reinterpret_cast<sockaddr_in*>(a->ai_addr)->sin_port;
    *port = htons(port_);
    if (::bind(fd, a->ai_addr, a->ai_addrlen) != 0 || ::listen(fd, 128) != 0) {
      problem = errno;
      ::close(fd);
      continue;
    }
    if (port_ == 0) {
      sockaddr_storage bound{};
      socklen_t length = sizeof bound;
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
      port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                : reinterpret_cast<sockaddr_in&>(bound).sin_port);
    }
    loopback_ = loopback_ && is_loopback_address(a->ai_addr);
    listeners_.push_back(fd);
  }
  if (listeners_.empty()) {
    if (problem == EADDRINUSE) {
      return fail(ErrorCode::kUsage,
                  "cannot listen on {} port {}: another program has it; --port takes another one, 0 any that is free",
                  options_.host, options_.port);
    }
    return fail(ErrorCode::kUsage, "cannot listen on {} port {}: {}", options_.host, options_.port,
                std::strerror(problem));
  }
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return fail(ErrorCode::kIo, "cannot make an event descriptor: {}", std::strerror(errno));
  acceptor_ = std::thread([this] { accept_loop(); });
  return {};
}

std::string Server::url() const {
  const std::string host(host_name(options_.host));
  return fmt::format("http://{}:{}", host.find(':') != std::string::npos ? "[" + host + "]" : host, port_);
}

void Server::accept_loop() {
  std::vector<pollfd> waits;
  for (int fd : listeners_) waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  waits.push_back({.fd = wake_, .events = POLLIN, .revents = 0});
  while (!draining_) {
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    for (size_t i = 0; i + 1 < waits.size(); ++i) {
      if (waits[i].revents != 0 && !draining_) accept_one(waits[i].fd);
    }
  }
  for (int fd : listeners_) ::close(fd);
  listeners_.clear();
}

void Server::accept_one(int listener) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    // Out of descriptors: the connection stays in the queue of the system until one is free.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return;
  }
  const auto set = [&](int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A peer that vanished without a word is noticed within about a minute.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);

  std::unique_lock lock(mutex_);
  const bool crowded = std::ssize(clients_) >= options_.max_connections;
  if (std::ssize(clients_) >= options_.max_connections + kMostTurnedAway) {
    lock.unlock();
    ::close(fd);
    return;
  }
  HttpLimits limits = options_.limits;
  if (crowded) limits.idle_seconds = limits.header_seconds = std::min(limits.header_seconds, kTurnAwaySeconds);
  const auto client = clients_.emplace(clients_.end(), fd, limits, body_bytes_);
  lock.unlock();
  const auto leave = [this, client] {
    std::lock_guard guard(mutex_);
    clients_.erase(client);
    left_.notify_all();
  };
  auto started = guarded("start a thread", [&]() -> Result<void> {
    std::thread([this, client, leave, crowded] {
      serve(client->connection, crowded);
      leave();
    }).detach();
    return {};
  });
  if (!started) leave();
}

bool Server::drain(double seconds) {
  if (!draining_.exchange(true) && acceptor_.joinable()) {
    [[maybe_unused]] int ok = ::eventfd_write(wake_, 1);
    acceptor_.join();
  }
  using Clock = std::chrono::steady_clock;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::unique_lock lock(mutex_);
  while (!clients_.empty()) {
    for (Client& client : clients_) {  // again and again: one may have become idle just now
      if (client.connection.idle()) client.connection.socket().stop_reading();
    }
    if (Clock::now() >= deadline) return false;
    left_.wait_until(lock, std::min(deadline, Clock::now() + std::chrono::milliseconds(50)));
  }
  return true;
}

bool Server::stop(double seconds) {
  abandoned_ = true;
  std::unique_lock lock(mutex_);
  for (Client& client : clients_) client.connection.socket().stop_reading();
  if (!left_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return clients_.empty(); })) return false;
  if (wake_ >= 0) ::close(std::exchange(wake_, -1));
  return true;
}

int64_t Server::connections() const {
  std::lock_guard lock(mutex_);
  return std::ssize(clients_);
}

// ---- requests ----

void Server::serve(Connection& connection, bool crowded) {
  HttpRequest request;
  const auto admit_body = [&](const HttpRequest& head) -> Answer<void> {
    HEARTH_TRY(admit(head));
    if (crowded) return too_many_connections();
    return {};
  };
  while (!draining_) {
    ApiError error;
    const Connection::Outcome outcome = connection.read(request, error, admit_body);
    if (outcome == Connection::Outcome::kClosed) return;
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    Exchange exchange(connection, request, abandoned_, [&](const Exchange& e, std::string_view fields) {
      log_line(e, fmt::format("seconds={:.3f} {}", seconds(), fields));
    });
    const std::string_view origin = request.header("Origin");
    if (!origin.empty() && allowed_origin(request)) {
      exchange.header("Access-Control-Allow-Origin", std::string(origin));
      exchange.header("Vary", "Origin");
    }
    if (draining_ || crowded) exchange.close_after();
    if (outcome == Connection::Outcome::kRefused) {
      exchange.close_after();
      refuse_with(exchange, error);
    } else {
      std::optional<ApiError> failed;
      auto guard = guarded("answer a request", [&]() -> Result<void> {
        auto ok = crowded && !is_open(request) ? admit_body(request) : answer(exchange);
        if (!ok) failed = std::move(ok).error();
        return {};
      });
      if (!guard) failed = to_api_error(std::move(guard).error());
      if (failed && !exchange.started()) refuse_with(exchange, *failed);
    }
    log_line(exchange, fmt::format("status={} seconds={:.3f}{}", exchange.status(), seconds(), exchange.notes()));
    if (outcome == Connection::Outcome::kRefused) connection.socket().finish_sending();
    if (!exchange.reusable()) return;
  }
}

Answer<void> Server::answer(Exchange& exchange) {
  const HttpRequest& request = exchange.request();
  HEARTH_TRY(admit(request));
  if (is_preflight(request)) {
    exchange.header("Access-Control-Allow-Methods", "GET, POST, DELETE, HEAD, OPTIONS");
    const std::string_view headers = request.header("Access-Control-Request-Headers");
    if (!headers.empty()) exchange.header("Access-Control-Allow-Headers", std::string(headers));
    exchange.header("Access-Control-Max-Age", "600");
    exchange.respond(204, "", "");
    return {};
  }
  std::string other_methods;
  if (const Route* route = find(request, other_methods)) return route->handler(exchange);
  if (!other_methods.empty()) {
    exchange.header("Allow", other_methods);
    return refuse(Refusal::kMethod, fmt::format("{} takes {}, not {}", request.path, other_methods, request.method));
  }
  return refuse(Refusal::kNotFound, fmt::format("there is nothing at {}{}", request.path, directory_));
}

Answer<void> Server::admit(const HttpRequest& request) const {
  if (!allowed_host(request)) {
    return refuse(Refusal::kForbidden,
                  "the Host header names another machine than this one; a server that others may name must be started "
                  "with --host");
  }
  if (!request.header("Origin").empty() && !allowed_origin(request)) {
    return refuse(Refusal::kForbidden,
                  "web pages of this origin may not use this server; --allow-origin ORIGIN lets them");
  }
  // A missing key is told before what exists and what does not.
  if (is_preflight(request) || is_open(request) || has_key(request)) return {};
  return refuse(Refusal::kUnauthorized, "this server asks for an API key: Authorization: Bearer KEY or x-api-key: KEY");
}

bool Server::is_open(const HttpRequest& request) const {
  std::string other_methods;
  const Route* route = find(request, other_methods);
  return route != nullptr && route->open;
}

const Route* Server::find(const HttpRequest& request, std::string& other_methods) const {
  const auto matches = [&](const Route& route) {
    if (!route.path.ends_with("/*")) return route.path == request.path;
    const std::string_view prefix = std::string_view(route.path).substr(0, route.path.size() - 1);
    return request.path.size() > prefix.size() && request.path.starts_with(prefix);
  };
  for (const Route& route : routes_) {
    if (!matches(route)) continue;
    if (route.method == request.method || (route.method == "GET" && request.method == "HEAD")) return &route;
    other_methods += (other_methods.empty() ? "" : ", ") + route.method;
  }
  return nullptr;
}

void Server::refuse_with(Exchange& exchange, const ApiError& error) {
  if (error.kind == Refusal::kOverloaded) exchange.close_after();  // its connection is wanted by others
  if (error.kind == Refusal::kUnauthorized) exchange.header("WWW-Authenticate", "Bearer");
  if (error.retry_seconds > 0) exchange.header("Retry-After", std::to_string(error.retry_seconds));
  exchange.note_text("error", error.message);
  for (const auto& [prefix, form] : error_forms_) {
    if (exchange.request().path.starts_with(prefix)) return form(exchange, error);
  }
  exchange.respond(http_status(error.kind), "text/plain; charset=utf-8", error.message + "\n");
}

// ---- who may ask ----

// A page that has a name of its own resolve to this machine (DNS rebinding) sends that name.
bool Server::allowed_host(const HttpRequest& request) const {
  if (!loopback_ || !request.has_header("Host")) return true;
  const std::string_view name = host_name(request.header("Host"));
  return is_loopback_name(name) || equal_ignoring_case(name, host_name(options_.host));
}

bool Server::allowed_origin(const HttpRequest& request) const {
  const std::string_view origin = request.header("Origin");
  for (const std::string& allowed : options_.origins) {
    if (allowed == "*" || equal_ignoring_case(origin, allowed)) return true;
  }
  const size_t scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos || !origin.starts_with("http")) return false;
  const std::string_view authority = origin.substr(scheme_end + 3);
  return equal_ignoring_case(authority, request.header("Host")) || is_loopback_name(host_name(authority));
}

bool Server::has_key(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return true;
  std::string_view bearer = request.header("Authorization");
  bearer = bearer.size() > 7 && equal_ignoring_case(bearer.substr(0, 7), "Bearer ") ? bearer.substr(7) : "";
  bool found = false;
  for (const std::string& key : options_.api_keys) {
    found |= same_key(bearer, key);
    found |= same_key(request.header("x-api-key"), key);
  }
  return found;
}

// ---- log ----

void Server::log_line(const Exchange& exchange, std::string_view fields) const {
  const HttpRequest& request = exchange.request();
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char time[32];
  std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &utc);
  const bool plain = std::ranges::none_of(request.path, [](char c) { return c <= ' ' || c == '"' || c == '\\'; });
  std::string line = fmt::format("time={} id={} method={} path={} {}", time, exchange.id(), request.method,
                                 plain ? request.path : dump(Json(request.path)), fields);
  // What clients send must not command a terminal, start a line of its own, or be no text at all.
  for (char& c : line) {
    if (c < 32 || c > 126) c = '?';
  }
  line += '\n';
  if (options_.log) return options_.log(line);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace hearth::server
