// Looks for the other side of a guard by evaluating it: a few thousand sizes cost microseconds.
#include "fairlead/experiment/guards.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "fairlead/base/error.h"
#include "fairlead/experiment/tiny.h"

namespace fairlead {
namespace {

constexpr std::int64_t kScanned = 4200;  // every size up to here is looked at
constexpr std::int64_t kFarthest = std::int64_t{1} << 24;
constexpr std::size_t kMostFlips = 64;
constexpr std::size_t kMostOfFamily = 24;  // of one loop, so that they leave room for others
// Questions that differ by one number, from which on they are steps of a loop: nobody writes as
// many thresholds at equal distances.
constexpr std::size_t kRegular = 12;
constexpr std::size_t kMostWide = 48;   // questions for which more than their own sizes are moved
constexpr std::size_t kMostSpare = 24;  // at a time: the next look has others

using Step = GuardPath::Step;

void constants_in(Expr e, std::set<std::int64_t>& found) {
  // The end of an open slice is the largest number there is: nothing is looked for around it.
  if ((e->kind == ExprKind::kConst || e->kind == ExprKind::kMul) && e->value <= kFarthest &&
      e->value >= -kFarthest) {
    found.insert(std::abs(e->value));
  }
  if (e->kind == ExprKind::kReal) {
    const double value = std::abs(std::bit_cast<double>(e->value));
    if (value < static_cast<double>(kFarthest)) found.insert(static_cast<std::int64_t>(value));
  }
  for (Expr arg : e->args) constants_in(arg, found);
}

ProgramGuard answered(const Program& program, const Step& step) {
  ProgramGuard guard = program.guards.at(step.guard);
  guard.outcome = step.answer;
  return guard;
}

// Whether a run had that answer, or would have had it at its sizes; one that was not asked about a
// value that it read did not.
bool went(const Program& program, const GuardPath& path, const Step& step) {
  for (const Step& own : path.steps) {
    if (own.guard == step.guard) return own.answer == step.answer;
  }
  try {
    return answer_at(*program.graph.pool, program.guards[step.guard], path.setting) == step.answer;
  } catch (const Error&) {
    return false;
  }
}

// An expression but for its numbers, which are added.
void form_of(Expr e, std::string& form, std::vector<std::int64_t>& numbers) {
  form += static_cast<char>('A' + static_cast<int>(e->kind));
  if (e->kind == ExprKind::kSymbol) {
    form += std::to_string(e->value);
  } else if (e->kind == ExprKind::kConst || e->kind == ExprKind::kMul) {
    numbers.push_back(e->value);
  } else if (e->kind == ExprKind::kReal) {
    form += std::to_string(e->value);
  }
  for (const Expr arg : e->args) form_of(arg, form, numbers);
  form += ';';
}

// Whether one number tells these apart, and grows by equal steps, some of which may be missing.
bool is_regular(const std::vector<std::vector<std::int64_t>>& rows) {
  std::set<std::int64_t> varies;
  for (std::size_t k = 0; k < rows[0].size(); ++k) {
    std::set<std::int64_t> found;
    for (const auto& row : rows) found.insert(row[k]);
    if (found.size() == 1) continue;
    if (!varies.empty()) return false;
    varies = std::move(found);
  }
  if (varies.size() < kRegular) return false;
  std::int64_t step = INT64_MAX;
  for (auto it = varies.begin(), next = std::next(it); next != varies.end(); ++it, ++next) {
    if (*it < -kFarthest || *next > kFarthest) return false;
    step = std::min(step, *next - *it);
  }
  return std::all_of(varies.begin(), varies.end(),
                     [&](std::int64_t v) { return (v - *varies.begin()) % step == 0; });
}

// By guard: which of the loops that ask in every step it is of.
std::vector<std::string> families(const Program& program) {
  std::map<std::string, std::vector<std::size_t>> alike;
  std::vector<std::vector<std::int64_t>> numbers(program.guards.size());
  for (std::size_t g = 0; g < program.guards.size(); ++g) {
    const ProgramGuard& guard = program.guards[g];
    if (guard.right == nullptr || guard.rival) continue;
    std::string form = guard.source + "|" + std::to_string(static_cast<int>(guard.compare)) + "|";
    form_of(guard.left, form, numbers[g]);
    form_of(guard.right, form, numbers[g]);
    alike[form].push_back(g);
  }
  std::vector<std::string> found(program.guards.size());
  for (const auto& [form, members] : alike) {
    if (members.size() < kRegular) continue;
    std::vector<std::vector<std::int64_t>> rows;
    for (const std::size_t g : members) rows.push_back(numbers[g]);
    if (!is_regular(rows)) continue;
    for (const std::size_t g : members) found[g] = form;
  }
  return found;
}

class Looker {
 public:
  Looker(const Program& program, const std::vector<SymbolRange>& symbols)
      : program_(program),
        pool_(*program.graph.pool),
        symbols_(symbols),
        families_(families(program)) {}

