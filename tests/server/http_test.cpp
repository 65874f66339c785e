// The transport over a pair of sockets: what it takes, what it refuses, how long it waits.
#include "server/http.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace hearth::server {
namespace {

class Http : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    client_ = ends[0];
    limits_ = {.header_bytes = 1024,
               .body_bytes = 4096,
               .all_body_bytes = 6000,
               .idle_seconds = 0.3,
               .header_seconds = 0.3,
               .body_seconds = 0.3,
               .write_seconds = 0.3};
    connection_ = std::make_unique<Connection>(ends[1], limits_, body_bytes_);
  }
  void TearDown() override {
    if (client_ >= 0) ::close(client_);
  }

  void send(std::string_view text) {
    ASSERT_EQ(::send(client_, text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }
  std::string received() {
    char buffer[8192];
    const ssize_t n = ::recv(client_, buffer, sizeof buffer, MSG_DONTWAIT);
    return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
  }
  Connection::Outcome read() { return connection_->read(request_, error_); }
  // A request that must be refused, on a fresh connection.
  Refusal refused(std::string_view text) {
    TearDown();
    SetUp();
    send(text);
    EXPECT_EQ(read(), Connection::Outcome::kRefused) << text;
    return error_.kind;
  }

  int client_ = -1;
  HttpLimits limits_;
  std::atomic<size_t> body_bytes_ = 0;
  std::unique_ptr<Connection> connection_;
  HttpRequest request_;
  ApiError error_;
  std::atomic<bool> abandoned_ = false;
};

using Outcome = Connection::Outcome;

TEST_F(Http, ReadsRequestsOneAfterTheOther) {
  send(
      "POST /a%20b/c?x=1&y HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nX-Thing:  v \r\n\r\nabcGET / HTTP/1.1\r\nHost: "
      "h\r\n\r\n");
  ASSERT_EQ(read(), Outcome::kRequest);
  EXPECT_EQ(request_.method, "POST");
  EXPECT_EQ(request_.path, "/a b/c");
  EXPECT_EQ(request_.query, "x=1&y");
  EXPECT_EQ(request_.header("x-thing"), "v");
  EXPECT_EQ(request_.body, "abc");
  EXPECT_TRUE(request_.keep_alive);
  ASSERT_EQ(read(), Outcome::kRequest);
  EXPECT_EQ(request_.method, "GET");
  EXPECT_EQ(request_.body, "");
  EXPECT_EQ(read(), Outcome::kClosed);  // idle for too long
}

TEST_F(Http, ReadsBodiesInAnyPieces) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n";
  std::thread writer([&] {
    for (char c : text) send(std::string_view(&c, 1));
  });
  const Outcome outcome = read();
  writer.join();
  ASSERT_EQ(outcome, Outcome::kRequest) << error_.message;
  EXPECT_EQ(request_.body, "abcdefgh");
}

TEST_F(Http, AnswersExpectContinue) {
  std::thread writer([&] {
    send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    std::string answer;
    for (int i = 0; i < 100 && answer.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      answer = received();
    }
    EXPECT_EQ(answer, "HTTP/1.1 100 Continue\r\n\r\n");
    send("ok");
  });
  const Outcome outcome = read();
  writer.join();
  ASSERT_EQ(outcome, Outcome::kRequest);
  EXPECT_EQ(request_.body, "ok");
}

