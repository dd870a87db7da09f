// Work shared out among threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace fairlead {

// Calls part(from, to, share) for as many shares of 0..count as there are threads; the last one
// here. What one of them throws is thrown when all have ended.
template <typename Part>
void in_threads(unsigned threads, std::int64_t count, const Part& part) {
  const auto workers = static_cast<std::int64_t>(std::max(threads, 1U));
  std::vector<std::thread> running;
  std::vector<std::exception_ptr> failed(static_cast<std::size_t>(workers));
  const auto share = [&](std::int64_t k) {
    try {
      part(count * k / workers, count * (k + 1) / workers, static_cast<std::size_t>(k));
    } catch (...) {
      failed[static_cast<std::size_t>(k)] = std::current_exception();
    }
  };
  for (std::int64_t k = 0; k + 1 < workers; ++k) running.emplace_back(share, k);
  share(workers - 1);
  for (std::thread& each : running) each.join();
  for (const std::exception_ptr& each : failed) {
    if (each) std::rethrow_exception(each);
  }
}

}  // namespace fairlead