  std::vector<Flip> look() {
    look_everywhere();
    if (found_.size() >= kMostFlips) add_rest();
    return std::move(found_);
  }

 private:
  using Way = std::vector<std::pair<std::size_t, bool>>;
  using Tree = std::map<Way, std::set<std::pair<std::size_t, bool>>>;

  void look_everywhere() {
    // Which answers were seen behind each way.
    Tree tree;
    for (const GuardPath& path : program_.paths) {
      Way way;
      for (const Step& step : path.steps) {
        tree[way].emplace(step.guard, step.answer);
        if (program_.guards[step.guard].both) way.emplace_back(step.guard, step.answer);
      }
    }
    // Every way through many questions with two answers is more than can be tried: then those that
    // had one answer so far are asked alone.
    // Where each number follows from one of them, their ways matter less.
    constexpr std::ptrdiff_t kFew = 10, kFewApart = 5;
    const auto both = std::count_if(program_.guards.begin(), program_.guards.end(),
                                    [](const ProgramGuard& g) { return g.both; });
    const bool few = both <= (program_.by_ways ? kFew : kFewApart);
    look_along_ways(tree, few, kMostFlips);
    // Where runs cost nothing, they are tried as far as it goes.
    if (!few && is_tiny_graph(program_.graph.nodes.size())) {
      const std::size_t known = found_.size();
      look_along_ways(tree, true, std::min(kMostFlips, known + kMostSpare));
      for (std::size_t k = known; k < found_.size(); ++k) found_[k].spare = !program_.by_ways;
    }
    if (found_.size() >= kMostFlips) return;
    // Questions that PyTorch asked, or we do: no run has them on its way.
    std::set<std::size_t> on_a_way;
    for (const GuardPath& path : program_.paths) {
      for (const Step& step : path.steps) on_a_way.insert(step.guard);
    }
    for (std::size_t g = 0; g < program_.guards.size(); ++g) {
      const ProgramGuard& guard = program_.guards[g];
      if (on_a_way.contains(g) || program_.paths.empty()) continue;
      look_behind(program_.paths[0], {}, {}, {g, guard.outcome});
      if (found_.size() >= kMostFlips) break;
    }
  }

  // What is left out is about the sizes that most of what was found is about.
  void add_rest() {
    std::map<SymbolId, std::size_t> counts;
    for (const Flip& flip : found_) {
      std::set<SymbolId> over;
      (void)of_sizes(program_.guards[flip.guard], over);
      for (const SymbolId s : over) ++counts[s];
    }
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    if (most == counts.end()) return;
    Flip flip;
    flip.guard = found_.back().guard;
    flip.symbol = static_cast<int>(most->first);
    flip.setting = found_.back().setting;
    flip.rest = true;
    found_.push_back(std::move(flip));
  }

  void push(Flip flip) {
    if (!flip.family.empty() && ++of_family_[flip.family] > kMostOfFamily) return;
    found_.push_back(std::move(flip));
  }

  void look_along_ways(Tree& tree, bool few, std::size_t most) {
    for (const GuardPath& path : program_.paths) {
      Way way;
      std::vector<Step> before;
      for (const Step& step : path.steps) {
        const auto& seen = tree[way];
        const bool open =
            few || (!program_.guards[step.guard].both && !alone_.contains(step.guard));
        if (open && !seen.contains({step.guard, !step.answer})) {
          const auto key = std::make_tuple(way, step.guard, step.answer);
          const std::size_t known = found_.size();
          // One that is asked alone is required alone, on whatever way it was reached.
          if (asked_.insert(key).second) look_behind(path, before, few ? way : Way{}, step);
          if (found_.size() > known) alone_.insert(step.guard);
        }
        before.push_back(step);
        if (program_.guards[step.guard].both) way.emplace_back(step.guard, step.answer);
        if (found_.size() >= most) return;
      }
    }
  }

