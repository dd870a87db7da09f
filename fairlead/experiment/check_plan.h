// Which calls a file is checked at: the user's own, the example's sizes with other values, sizes
// next to those that ran, 1 among them, and far ones: as many of each as the model's size allows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/experiment/steps.h"
#include "fairlead/probe/probe.h"

namespace fairlead {

// How many calls of each sort. The measure is what a run costs everywhere alike, weights and
// operators, not seconds of this machine: an export does not check less because something else was
// running.
struct Effort {
  int values = 0;             // other values at the example's sizes
  int near = 0;               // sizes next to those that ran, 1 among them
  int far = 0;                // round, swapped and largest sizes, and some times the example's
  std::int64_t elements = 0;  // of the inputs, at far sizes
  bool example = true;        // the calls themselves too, or only where nothing else was compared
};

struct Cost {
  std::int64_t weight_bytes = 0;
  std::int64_t operators = 0;
  std::int64_t inputs = 0;
  bool known = false;         // no integer was fitted: each says itself what it is
  std::int64_t elements = 0;  // of the example's inputs
};

// part: a further program of a file, which is checked less.
[[nodiscard]] Effort effort_for(const Cost& cost, bool part);
// Whether one more call costs nothing.
[[nodiscard]] bool is_small(const Cost& cost);

struct CheckRequest {
  int calls = 1;
  Effort effort;
  std::vector<std::int64_t> example;  // by symbol; none where the example is of other shapes
  bool closely = false;  // every size beside the example: the model branches by what is not known
  std::vector<std::vector<std::int64_t>> also;  // settings to be looked at in any case
  std::map<std::string, std::int64_t> largest;  // of symbols, as far as the file goes
  // Sizes that were equal in the example may have to be, although a program does not say so: by
  // symbol, those that the program was made at.
  std::vector<std::int64_t> made_at;
};

// What a check came to, when everything was looked at (judging.h).
enum class Verdict : std::uint8_t {
  kRight,
  kRefused,  // eager itself does not accept it
  kStopped,  // the file does not, and says so
  kExcused,  // they differ for a reason that proves nothing
  kDiffers,
  kUnable,  // nothing can be checked
  kAbsent,  // there is no such call
};

class CheckPlan {
 public:
  CheckPlan(const ProbeResult& probed, CheckRequest request);

  // The next call; none where all are done. seconds: since the first.
  [[nodiscard]] std::optional<Check> next(double seconds);
  // What came of it: what eager refuses is tried in parts (Checked::parts).
  void told(const Check& check, Verdict verdict, int parts);

 private:
  [[nodiscard]] std::vector<std::vector<std::int64_t>> far_candidates() const;
  [[nodiscard]] std::vector<std::vector<std::int64_t>> beside() const;
  void add_calls();
  void add_sizes(const std::vector<std::int64_t>& values, int seed, bool far);
  [[nodiscard]] bool is_too_large(const std::vector<std::int64_t>& values) const;

  const ProbeResult& probed_;
  CheckRequest request_;
  std::vector<std::int64_t> base_;
  std::int64_t most_elements_ = 0;  // of a call far from the example
  std::deque<Check> waiting_;
  int near_ = 0;
};

}  // namespace fairlead
