// Walks two runs side by side; where they part, looks for a period.
#include "fairlead/trace/loops.h"

#include <algorithm>
#include <optional>

namespace fairlead {
namespace {

// A loop's body is short beside the model; this bounds the search for its length.
constexpr std::size_t kLongestPeriod = 4096;

// The items of two operators side by side, in step except inside lists of tensors.
class Items {
 public:
  // `free`: lists of numbers may differ in length, too.
  Items(const Run& a, const Run& b, bool free) : a_(a), b_(b), free_(free) {}

  bool same(std::uint32_t i, std::uint32_t i_end, std::uint32_t j, std::uint32_t j_end) const {
    while (i < i_end && j < j_end) {
      const Item &x = a_.items[i], &y = b_.items[j];
      if (x.kind != y.kind) return false;
      if (x.kind == ItemKind::kList) {
        if (free_ || (tensors(a_, i) && tensors(b_, j))) {
          i = behind(a_, i);
          j = behind(b_, j);
          continue;
        }
        if (x.i != y.i) {
          return false;
        }
      } else if ((x.kind == ItemKind::kString || x.kind == ItemKind::kDtype) && x.i != y.i) {
        return false;
      }
      ++i, ++j;
    }
    return i == i_end && j == j_end;
  }

 private:
  // The item behind a list and everything in it.
  static std::uint32_t behind(const Run& run, std::uint32_t at) {
    const Item& item = run.items[at++];
    if (item.kind == ItemKind::kList) {
      for (std::int64_t k = 0; k < item.i; ++k) at = behind(run, at);
    }
    return at;
  }
  // A list that holds nothing but tensors, and at least one.
  static bool tensors(const Run& run, std::uint32_t at) {
    const std::int64_t count = run.items[at].i;
    for (std::int64_t k = 1; k <= count; ++k) {
      if (run.items[at + static_cast<std::uint32_t>(k)].kind != ItemKind::kTensor) return false;
    }
    return count > 0;
  }

  const Run &a_, &b_;
  bool free_;
};

// How many times the `period` operators at `from` of `model` follow each other at `at` of `run`.
std::size_t repeats(const Run& model, std::size_t from, std::size_t period, const Run& run,
                    std::size_t at) {
  std::size_t count = 0;
  while (at + period <= run.ops.size()) {
    for (std::size_t k = 0; k < period; ++k) {
      if (!same_call(model, from + k, run, at + k)) return count;
    }
    at += period;
    ++count;
  }
  return count;
}

// The shortest period with which the operators of `run` before `at` go on behind it.
std::size_t period_at(const Run& run, std::size_t at, std::size_t floor) {
  const std::size_t most = std::min({at - floor, run.ops.size() - at, kLongestPeriod});
  for (std::size_t period = 1; period <= most; ++period) {
    if (same_call(run, at - period, run, at) && repeats(run, at - period, period, run, at) > 0) {
      return period;
    }
  }
  return 0;
}

struct Walk {
  const Run& a;
  const Run& b;
  std::size_t i = 0, j = 0;              // next operator of each
  std::size_t floor_i = 0, floor_j = 0;  // where the last loop ended