  [[nodiscard]] bool of_sizes(const ProgramGuard& guard, std::set<SymbolId>& over) const {
    if (guard.right == nullptr) return false;
    for (const Expr e : {guard.left, guard.right}) {
      for (const SymbolId s : pool_.symbols_of(e)) over.insert(s);
    }
    return !over.empty() && *over.rbegin() < symbols_.size();
  }

  [[nodiscard]] bool answers(const Step& step, const std::vector<std::int64_t>& values) const {
    return answer_at(pool_, program_.guards[step.guard], values) == step.answer;
  }

  void shorten_way() {
    std::vector<ProgramGuard> guards;
    for (const Step& step : flip_.way) guards.push_back(answered(program_, step));
    std::vector<Step> way;
    for (const std::size_t k : not_implied(pool_, guards)) way.push_back(flip_.way[k]);
    flip_.way = std::move(way);
  }

  void look_behind(const GuardPath& path, const std::vector<Step>& before,
                   const std::vector<std::pair<std::size_t, bool>>& way, const Step& step) {
    const ProgramGuard& guard = program_.guards[step.guard];
    std::set<SymbolId> over;
    if (!of_sizes(guard, over)) return;  // a value that was read, or a key
    before_.clear();
    for (const Step& earlier : before) {
      std::set<SymbolId> ignored;
      if (of_sizes(program_.guards[earlier.guard], ignored)) before_.push_back(earlier);
    }
    flip_ = {};
    flip_.guard = step.guard;
    // Where several questions decide a number together, what it is behind one of them says nothing
    // of what it is behind the next.
    if (!program_.by_ways || way.empty()) flip_.family = families_[step.guard];
    for (const auto& [g, answer] : way) {
      if (program_.guards[g].right == nullptr) continue;
      flip_.way.push_back({g, answer});
      std::set<SymbolId> ignored;
      flip_.by_values = flip_.by_values || !of_sizes(program_.guards[g], ignored);
    }
    flip_.way.push_back({step.guard, !step.answer});
    shorten_way();
    for (const Step& part : flip_.way) {
      flip_.key += (flip_.key.empty() ? "" : " and ") + words_of(pool_, answered(program_, part));
    }
    other_ = {step.guard, !step.answer};
    base_.assign(path.setting.begin(),
                 path.setting.begin() + static_cast<std::ptrdiff_t>(symbols_.size()));
    const std::size_t known = found_.size();
    if (over.size() == 1) look_along(guard, *over.begin(), flip_.way.size() == 1);
    if (found_.size() == known && over.size() > 1) look_across(guard, over);
    if (found_.size() > known || looked_wide_ >= kMostWide) return;
    // What was asked before may have to be answered by the other sizes in it.
    const std::size_t own = over.size();
    grow(over);
    if (over.size() == own) return;
    ++looked_wide_;
    look_across(guard, over);
    if (found_.size() == known && over.size() > 2) look_in_threes(guard, over);
  }

  // By the sizes of questions before that share one with it, and of those before that share one
  // with these.
  void grow(std::set<SymbolId>& over) const {
    for (std::size_t before = 0; before != over.size();) {
      before = over.size();
      for (const Step& earlier : before_) {
        std::set<SymbolId> too;
        (void)of_sizes(program_.guards[earlier.guard], too);
        const auto shared = [&](SymbolId s) { return over.contains(s); };
        if (std::any_of(too.begin(), too.end(), shared)) over.insert(too.begin(), too.end());
      }
    }
  }

  [[nodiscard]] bool leads_there(const std::vector<std::int64_t>& values) const {
    return answers(other_, values) &&
           std::all_of(before_.begin(), before_.end(),
                       [&](const Step& step) { return answers(step, values); });
  }

  // The sizes to look at: small ones, powers of two, and what the guard's own numbers suggest.
  [[nodiscard]] std::vector<std::int64_t> sizes_for(const ProgramGuard& guard, SymbolId s) const {
    const std::int64_t least = std::max<std::int64_t>(1, symbols_[s].min);
    const std::int64_t most = std::min(symbols_[s].max, kFarthest);
    std::set<std::int64_t> found;
    for (std::int64_t v = least; v <= std::min(most, kScanned); ++v) found.insert(v);
    std::set<std::int64_t> numbers = {base_[s], 2 * base_[s]};
    for (std::int64_t p = 4096; p <= kFarthest; p *= 2) numbers.insert(p);
    constants_in(guard.left, numbers);
    constants_in(guard.right, numbers);
    const std::set<std::int64_t> single = numbers;
    for (const std::int64_t a : single) {
      for (const std::int64_t b : single) {
        if (a > 1 && b > 1 && a <= kFarthest / b) numbers.insert(a * b);
        if (b > 0) numbers.insert(a / b);
      }
    }
    for (const std::int64_t n : numbers) {
      for (std::int64_t v = n - 1; v <= n + 1; ++v) {
        if (v >= least && v <= most) found.insert(v);
      }
    }
    return {found.begin(), found.end()};
  }

