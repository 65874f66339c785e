#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
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
  auto pipe = (dir / "pipe").string();  // that nobody writes to
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(pipe).error().message, "cannot read " + pipe + ": it is not a regular file");
  EXPECT_EQ(MappedFile::open("/dev/null").error().code, ErrorCode::kInvalidInput);
  std::filesystem::remove_all(dir);
}

TEST(MappedFile, AFileThatBecomesShorterEndsTheProgramWithOneLine) {
  auto path = (std::filesystem::temp_directory_path() / "hearth_shrinking_file_test").string();
  std::ofstream(path) << std::string(100'000, 'x');
  EXPECT_EXIT(
      {
        exit_when_files_shrink();
        auto file = MappedFile::open(path);
        MappedFile moved = std::move(*file);
        std::filesystem::resize_file(path, 10'000);
        volatile std::byte last = moved.bytes().back();
        static_cast<void>(last);
      },
      testing::ExitedWithCode(1), "^hearth: .*hearth_shrinking_file_test became shorter while it was in use");
  // A mapping that is gone is nobody's: what else fails there fails as always.
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);  // a sanitizer has its own
        exit_when_files_shrink();
        static_cast<void>(*MappedFile::open(path));
        raise(SIGBUS);
        raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hearth
