// Tests of files and folders that get their names when they are whole.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "fairlead/base/error.h"
#include "fairlead/files/content_hash.h"
#include "fairlead/files/mapped_file.h"
#include "fairlead/files/read_ahead.h"
#include "fairlead/files/staging.h"
#include "fairlead/files/sync.h"
#include "fairlead/onnx/data_files.h"
#include "onnx_models.h"

using namespace fairlead;
using fairlead::test::file_bytes;
using fairlead::test::put_file;
using fairlead::test::TemporaryFolder;

namespace {

std::string hash_of(const std::string& text, std::size_t piece) {
  ContentHash hash;
  for (std::size_t k = 0; k < text.size(); k += piece) {
    hash.update(std::as_bytes(std::span(text).subspan(k, std::min(piece, text.size() - k))));
  }
  return hash.hex();
}

}  // namespace

TEST_CASE("A file is read ahead to its end, and one that is not there is nobody's error") {
  const TemporaryFolder folder;
  const std::string bytes(9 << 20, 'x');  // more than two pieces
  put_file(folder.path() + "/data", bytes);
  ReadAhead ahead(folder.path() + "/data");
  CHECK(ahead.wait() == static_cast<std::int64_t>(bytes.size()));
  CHECK(ReadAhead(folder.path() + "/none").wait() == 0);
}

TEST_CASE("The hash is XXH64, whatever the pieces") {
  std::string text;
  CHECK(hash_of("", 1) == "ef46db3751d8e999");
  CHECK(hash_of("a", 1) == "d24ec4f1a98c6e5b");
  CHECK(hash_of("abc", 1) == "44bc2cf5ad770999");
  for (int k = 0; k < 1000; ++k) text.push_back(static_cast<char>(k * 37));
  for (const std::size_t piece : {1, 3, 31, 32, 33, 64, 999}) {
    CHECK(hash_of(text, piece) == hash_of(text, text.size()));
  }
}

TEST_CASE("A staged file is under its name after commit, and gone without it") {
  const TemporaryFolder folder;
  const std::string path = folder / "report.html";
  put_file(path, "old");
  {
    const Staging staging(path);
    put_file(staging.path(), "new");
    CHECK(is_staging_name(std::filesystem::path(staging.folder()).parent_path().filename()));
  }
  CHECK(file_bytes(path) == "old");
  Staging staging(path, "report");
  put_file(staging.path(), "new");
  staging.commit_file();
  CHECK(file_bytes(path) == "new");
  CHECK(folder.entries() == 1);
  CHECK_THROWS_WITH_AS(write_file(folder / "no/file", "x", "report"),
                       ("[report] Could not write '" + (folder / "no/file") +
                        "': No such file or directory. Create the folder first.")
                           .c_str(),
                       Error);
}