  void look_along(const ProgramGuard& guard, SymbolId s, bool alone) {
    const std::vector<std::int64_t> sizes = sizes_for(guard, s);
    std::vector<std::int64_t> setting = base_;
    const auto there = [&](std::int64_t size) {
      setting[s] = size;
      return leads_there(setting);
    };
    const auto other = [&](std::int64_t size) {
      setting[s] = size;
      return answers(other_, setting);
    };
    // Far away only some sizes were looked at: the first behind the last that does not lead there.
    const auto nearest = [&](std::int64_t not_yet, std::int64_t found) {
      while (std::abs(found - not_yet) > 1) {
        const std::int64_t between = not_yet + (found - not_yet) / 2;
        (there(between) ? found : not_yet) = between;
      }
      return found;
    };
    const auto middle = std::lower_bound(sizes.begin(), sizes.end(), base_[s]);
    const auto up = std::find_if(middle, sizes.end(), there);
    if (up != sizes.end()) {
      const std::int64_t before = up == middle ? base_[s] : std::max(base_[s], *std::prev(up));
      add(s, nearest(before, *up),
          alone && std::find_if(middle, up, other) == up && std::all_of(up, sizes.end(), other));
    }
    const auto low = std::make_reverse_iterator(middle);
    const auto down = std::find_if(low, sizes.rend(), there);
    if (down != sizes.rend()) {
      const std::int64_t before = down == low ? base_[s] : std::min(base_[s], *std::prev(down));
      add(s, nearest(before, *down),
          alone && std::find_if(low, down, other) == down &&
              std::all_of(down, sizes.rend(), other));
    }
  }

  void add(SymbolId s, std::int64_t size, bool bound) {
    Flip flip = flip_;
    flip.setting = base_;
    flip.setting[s] = size;
    flip.symbol = static_cast<int>(s);
    flip.bound = bound;
    push(std::move(flip));
  }

  // Two symbols at a time, the nearest setting.
  void look_across(const ProgramGuard& guard, const std::set<SymbolId>& over) {
    std::set<std::int64_t> numbers = {1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 31, 64, 127};
    for (const SymbolId s : over) {
      for (const std::int64_t v : {base_[s] - 1, base_[s], base_[s] + 1, 2 * base_[s]}) {
        numbers.insert(v);
      }
    }
    constants_in(guard.left, numbers);
    constants_in(guard.right, numbers);
    for (const Step& step : before_) {
      constants_in(program_.guards[step.guard].left, numbers);
      constants_in(program_.guards[step.guard].right, numbers);
    }
    const std::set<std::int64_t> single = numbers;
    for (const std::int64_t a : single) {
      for (const std::int64_t b : {a - 1, a + 1, 2 * a}) numbers.insert(b);
    }
    const auto within = [&](SymbolId s, std::int64_t v) {
      return v >= std::max<std::int64_t>(1, symbols_[s].min) && v <= symbols_[s].max;
    };
    // Of two numbers that fit, the nearest sizes that tell them apart may be another program's: those
    // beyond every size that ran are tried as well.
    std::vector<std::int64_t> best, beyond;
    double nearest = INFINITY, nearest_beyond = INFINITY;
    for (const SymbolId a : over) {
      for (const SymbolId b : over) {
        if (b <= a) continue;
        std::vector<std::int64_t> setting = base_;
        for (const std::int64_t x : numbers) {
          if (!within(a, x)) continue;
          for (const std::int64_t y : numbers) {
            if (!within(b, y)) continue;
            setting[a] = x;
            setting[b] = y;
            // Equal sizes would be taken for one: they are the last to be tried.
            const double way = std::abs(static_cast<double>(x - base_[a])) +
                               std::abs(static_cast<double>(y - base_[b])) + (x == y ? 1e6 : 0);
            const bool larger = guard.rival && x >= base_[a] && y >= base_[b];
            if (way >= (larger ? nearest_beyond : nearest) || !leads_there(setting)) continue;
            if (larger) {
              nearest_beyond = way;
              beyond = setting;
            }
            if (way < nearest) {
              nearest = way;
              best = setting;
            }
          }
        }
      }
    }
    if (best.empty()) best = far_across(guard, over);
    if (best == beyond) beyond.clear();
    for (std::vector<std::int64_t>* setting : {&best, &beyond}) {
      if (setting->empty()) continue;
      Flip flip = flip_;
      flip.setting = std::move(*setting);
      push(std::move(flip));
    }
  }

