// The other side of every question that a model asked about its sizes.
//
// A program holds where its questions have the answers they had. For each, the experiment goes to
// the nearest sizes with the other answer and runs the model there:
// 1. The same operators: the run is solved with the others, and the question decides nothing but
//    numbers.
// 2. Others, at every size beyond: it is a bound, and what lies beyond is a further program.
// 3. Others, here and there (n % 2, n == 37, n < m): the file requires the answer, and holds the
//    other program besides.
// 4. Refused by the model, or too large to try: the file refuses it too, with the reason.
#include <algorithm>

#include "fairlead/experiment/lab.h"
#include "fairlead/experiment/tiny.h"

namespace fairlead {
namespace {

constexpr int kRounds = 6;  // what is learnt on the other side may ask further questions
constexpr std::size_t kMostTried = 48;  // questions of one program
// The same of a tiny one.
constexpr int kRoundsTiny = 12;
constexpr std::size_t kMostTriedTiny = 200;
// What may be tried is counted in recorded operators, some 15 microseconds each: an export learns
// the same on a busy machine. The clock only ends what hangs.
constexpr std::int64_t kMostOperators = 400'000;
// Of a model of a few operators, whose loops may be long where the sizes are.
constexpr std::int64_t kMostOperatorsTiny = 120'000;
constexpr std::int64_t kSpareOperators = 30'000;  // of ways to questions that were looked behind
constexpr int kOfFamily = 8;  // steps of a loop, of which the others are taken to be the same
constexpr std::size_t kMostUnlike = 24;  // steps that are not
constexpr double kMostSeconds = 60.0;
constexpr std::size_t kMostApart = 8;
constexpr std::int64_t kFarVolume = 1 << 18;  // elements of the inputs of a far run
constexpr std::int64_t kFarOperators = 100'000;
// Where no integer was fitted, a few runs look for what went where no memory is kept.
constexpr std::int64_t kKnownOperators = 1'500, kKnownVolume = 1 << 12;
constexpr double kFarSeconds = 20.0;
constexpr std::int64_t kQuick = 1'500;  // operators of a run that is worth a few more beside it
// Elements of the inputs; or some times those of the example.
constexpr std::int64_t kLargestTrial = 1 << 24, kTimesExample = 4;

using Once = std::tuple<std::string, int, Setting>;

Once once_of(const Questions::Other& other) { return {other.key, other.symbol, other.setting}; }

// A size that decides in more ways than can be tried is fixed: what is left would be guesses.
Trouble too_many(const Row& row, const Questions::Other& other) {
  const std::string& symbol = row.probed->symbols.at(static_cast<std::size_t>(other.symbol)).name;
  const std::string& source =
      row.built.questions.at(static_cast<std::size_t>(other.question)).source;
  Trouble trouble;
  trouble.program = row.id;
  trouble.culprit = other.symbol;
  trouble.code = ErrorCode::kUnsolved;
  trouble.evidence.why = Why::kFailed;
  trouble.evidence.text =
      "it decides in more ways than can be tried, the last of them at " + source;
  trouble.own = std::make_exception_ptr(
      Error(ErrorCode::kUnsolved, "[export] Expected a model that goes few ways by " + symbol +
                                      ", got more than can be tried (the last of them at " +
                                      source + "). Fix the size, or declare a smaller range."));
  return trouble;
}

}  // namespace

Ask Lab::ask_about(const Row& row) const {
  Ask ask;
  ask.program = row.id;
  for (std::size_t k = 0; k < row.probed->symbols.size(); ++k)
    ask.ranges.push_back(range_of(row, k));
  return ask;
}

// A run that a question led to costs its operators, and something in any case.
Task<Ran> Lab::try_at(Row& row, Sizes sizes, bool spare) {
  constexpr std::int64_t kLeast = 100;
  Ran ran = co_await run_at(row, std::move(sizes), row.probed->runs[0].run, spare);
  recorded_ += std::max(row.built.operators, ran.operators) + kLeast;
  co_return ran;
}

Task<void> Lab::settle_questions(Row& row) {
  const double start = asking_.clock_;
  const std::int64_t begun = recorded_;
  const bool tiny = is_tiny(row.built.operators);
  const std::int64_t budget = tiny ? kMostOperatorsTiny : kMostOperators;
  const auto late = [&] {
    return recorded_ - begun > budget || asking_.clock_ - start > kMostSeconds;
  };
  std::set<Once> asked;
  std::map<std::string, int> alike;  // by family; -1: some are not
  const auto is_known = [&](const Questions::Other& other) {
    return !other.family.empty() && alike[other.family] >= kOfFamily;
  };
  const bool far = co_await go_far(row);
  if (far) co_await build(row);
  const std::size_t most = tiny ? kMostTriedTiny : kMostTried;
  for (int round = 0; round < (tiny ? kRoundsTiny : kRounds); ++round) {
    bool learnt = false;
    const Questions questions = co_await ask<Questions>(ask_about(row));
    for (const Questions::Other& other : questions.others) {
      if (other.rest || asked.size() >= most || late()) continue;
      if (other.spare && recorded_ - begun > kSpareOperators) continue;
      if (is_known(other)) continue;
      if (asked.contains(once_of(other)) || row.required.contains(other.key)) continue;
      asked.insert(once_of(other));
      const bool more = co_await settle(
          row, other, row.built.questions.at(static_cast<std::size_t>(other.question)));
      learnt = more || learnt;
      int& same = alike[other.family];
      same = more && same >= 0 ? same + 1 : -1;
    }
    const std::vector<Setting> thin = row.built.thin;
    for (const Setting& setting : thin) {
      const Once once{"", -1, setting};
      if (setting.size() != row.probed->symbols.size() || late()) continue;
      if (!asked.insert(once).second) continue;
      const bool more = co_await go_around(row, setting);
      learnt = more || learnt;
    }
    const std::vector<Setting> unseen = row.built.unseen;
    for (Setting setting : unseen) {
      setting.resize(row.probed->symbols.size());
      if (!tiny || late() || !asked.insert({"", -1, setting}).second) continue;
      const bool more = co_await go_to(row, std::move(setting));
      learnt = more || learnt;
    }
    if (!learnt) break;
    co_await build(row);
  }
  std::set<std::string> done;
  const Questions left = co_await ask<Questions>(ask_about(row));
  std::map<std::string, std::size_t> of_family;
  for (std::size_t n = 0; n < left.others.size(); ++n) {
    const Questions::Other& other = left.others[n];
    // More steps of a loop, each of which does something else, than are ever named.
    const bool unlike = !other.family.empty() && alike[other.family] < 0 &&
                        ++of_family[other.family] >= kMostUnlike;
    if (tiny && other.symbol >= 0 && (other.rest || unlike)) throw Refusal{too_many(row, other)};
    if (other.rest) continue;
    const Built::Question& question =
        row.built.questions.at(static_cast<std::size_t>(other.question));
    Fact fact;
    fact.of = row.id;
    fact.size = row.probings;
    fact.evidence.key = other.key;
    // A run that was made there and went another way, by what it read, has settled nothing.
    const bool open =
        !other.spare && !is_known(other) && (other.by_values || !asked.contains(once_of(other)));
    if (open && question.kind != Built::Kind::kRival && !row.required.contains(other.key)) {
      fact.kind = FactKind::kRequired;
      fact.evidence.why = Why::kUntried;
      fact.evidence.source = question.source;
      row.required[other.key] = fact.evidence;
      (void)ledger_.add(fact);
    }
    if (!row.required.contains(other.key) || !done.insert(other.key).second) continue;
    Require require;
    require.program = row.id;
    require.question = static_cast<int>(n);
    const Met met = co_await ask<Met>(require);
    if (met.met) continue;
    fact.kind = FactKind::kDoubtful;
    fact.evidence = row.required[other.key];
    fact.evidence.key = other.key;
    fact.evidence.source = question.source;
    (void)ledger_.add(std::move(fact));
  }
}

// Runs at sizes far from those that ran: where an integer only fits the runs, it may be another one
// there. Where the model refuses, or executes other operators for no reason that it told, it is
// left to the checks.
Task<bool> Lab::go_far(Row& row) {
  const double start = asking_.clock_;
  const std::int64_t begun = recorded_;
  const std::size_t before = row.crossed.size();
  const std::int64_t most = row.built.fitted ? kFarOperators : kKnownOperators;
  const std::int64_t example = elements(sizes_at(*row.probed, row.probed->runs[0].values));
  const std::int64_t volume = row.built.fitted ? kFarVolume : std::max(kKnownVolume, 2 * example);
  const std::vector<Setting> settings = far_settings(*row.probed, 11);
  for (const Setting& setting : settings) {
    Sizes sizes = sizes_at(*row.probed, setting);
    if (elements(sizes) > std::min(volume, kFarVolume)) continue;
    if (recorded_ - begun > most || asking_.clock_ - start > kFarSeconds) break;
    const Ran ran = co_await try_at(row, std::move(sizes), true);
    if (ran.run >= 0) row.crossed.push_back({ran.run, setting});
    if (ran.parted) row.parted_far.push_back(setting);
  }
  co_return row.crossed.size() > before;
}

// Runs the model there. True where another run is to be solved.
Task<bool> Lab::settle(Row& row, Questions::Other other, Built::Question question) {
  Sizes sizes = sizes_at(*row.probed, other.setting);
  const bool ours = question.kind == Built::Kind::kRival;
  Evidence why;
  const std::int64_t largest = std::max(kLargestTrial, kTimesExample * elements(row.example));
  if (!ours && elements(sizes) > largest) {
    why.why = Why::kTooLarge;
    why.key = other.key;
    why.source = question.source;
    co_await stop_before(row, other, why);
    co_return false;
  }
  const bool costly = is_costly(row, sizes);
  const Ran ran = co_await try_at(row, std::move(sizes), costly);
  if (ran.run >= 0) {
    row.crossed.push_back({ran.run, other.setting});
    if (row.built.operators < kQuick && !ours) co_await go_further(row, other);
    co_return true;
  }
  if (ours) co_return false;
  if (ran.parted) {
    const bool elsewhere = co_await runs_elsewhere(row, other);
    if (elsewhere) co_return true;
    why = branches(ran);
  } else if (ran.absent) {  // it needs its weights there
    why.why = Why::kTooLarge;
    why.key = other.key;
    why.source = question.source;
  } else {
    why.why = Why::kRefused;
    why.text = ran.error;
  }
  co_await stop_before(row, other, why);
  co_return false;
}

// Whether the same operators are executed behind what looks like a bound of one symbol, where
// another symbol is as large (max(height, width) > 112) or has left a bound of its own (height < 16
// or width < 16): then it is no bound of the first, and the questions about both tell where the
// program ends.
Task<bool> Lab::runs_elsewhere(Row& row, Questions::Other other) {
  if (!other.bound || other.symbol < 0) co_return false;
  const auto k = static_cast<std::size_t>(other.symbol);
  const Setting base = row.probed->runs[0].values;
  const std::size_t before = row.crossed.size();
  const std::vector<Sizes> elsewhere = row.elsewhere;
  for (const Sizes& sizes : elsewhere) {
    std::optional<Setting> setting = setting_of(*row.probed, sizes);
    if (!setting || ((*setting)[k] < base[k]) != (other.setting[k] < base[k])) continue;
    (*setting)[k] = other.setting[k];
    const Ran ran = co_await try_at(row, sizes_at(*row.probed, *setting), true);
    if (ran.run >= 0) row.crossed.push_back({ran.run, std::move(*setting)});
  }
  if (row.crossed.size() > before) co_return true;
  if (other.setting[k] >= base[k]) co_return false;
  for (std::size_t j = 0; j < base.size(); ++j) {
    if (j == k || base[j] >= base[k] || row.probed->symbols[j].max < base[k]) continue;
    Setting setting = changed(other.setting, j, base[k]);
    const Ran ran = co_await try_at(row, sizes_at(*row.probed, setting), true);
    if (ran.run < 0) continue;
    row.crossed.push_back({ran.run, std::move(setting)});
    co_return true;
  }
  co_return false;
}

// A number that forgot where it comes from looks like a constant where one run alone is on that
// side.
Task<void> Lab::go_further(Row& row, Questions::Other other) {
  if (other.symbol < 0) {  // several sizes led there together: each of them may be part of it
    if (is_tiny(row.built.operators)) (void)co_await go_around(row, other.setting);
    co_return;
  }
  const auto k = static_cast<std::size_t>(other.symbol);
  const std::int64_t size = other.setting[k];
  std::vector<std::int64_t> sizes = {size - 1, size - 3, size / 2};
  if (size > row.probed->runs[0].values[k]) sizes = {size + 1, size + 5, 2 * size + 1};
  co_await go_beside(row, other.setting, k, std::move(sizes));
}

// True where there is another run at sizes beside these.
Task<bool> Lab::go_around(Row& row, Setting setting) {
  const std::size_t before = row.crossed.size();
  for (std::size_t k = 0; k < setting.size(); ++k) {
    std::vector<std::int64_t> sizes = {setting[k] + 1, setting[k] - 1, setting[k] + 2,
                                       setting[k] / 2};
    if (row.built.operators < kQuick) sizes.insert(sizes.end(), {100, 257});
    // Where the question is whether two sizes are equal, they are beside it together.
    const bool first = std::find(setting.begin(), setting.begin() + static_cast<std::ptrdiff_t>(k),
                                 setting[k]) == setting.begin() + static_cast<std::ptrdiff_t>(k);
    if (first && std::count(setting.begin(), setting.end(), setting[k]) > 1) {
      for (const std::int64_t size : sizes) {
        Setting together = setting;
        std::replace(together.begin(), together.end(), setting[k], size);
        (void)co_await go_to(row, std::move(together));
      }
    }
    co_await go_beside(row, setting, k, std::move(sizes));
  }
  co_return row.crossed.size() > before;
}

// True where there is another run at these sizes.
Task<bool> Lab::go_to(Row& row, Setting setting) {
  for (std::size_t k = 0; k < setting.size(); ++k) {
    const auto [least, most] = range_of(row, k);
    if (setting[k] < std::max<std::int64_t>(1, least) || setting[k] > most) co_return false;
  }
  Sizes tried = sizes_at(*row.probed, setting);
  if (elements(tried) > kFarVolume) co_return false;
  const Ran ran = co_await try_at(row, std::move(tried), true);
  // Another program, where a size beside it was this one: maybe no question separates them. The
  // checks find out whether the file is right there.
  if (ran.parted && row.apart.size() < kMostApart) row.apart.push_back(setting);
  if (ran.run >= 0) row.crossed.push_back({ran.run, std::move(setting)});
  co_return ran.run >= 0;
}

Task<void> Lab::go_beside(Row& row, Setting setting, std::size_t k,
                          std::vector<std::int64_t> sizes) {
  for (const std::int64_t size : sizes) (void)co_await go_to(row, changed(setting, k, size));
}

// The program ends at that question: a bound of a symbol, or a requirement of the file.
Task<void> Lab::stop_before(Row& row, Questions::Other other, Evidence why) {
  const bool another = why.why == Why::kBranches;
  const auto k = static_cast<std::size_t>(other.symbol);
  const bool bound = other.bound && other.symbol >= 0;
  const std::int64_t size = bound ? other.setting[k] : 0;
  if (bound && size > row.probed->symbols[k].tried.back()) {
    co_await end_at(row, k, size - 1, another ? size : 0, why);
  } else if (bound && size < row.probed->symbols[k].tried.front()) {
    bool held = false;
    if (another && may_open()) held = co_await below(row, k, size + 1, why);
    (void)raise_minimum(row, k, size + 1, why, held);
  } else {
    row.required[other.key] = why;
    bool held = false;
    if (another && request_.several && !request_.strict) {
      held = co_await aside(row, other.setting, other.key, why);
    }
    Fact fact;
    fact.of = row.id;
    fact.kind = FactKind::kRequired;
    fact.size = row.probings;
    fact.evidence = why;
    fact.evidence.key = other.key;
    fact.taken = held;
    (void)ledger_.add(std::move(fact));
  }
}

Task<void> Lab::end_at(Row& row, std::size_t k, std::int64_t most, std::int64_t size,
                       Evidence why) {
  bound_symbol(*row.probed, k, 1, most);
  const std::vector<Place> places = places_of(*row.probed, k);
  const bool parted = std::any_of(places.begin(), places.end(),
                                  [&](const Place& p) { return row.parted_at.contains(p); });
  bool open = size > 0 && may_open() && !parted;
  // Its example would have to be run with weights, and many more around it.
  open =
      open && !is_costly(row, sizes_at(*row.probed, changed(row.probed->runs[0].values, k, size)));
  if (open) {
    for (const auto& [place, unit] : units_of(*row.probed, k)) row.parted_at[place] = size * unit;
  }
  (void)lower_maximum(row, k, most, why, open);
  if (open) co_await above(row, k, most, size);
}

}  // namespace fairlead