TEST_CASE("Staging folders of dead processes are removed by the next of the same name alone") {
  const TemporaryFolder folder;
  const std::string path = folder / "m.onnx";
  const Staging living(path);
  const pid_t child = ::fork();
  if (child == 0) {
    const Staging one(path);
    const Staging other(folder / "other.onnx");
    put_file(one.path(), "half");
    ::_exit(0);  // as a kill does: nobody tidies up
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(folder.entries() == 3);
  std::filesystem::create_directory(folder / ".m.onnx.fairlead-notes");  // not one of ours
  { const Staging next(path); }
  CHECK(folder.entries() == 3);
  CHECK(std::filesystem::exists(living.folder()));
  { const Staging next(folder / "other.onnx"); }
  CHECK(folder.entries() == 2);
}

TEST_CASE("A forked child does not remove what its parent stages") {
  const TemporaryFolder folder;
  Staging staging(folder / "m.onnx");
  const pid_t child = ::fork();
  if (child == 0) {
    staging.discard();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(std::filesystem::exists(staging.folder()));
}

TEST_CASE("A folder that a link leads to takes files and folders") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_directory_symlink("real", folder / "link");
  Staging staging(folder / "link/model.onnx");
  put_file(staging.path(), "model");
  staging.commit_file();
  CHECK(file_bytes(folder / "real/model.onnx") == "model");
  Staging inner(folder / "link/out");
  put_file(inner.folder() + "/model.onnx", "model");
  inner.commit_folder();
  CHECK(file_bytes(folder / "real/out/model.onnx") == "model");
  CHECK(std::filesystem::is_symlink(folder / "link"));
}

TEST_CASE("A folder gets its name in one step, with what others have in it") {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  {
    Staging staging(out + "/");
    put_file(staging.folder() + "/model.onnx", "first");
    std::filesystem::create_directory(staging.folder() + "/onnx");
    put_file(staging.folder() + "/onnx/part.onnx", "first");
    staging.commit_folder();
  }
  put_file(out + "/README.md", "mine");
  std::filesystem::create_directories(out + "/notes/deep");
  put_file(out + "/notes/deep/a.txt", "mine too");
  put_file(out + "/onnx/mine.txt", "in a folder of ours");
  std::filesystem::create_symlink("README.md", out + "/link");
  std::filesystem::permissions(out, std::filesystem::perms(0750));
  Staging staging(out);
  put_file(staging.folder() + "/model.onnx", "second");
  std::filesystem::create_directory(staging.folder() + "/onnx");
  put_file(staging.folder() + "/onnx/part.onnx", "second");
  SUBCASE("exchanged") { staging.commit_folder(); }
  SUBCASE("one by one, because somebody stands in it") {
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(out + "/notes");
    staging.commit_folder();
    CHECK(std::filesystem::exists("deep/a.txt"));
    std::filesystem::current_path(before);
  }
  SUBCASE("one by one, because somebody exports into it") {
    Staging other(out + "/other.onnx");
    staging.commit_folder();
    put_file(other.path(), "other");
    other.commit_file();
    CHECK(file_bytes(out + "/other.onnx") == "other");
  }
  CHECK(file_bytes(out + "/model.onnx") == "second");
  CHECK(file_bytes(out + "/onnx/part.onnx") == "second");
  CHECK(file_bytes(out + "/README.md") == "mine");
  CHECK(file_bytes(out + "/link") == "mine");
  CHECK(file_bytes(out + "/notes/deep/a.txt") == "mine too");
  CHECK(file_bytes(out + "/onnx/mine.txt") == "in a folder of ours");
  CHECK((std::filesystem::status(out).permissions() == std::filesystem::perms(0750)));
  CHECK(folder.entries() == 1);
}

TEST_CASE("A folder in the place of a file is not thrown away") {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  std::filesystem::create_directories(out + "/model.onnx/inside");
  Staging staging(out, "export");
  put_file(staging.folder() + "/model.onnx", "new");
  CHECK_THROWS_WITH_AS(staging.commit_folder(),
                       ("[export] Could not write '" + out +
                        "/model.onnx': Is a directory. Give the name of a file, such as "
                        "'model.onnx' in that folder.")
                           .c_str(),
                       Error);
  CHECK(std::filesystem::exists(out + "/model.onnx/inside"));
}

TEST_CASE("Data is known by its name") {
  CHECK(onnx::is_data_name("m.onnx.0123456789abcdef.data", "m.onnx"));
  CHECK(onnx::is_data_name("m.onnx.0123456789abcdef.data"));
  CHECK_FALSE(onnx::is_data_name("n.onnx.0123456789abcdef.data", "m.onnx"));
  CHECK_FALSE(onnx::is_data_name("m.onnx.data", "m.onnx"));
  CHECK_FALSE(onnx::is_data_name("m.onnx.0123456789abcdeg.data", "m.onnx"));
  CHECK_FALSE(onnx::is_data_name("m.onnx.x.0123456789abcdef.data", "m.onnx"));
}

TEST_CASE("a mapped file that becomes shorter gives zeros, and no signal") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  put_file(path, std::string(3 * 4096, 'a'));
  struct sigaction before {
  }, after{};
  REQUIRE(::sigaction(SIGBUS, nullptr, &before) == 0);
  {
    const MappedFile file(path, "test", "");
    const MappedFile other(path, "test", "");
    std::filesystem::resize_file(path, 100);
    CHECK(file.bytes()[2 * 4096 + 5] == std::byte{0});
    CHECK(file.bytes()[4096] == std::byte{0});
    CHECK(other.bytes()[4096] == std::byte{0});
    CHECK(file.bytes()[10] == std::byte{'a'});
  }
  REQUIRE(::sigaction(SIGBUS, nullptr, &after) == 0);
  const bool same = after.sa_handler == before.sa_handler;
  CHECK(same);
}
