// Listens, gives each connection a thread, checks who may ask, and hands requests to the handlers of their paths.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/http.h"

namespace hearth::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;               // 0: any that is free
  std::vector<std::string> api_keys;  // none: no key is asked for
  std::vector<std::string> origins;   // of web pages that may ask, beside our own and those of this machine; "*": all
  int64_t max_connections = 256;
  HttpLimits limits;
  // Takes each line of the log; none: stderr.
  std::function<void(std::string_view)> log;
};

// Answers, or says why not before anything was sent: the error is worded in the form of the path.
using Handler = std::function<Answer<void>(Exchange&)>;

struct Route {
  std::string method;
  std::string path;  // "/v1/models/*": all that begins like that
  Handler handler;
  bool open = false;  // asks for no key
};

// Writes an error as one protocol words it.
using ErrorForm = void (*)(Exchange&, const ApiError&);

class Server {
 public:
  explicit Server(ServerOptions options);
  ~Server();  // stops at once

  void add(Route route) { routes_.push_back(std::move(route)); }
  // Errors of paths that begin with `prefix` have this form. The longest prefix counts; "" is needed.
  void set_error_form(std::string prefix, ErrorForm form);
  // What a 404 says behind "there is nothing at PATH".
  void set_directory(std::string text) { directory_ = std::move(text); }

  // Binds and starts to accept. kUsage when the address cannot be had.
  Result<void> start();
  uint16_t port() const { return port_; }
  std::string url() const;
  bool is_loopback() const { return loopback_; }

  // Takes no more requests and waits until those that run are done, at most `seconds`; false when some are left then.
  bool drain(double seconds);
  // Ends what still runs and waits for that, at most `seconds`; false when some are left then.
  bool stop(double seconds);

  int64_t connections() const;
  // Of the bodies of requests that are read or answered.
  size_t body_bytes() const { return body_bytes_; }
  const HttpLimits& limits() const { return options_.limits; }

 private:
  struct Client {
    Client(int fd, const HttpLimits& limits, std::atomic<size_t>& body_bytes) : connection(fd, limits, body_bytes) {}
    Connection connection;
  };

  void accept_loop();
  void accept_one(int listener);
  // `crowded`: it is one connection too many, and hears that for all but what needs no key.
  void serve(Connection& connection, bool crowded);
  Answer<void> answer(Exchange& exchange);
  // Host, origin and key.
  Answer<void> admit(const HttpRequest& request) const;
  void refuse_with(Exchange& exchange, const ApiError& error);
  const Route* find(const HttpRequest& request, std::string& other_methods) const;
  bool is_open(const HttpRequest& request) const;  // asks for no key
  bool allowed_host(const HttpRequest& request) const;
  bool allowed_origin(const HttpRequest& request) const;
  bool has_key(const HttpRequest& request) const;
  void log_line(const Exchange& exchange, std::string_view fields) const;

  ServerOptions options_;
  std::vector<Route> routes_;
  std::vector<std::pair<std::string, ErrorForm>> error_forms_;
  std::string directory_;
  std::vector<int> listeners_;
  int wake_ = -1;  // eventfd that ends the accept loop
  uint16_t port_ = 0;
  bool loopback_ = false;
  std::thread acceptor_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> abandoned_ = false;

  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::atomic<size_t> body_bytes_ = 0;
  std::list<Client> clients_;  // guarded by mutex_; each is removed by its thread
};

}  // namespace hearth::server