  // Three symbols at a time, at a few sizes each.
  void look_in_threes(const ProgramGuard& guard, const std::set<SymbolId>& over) {
    std::set<std::int64_t> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64};
    const auto around = [&](Expr e) {
      std::set<std::int64_t> own;
      constants_in(e, own);
      for (const std::int64_t v : own) numbers.insert({v - 1, v, v + 1});
    };
    around(guard.left);
    around(guard.right);
    for (const SymbolId a : over) {
      for (auto b = over.upper_bound(a); b != over.end(); ++b) {
        for (auto c = std::next(b); c != over.end(); ++c) {
          std::vector<std::int64_t> setting = base_;
          const auto each = [&](SymbolId s, const auto& next) {
            return std::any_of(numbers.begin(), numbers.end(), [&](std::int64_t v) {
              if (v < std::max<std::int64_t>(1, symbols_[s].min) || v > symbols_[s].max) {
                return false;
              }
              setting[s] = v;
              return next();
            });
          };
          const bool there = each(a, [&] {
            return each(*b, [&] { return each(*c, [&] { return leads_there(setting); }); });
          });
          if (!there) continue;
          Flip flip = flip_;
          flip.setting = std::move(setting);
          push(std::move(flip));
          return;
        }
      }
    }
  }

  // One symbol far from the others, by products of the guard's numbers: m // 8 + f(n) < 40.
  [[nodiscard]] std::vector<std::int64_t> far_across(const ProgramGuard& guard,
                                                     const std::set<SymbolId>& over) const {
    std::set<std::int64_t> numbers;
    constants_in(guard.left, numbers);
    constants_in(guard.right, numbers);
    std::set<std::int64_t> sizes;
    for (const std::int64_t a : numbers) {
      for (const std::int64_t b : numbers) {
        if (a < 2 || b < 2 || a > kFarthest / b) continue;
        for (std::int64_t v = a * b - 1; v <= a * b + 1; ++v) sizes.insert(v);
      }
    }
    for (std::int64_t p = 256; p <= kFarthest; p *= 2) {
      sizes.insert(p);
      sizes.insert(p + 1);
    }
    for (const std::int64_t size : sizes) {
      for (const SymbolId s : over) {
        if (size < symbols_[s].min || size > symbols_[s].max) continue;
        std::vector<std::int64_t> setting = base_;
        setting[s] = size;
        if (leads_there(setting)) return setting;
      }
    }
    return {};
  }

  const Program& program_;
  ExprPool& pool_;
  const std::vector<SymbolRange>& symbols_;
  const std::vector<std::string> families_;
  std::vector<std::int64_t> base_;
  std::vector<Step> before_;
  Step other_{};
  Flip flip_;
  std::vector<Flip> found_;
  std::set<std::tuple<std::vector<std::pair<std::size_t, bool>>, std::size_t, bool>> asked_;
  std::set<std::size_t> alone_;
  std::map<std::string, std::size_t> of_family_;
  std::size_t looked_wide_ = 0;
};

}  // namespace

std::vector<Flip> flips(const Program& program, const std::vector<SymbolRange>& symbols) {
  return Looker(program, symbols).look();
}

std::string require(Program& program, const Flip& flip) {
  ExprPool& pool = *program.graph.pool;
  std::vector<ProgramGuard> way;
  for (const Step& step : flip.way) way.push_back(answered(program, step));
  const Expr there = all_hold(pool, way);
  if (there == nullptr) return {};
  const ProgramGuard last = answered(program, {flip.guard, !flip.way.back().answer});
  const Expr flag = pool.sub(pool.constant(1), there);
  // What ran is not refused: what led there was more than these questions tell.
  for (const GuardPath& path : program.paths) {
    const bool refused = std::all_of(flip.way.begin(), flip.way.end(),
                                     [&](const Step& step) { return went(program, path, step); });
    if (refused) return {};
  }
  const std::string words = flip.way.size() == 1 ? words_of(pool, last) : "not (" + flip.key + ")";
  program.graph.requirements.push_back({flag, words});
  return words;
}

}  // namespace fairlead
