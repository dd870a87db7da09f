// The main of a fuzz target where libFuzzer is not at hand (GCC): runs it over files and folders,
// or with --stdin over a stream of inputs, each after its size as 8 bytes; answers each with a
// newline.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::size_t run_path(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry);
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    std::fprintf(stderr, "%s\n", file.c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  return files.size();
}

void run_stream() {
  std::uint64_t size = 0;
  while (std::fread(&size, sizeof size, 1, stdin) == 1) {
    // A buffer of exactly this size: AddressSanitizer sees what reads beyond it.
    std::vector<std::uint8_t> bytes(size);
    if (size > 0 && std::fread(bytes.data(), 1, size, stdin) != size) return;
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    std::putchar('\n');
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--stdin") == 0) {
    run_stream();
    return 0;
  }
  std::size_t count = 0;
  for (int k = 1; k < argc; ++k) count += run_path(argv[k]);
  std::printf("%zu inputs\n", count);
  return 0;
}