// Who may not ask sends no body: the answer comes before it, without "100 Continue".
TEST_F(Http, AsksWhoeverAdmitsBeforeTheBody) {
  send("POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  std::string path;
  const auto refuse_all = [&](const HttpRequest& head) -> Answer<void> {
    path = head.path;
    return refuse(Refusal::kUnauthorized, "no key");
  };
  EXPECT_EQ(connection_->read(request_, error_, refuse_all), Outcome::kRefused);
  EXPECT_EQ(error_.kind, Refusal::kUnauthorized);
  EXPECT_EQ(path, "/a");
  EXPECT_EQ(request_.path, "/a");
  EXPECT_EQ(received(), "");
}

TEST_F(Http, HoldsNoMoreOfAllBodiesThanItMay) {
  const auto post = [](size_t bytes, size_t sent) {
    return fmt::format("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}", bytes, std::string(sent, 'x'));
  };
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Connection other(ends[1], limits_, body_bytes_);
  HttpRequest held;
  const std::string first = post(4000, 4000);
  ASSERT_EQ(::send(ends[0], first.data(), first.size(), 0), std::ssize(first));
  ASSERT_EQ(other.read(held, error_), Outcome::kRequest);
  EXPECT_EQ(body_bytes_, 4000u);
  send(post(3000, 3000));
  EXPECT_EQ(read(), Outcome::kRefused);
  EXPECT_EQ(error_.kind, Refusal::kOverloaded);
  EXPECT_GT(error_.retry_seconds, 0);
  EXPECT_EQ(body_bytes_, 4000u);
  EXPECT_EQ(other.read(held, error_), Outcome::kClosed);  // the answer was given
  EXPECT_EQ(body_bytes_, 0u);
  EXPECT_TRUE(held.body.empty());
  TearDown();
  SetUp();
  send(post(3000, 3000));
  EXPECT_EQ(read(), Outcome::kRequest);
  connection_.reset();
  EXPECT_EQ(body_bytes_, 0u);
  ::close(ends[0]);
}

TEST_F(Http, RefusesWhatIsMalformedOrTooLarge) {
  EXPECT_EQ(refused("nonsense\r\n\r\n"), Refusal::kInvalid);
  EXPECT_EQ(refused("GET / HTTP/2.0\r\n\r\n"), Refusal::kInvalid);
  EXPECT_EQ(refused("GET nowhere HTTP/1.1\r\n\r\n"), Refusal::kInvalid);
  EXPECT_EQ(refused("GET /%zz HTTP/1.1\r\n\r\n"), Refusal::kInvalid);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nNo colon\r\n\r\n"), Refusal::kInvalid);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n"), Refusal::kInvalid);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), Refusal::kInvalid);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Refusal::kInvalid);
  // Two lengths are how requests are smuggled.
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), Refusal::kInvalid);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            Refusal::kInvalid);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n"), Refusal::kHeadersTooLarge);
  EXPECT_EQ(refused("GET /" + std::string(2000, 'x')), Refusal::kHeadersTooLarge);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n"), Refusal::kTooLarge);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"), Refusal::kInvalid);
  std::string chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 10; ++i) chunks += "200\r\n" + std::string(512, 'x') + "\r\n";
  EXPECT_EQ(refused(chunks), Refusal::kTooLarge);
}

TEST_F(Http, WaitsForNobodyLong) {
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost:"), Refusal::kTimeout);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc"), Refusal::kTimeout);
  // A byte now and then does not buy more time.
  std::atomic<bool> stop = false;
  TearDown();
  SetUp();
  std::thread writer([&] {
    send("GET / HTTP/1.1\r\n");
    while (!stop) {
      ::send(client_, "X", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(read(), Outcome::kRefused);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  stop = true;
  writer.join();
}

TEST_F(Http, StreamsInPiecesAndNoticesWhoLeaves) {
  send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_EQ(read(), Outcome::kRequest);
  Exchange exchange(*connection_, request_, abandoned_);
  exchange.begin(200, "text/plain");
  const std::string head = received();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
  EXPECT_NE(head.find("Transfer-Encoding: chunked"), std::string::npos);
  exchange.write("hello");
  exchange.write("");
  exchange.write(std::string(16, 'x'));
  EXPECT_FALSE(exchange.gone());
  exchange.end();
  EXPECT_EQ(received(), "5\r\nhello\r\n10\r\nxxxxxxxxxxxxxxxx\r\n0\r\n\r\n");
  EXPECT_TRUE(exchange.reusable());
  ::close(client_);
  client_ = -1;
  EXPECT_TRUE(exchange.gone());
}

TEST_F(Http, GivesUpOnClientsThatDoNotRead) {
  send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_EQ(read(), Outcome::kRequest);
  Exchange exchange(*connection_, request_, abandoned_);
  exchange.begin(200, "text/plain");
  const std::string piece(size_t{1} << 20, 'x');
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 64; ++i) exchange.write(piece);
  EXPECT_TRUE(exchange.gone());
  EXPECT_FALSE(exchange.reusable());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(Http, AnswersOldClientsWithoutChunks) {
  send("GET / HTTP/1.0\r\n\r\n");
  ASSERT_EQ(read(), Outcome::kRequest);
  EXPECT_FALSE(request_.keep_alive);
  Exchange exchange(*connection_, request_, abandoned_);
  exchange.begin(200, "text/plain");
  exchange.write("hello");
  exchange.end();
  const std::string all = received();
  EXPECT_TRUE(all.ends_with("\r\n\r\nhello")) << all;
  EXPECT_FALSE(exchange.reusable());
}

TEST_F(Http, SendsNoBodyToHead) {
  send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_EQ(read(), Outcome::kRequest);
  Exchange exchange(*connection_, request_, abandoned_);
  exchange.respond(200, "text/plain", "hello");
  const std::string all = received();
  EXPECT_NE(all.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(all.ends_with("\r\n\r\n")) << all;
}

}  // namespace
}  // namespace hearth::server