  [[nodiscard]] bool at_end() const { return i == a.ops.size() && j == b.ops.size(); }
  [[nodiscard]] bool in_step() const {
    return at_end() || (i < a.ops.size() && j < b.ops.size() && same_call(a, i, b, j));
  }
  void take(const Loop& loop, std::size_t start_j, std::size_t count_j) {
    floor_i = i = loop.start + loop.count * loop.period;
    floor_j = j = start_j + count_j * loop.period;
  }
  // The loop that `run` (a or b) has not left yet at `at`; its place in a.
  std::optional<Loop> loop_in(const Run& run, std::size_t at, std::size_t floor) {
    if (at >= run.ops.size()) return std::nullopt;
    const std::size_t period = period_at(run, at, floor);
    if (period == 0) return std::nullopt;
    std::size_t first = at;
    while (first > floor && same_call(run, first - 1, run, first - 1 + period)) --first;
    const std::size_t steps = (at - first) / period;  // before the runs parted, in both
    return Loop{i - steps * period, period, steps};
  }
  // Goes on behind a loop that only one of them has left; false where there is none.
  bool leave_loop(std::vector<Loop>& loops) {
    for (const bool second : {true, false}) {
      const auto found = second ? loop_in(b, j, floor_j) : loop_in(a, i, floor_i);
      if (!found) continue;
      Walk ahead = *this;
      Loop loop = *found;
      const std::size_t start_j = j - loop.count * loop.period;
      const Run& longer = second ? b : a;
      const std::size_t from = second ? start_j : loop.start;
      const std::size_t count = repeats(longer, from, loop.period, longer, from);
      const std::size_t other = loop.count;
      if (!second) loop.count = count;
      ahead.take(loop, start_j, second ? count : other);
      if (!ahead.in_step()) continue;
      loops.push_back(loop);
      i = ahead.i, j = ahead.j;
      floor_i = ahead.floor_i, floor_j = ahead.floor_j;
      return true;
    }
    return false;
  }
};

// Adds the loops of `a` that tell it from `b`, besides those known; false where it is another
// program.
bool compare(const Run& a, const Run& b, std::vector<Loop>& loops) {
  std::vector<Loop> found;
  std::size_t known = 0;
  Walk walk{a, b};
  while (!walk.at_end()) {
    if (known < loops.size() && walk.i == loops[known].start) {
      const Loop& loop = loops[known++];
      const std::size_t count = repeats(a, loop.start, loop.period, b, walk.j);
      if (count == 0) return false;
      walk.take(loop, walk.j, count);
      continue;
    }
    if (walk.i < a.ops.size() && walk.j < b.ops.size() && same_call(a, walk.i, b, walk.j)) {
      ++walk.i, ++walk.j;
      continue;
    }
    if (!walk.leave_loop(found)) return false;
  }
  loops.insert(loops.end(), found.begin(), found.end());
  std::sort(loops.begin(), loops.end(),
            [](const Loop& x, const Loop& y) { return x.start < y.start; });
  for (std::size_t k = 1; k < loops.size(); ++k) {
    const Loop& before = loops[k - 1];
    if (before.start + before.period * before.count > loops[k].start) return false;
  }
  return true;
}

}  // namespace

bool same_call(const Run& a, std::size_t i, const Run& b, std::size_t j) {
  const OpRecord &x = a.ops[i], &y = b.ops[j];
  if (x.op != y.op || x.source != y.source || x.module != y.module) return false;
  // split_with_sizes: as many sizes as parts.
  const auto parts = [](const Run& run, const OpRecord& record) {
    const bool list = record.result_count > 0 && run.items[record.results].kind == ItemKind::kList;
    return list ? run.items[record.results].i : -1;
  };
  const Items items(a, b, parts(a, x) > 0 && parts(a, x) != parts(b, y));
  if (!items.same(x.items, x.items + x.item_count, y.items, y.items + y.item_count)) return false;
  if (!items.same(x.results, x.results + x.result_count, y.results, y.results + y.result_count)) {
    return false;
  }
  if (x.result_count == 0 || y.result_count == 0) return x.result_count == y.result_count;
  const Item &first = a.items[x.results], &second = b.items[y.results];
  if (first.kind != ItemKind::kTensor) return true;
  const ValueFact &v = a.values[first.i], &w = b.values[second.i];
  return v.dtype == w.dtype && v.rank == w.rank;
}

bool may_be_loop(const Run& reference, const Run& run, std::size_t op) {
  const auto repeated = [op](const Run& in) {
    if (op >= in.ops.size()) return false;
    for (std::size_t back = 1; back <= std::min(op, kLongestPeriod); ++back) {
      if (same_call(in, op - back, in, op)) return true;
    }
    return false;
  };
  // A list of what the steps made is longer, too.
  return repeated(reference) || repeated(run) ||
         (op < reference.ops.size() && same_call(reference, op, run, op));
}

std::optional<std::vector<LoopPlaces>> find_loops(std::span<const Run* const> runs) {
  const Run& reference = *runs.front();
  std::vector<Loop> loops;
  for (std::size_t r = 1; r < runs.size(); ++r) {
    if (!compare(reference, *runs[r], loops)) return std::nullopt;
  }
  std::vector<LoopPlaces> places(loops.size());
  for (const Run* run : runs) {
    std::size_t in_reference = 0, at = 0;
    for (std::size_t k = 0; k < loops.size(); ++k) {
      const Loop& loop = loops[k];
      at += loop.start - in_reference;
      const std::size_t count = repeats(reference, loop.start, loop.period, *run, at);
      if (count == 0) return std::nullopt;
      places[k].period = loop.period;
      places[k].starts.push_back(at);
      places[k].counts.push_back(count);
      at += count * loop.period;
      in_reference = loop.start + loop.period * loop.count;
    }
  }
  return places;
}

}  // namespace fairlead
