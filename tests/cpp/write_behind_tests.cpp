// Large files are written by a thread of their own: the same bytes, the same hash, the same errors.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "fairlead/base/error.h"
#include "fairlead/files/content_hash.h"
#include "fairlead/files/output_file.h"

using namespace fairlead;

namespace {

// Pieces of sizes that fill no block and no buffer, some of them larger than one.
constexpr std::size_t kPieces[] = {1,        4095,      4096, 4097,      300'001,  8u << 20,
                                   1u << 20, 12u << 20, 7,    3'000'003, 1u << 22, 0};

std::vector<std::byte> piece(std::size_t size, unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<std::byte> bytes(size);
  for (std::size_t k = 0; k + 4 <= size; k += 4) {
    const auto word = static_cast<std::uint32_t>(draw());
    std::memcpy(bytes.data() + k, &word, 4);
  }
  return bytes;
}

std::vector<std::byte> read_back(const std::filesystem::path& path) {
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace

TEST_CASE("what another thread writes is what was given to it") {
  // Memory has no way past the page cache.
  std::vector<std::filesystem::path> places = {std::filesystem::temp_directory_path()};
  if (std::filesystem::is_directory("/dev/shm")) places.emplace_back("/dev/shm");
  for (const std::filesystem::path& place : places) {
    const std::filesystem::path folder = place / ("fairlead-behind-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    for (const bool claimed : {false, true}) {
      CAPTURE(folder);
      CAPTURE(claimed);
      const std::string path = (folder / "data").string();
      std::vector<std::byte> expected;
      ContentHash hash, whole;
      {
        OutputFile file(path, path);
        file.hash_into(&hash);
        file.write_behind();
        unsigned seed = 0;
        for (const std::size_t size : kPieces) {
          const std::vector<std::byte> bytes = piece(size, ++seed);
          if (claimed && size > 0) {
            std::memcpy(file.claim(size), bytes.data(), size);
          } else {
            file.write(bytes);
          }
          expected.insert(expected.end(), bytes.begin(), bytes.end());
          CHECK(file.position() == static_cast<std::int64_t>(expected.size()));
          const std::size_t padded = (expected.size() + 63) / 64 * 64;
          file.pad_to(static_cast<std::int64_t>(padded));
          expected.resize(padded);
        }
        file.close();
      }
      CHECK(read_back(path) == expected);
      whole.update(expected);
      CHECK(hash.hex() == whole.hex());
    }
    std::filesystem::remove_all(folder);
  }
}

TEST_CASE("a write that fails in another thread is an error of who writes") {
  OutputFile file("/dev/full", "model.onnx");
  file.write_behind();
  const std::vector<std::byte> bytes = piece(9u << 20, 1);
  const auto fill = [&] {
    for (int k = 0; k < 8; ++k) file.write(bytes);
    file.close();
  };
  CHECK_THROWS_WITH_AS(
      fill(),
      "[write_model] Could not write 'model.onnx': No space left on device. Free some space, or "
      "choose a folder on another disk.",
      Error);
}

TEST_CASE("a file that is given up while it is written is closed") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("fairlead-behind-left-" + std::to_string(::getpid()));
  {
    OutputFile file(path.string(), "left");
    file.write_behind();
    for (int k = 0; k < 4; ++k) file.write(piece(9u << 20, 2));
  }
  CHECK(std::filesystem::remove(path));
}
