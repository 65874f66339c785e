#include "files/replacing_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace hearth {
namespace {

namespace fs = std::filesystem;

class ReplacingFileTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  int64_t files() const { return std::distance(fs::directory_iterator(folder_), {}); }
  Result<void> write(const std::string& name, std::string_view text, bool commit) const {
    HEARTH_ASSIGN(ReplacingFile file, ReplacingFile::create((folder_ / name).string()));
    HEARTH_TRY(file.write(text.data(), text.size()));
    return commit ? file.commit() : Result<void>();
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("hearth_replacing_file_test.{}", ::getpid());
};

TEST_F(ReplacingFileTest, ReplacesWhenItIsCompleteAndLeavesNothingOtherwise) {
  ASSERT_TRUE(write("a", "old", true));
  fs::permissions(folder_ / "a", fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write("a", "given up", false));
  ASSERT_TRUE(write("b", "given up", false));
  EXPECT_EQ(content("a"), "old");
  EXPECT_EQ(files(), 1);
  ASSERT_TRUE(write("a", "new", true));
  EXPECT_EQ(content("a"), "new");
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ReplacingFileTest, KeepsLinksAndWritesIntoWhatIsNoFile) {
  ASSERT_TRUE(write("target", "old", true));
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(write("link", "new", true));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content("target"), "new");
  ASSERT_TRUE(write("/dev/null", "gone", true));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_FALSE(write("no/such/folder", "x", true));
  EXPECT_FALSE(write("/dev/full", "x", true));
  EXPECT_EQ(files(), 2);
}

}  // namespace
}  // namespace hearth
