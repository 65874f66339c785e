#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace hearth {
namespace {

TEST(MappedFile, ReadsBytesAndRefusesWhatIsNotAFile) {
  auto dir = std::filesystem::temp_directory_path() / "hearth_mapped_file_test";
  std::filesystem::create_directories(dir);
  auto path = (dir / "abc").string();
  std::ofstream(path) << "abc";
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes().size(), 3u);
  EXPECT_EQ(file->bytes()[2], std::byte{'c'});
  file->release(0, 3);
  EXPECT_EQ(file->bytes()[0], std::byte{'a'});

  std::ofstream((dir / "empty").string());
  EXPECT_EQ(MappedFile::open((dir / "empty").string()).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(MappedFile::open(dir.string()).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(MappedFile::open((dir / "none").string()).error().code, ErrorCode::kNotFound);
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);  // nobody writes to it: opening must not wait
  EXPECT_EQ(MappedFile::open((dir / "pipe").string()).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(MappedFile::open("/dev/null").error().code, ErrorCode::kInvalidInput);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace hearth
