// A handler of SIGBUS that puts a page of zeros where a mapped file has none any more.
#include "fairlead/files/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace fairlead {
namespace {

struct Range {
  std::atomic<std::uintptr_t> begin = 0;  // 0: free
  std::atomic<std::size_t> size = 0;
};

// Read by the handler, which may not wait for anybody.
std::array<Range, 4096> ranges;
std::atomic<std::uintptr_t> page_size = 4096;

std::mutex installing;
int guards = 0;
struct sigaction before {};

void on_bus_error(int number, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Range& range : ranges) {
    const std::uintptr_t begin = range.begin.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at - begin >= range.size.load(std::memory_order_relaxed)) {
      continue;
    }
    const std::uintptr_t page = page_size.load(std::memory_order_relaxed);
    void* const first = reinterpret_cast<void*>(at / page * page);
    void* const made =
        ::mmap(first, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (made != MAP_FAILED) return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(number);
  ::signal(number, SIG_DFL);  // the same again, and nobody answers
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_bus_error;
}

}  // namespace

MappingGuard::MappingGuard(const void* begin, std::size_t size) {
  if (size == 0) return;
  const std::lock_guard lock(installing);
  for (std::size_t k = 0; k < ranges.size() && slot_ < 0; ++k) {
    if (ranges[k].begin.load(std::memory_order_relaxed) == 0) slot_ = static_cast<int>(k);
  }
  if (slot_ < 0) return;
  Range& range = ranges[static_cast<std::size_t>(slot_)];
  range.size.store(size, std::memory_order_relaxed);
  range.begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_release);
  ++guards;
  page_size.store(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)), std::memory_order_relaxed);
  struct sigaction now {};
  if (::sigaction(SIGBUS, nullptr, &now) != 0 || is_ours(now)) return;
  before = now;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(SIGBUS, &ours, nullptr);
}

MappingGuard::~MappingGuard() {
  if (slot_ < 0) return;
  const std::lock_guard lock(installing);
  ranges[static_cast<std::size_t>(slot_)].begin.store(0, std::memory_order_release);
  if (--guards > 0) return;
  struct sigaction now {};
  if (::sigaction(SIGBUS, nullptr, &now) == 0 && is_ours(now)) {
    ::sigaction(SIGBUS, &before, nullptr);
  }
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

}  // namespace fairlead
