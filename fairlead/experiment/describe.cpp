// Rows and sentences of a contract, from the ledger and the probings.
#include "fairlead/experiment/describe.h"

#include <algorithm>
#include <optional>
#include <set>

#include "fairlead/experiment/lab.h"
#include "fairlead/symbol/copy.h"

namespace fairlead {
namespace {

std::string first_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// The same operator may be called otherwise.
std::string instead(const Evidence& e) {
  return e.now + (e.now == e.before ? " with other arguments" : " instead of " + e.before);
}

class Describer {
 public:
  Describer(const Lab& lab, const ExprPool& pool, const std::vector<std::vector<Expr>>& shapes)
      : lab_(lab), pool_(pool), shapes_(shapes), programs_(lab.programs()) {}

  Described all() {
    const Row& root = lab_.row(0);
    const ProbeResult& probed = *root.probed;
    for (std::size_t k = 0; k < probed.symbols.size(); ++k) {
      const auto [least, most] = lab_.range_of(root, k);
      SymbolRow row{probed.symbols[k].name, probed.symbols[k].tried, least, most};
      for (const auto& [place, unit] : units_of(probed, k)) {
        if (unit != 1) continue;
        row.place = place;
        break;
      }
      found_.symbols.push_back(std::move(row));
    }
    for (const FixedDim& fixed : probed.fixed) {
      const Place place{fixed.leaf, fixed.axis};
      const auto& learnt = lab_.ledger_.limits(0).fixed;
      const bool branches = learnt.contains(place) || fixed.why == FixedDim::Why::kBranches;
      found_.fixed.push_back({place, fixed.size, why_fixed(root, fixed), branches});
    }
    for (std::string& note : notes_of(root)) found_.notes.push_back(std::move(note));
    for (const Fact& fact : lab_.ledger_.facts()) {
      if (fact.kind == FactKind::kClosed && lab_.row(fact.of).side == Side::kStep && tells(fact)) {
        found_.notes.push_back(closed(fact));
      }
    }
    if (programs_.size() > 1) of_several();
    return std::move(found_);
  }

 private:
  // ---- one program ------------------------------------------------------------------------------

  [[nodiscard]] std::string why_fixed(const Row& row, const FixedDim& fixed) const {
    const auto& learnt = lab_.ledger_.limits(row.id).fixed;
    const auto it = learnt.find({fixed.leaf, fixed.axis});
    if (it == learnt.end()) return fixed.reason;
    const Fact& fact = lab_.ledger_.facts().at(it->second);
    std::string words = words_of(fact.evidence);
    if (!fact.setting.empty()) {
      const Fact* end = lab_.ledger_.closing(static_cast<ProgramId>(fact.setting[0]));
      if (end != nullptr) words += "; " + closed(*end);
    }
    return words;
  }

  [[nodiscard]] static bool tells(const Fact& fact) {
    return fact.evidence.why != Why::kOuter && fact.evidence.why != Why::kDecided;
  }

  [[nodiscard]] std::string closed(const Fact& fact) const {
    return "the program at " + lab_.row(fact.of).words +
           " is not in the file: " + first_line(words_of(fact.evidence));
  }

  // What the file refuses of a program's sizes.
  [[nodiscard]] std::vector<std::string> notes_of(const Row& row) const {
    std::vector<std::string> notes;
    const auto add = [&](std::string note) {
      if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) {
        notes.push_back(std::move(note));
      }
    };
    const std::vector<Fact>& facts = lab_.ledger_.facts();
    std::set<std::string> ended, followed;  // symbols: a bound of this program, and what is beyond
    for (std::size_t n = lab_.ledger_.since(); n < facts.size(); ++n) {
      const Fact& fact = facts[n];
      if (fact.of == row.id) add(sentence(row, fact));
      if (fact.of == row.id && fact.kind == FactKind::kMost) {
        (fact.taken ? ended : followed).insert(fact.evidence.symbol);
      }
      if (fact.kind == FactKind::kOpened && lab_.row(fact.of).parent == row.id) {
        followed.insert(lab_.row(fact.of).symbol);
      }
      if (fact.kind == FactKind::kClosed && fact.of > 0 && lab_.row(fact.of).parent == row.id &&
          tells(fact)) {
        add(refused_by(lab_.row(fact.of), fact));
      }
    }
    for (const Built::Question& question : row.built.questions) {
      // Nothing was found on its other side, and the file stops there.
      if (question.kind != Built::Kind::kValue || has_other_values(row)) continue;
      add("the file requires " + question.words + ", which the model asks at " + question.source);
    }
    for (std::size_t k = 0; k < row.probed->symbols.size(); ++k) {
      const ProbedSymbol& symbol = row.probed->symbols[k];
      const std::int64_t most = lab_.most_of(row, k);
      const bool untold = ended.contains(symbol.name) && !followed.contains(symbol.name);
      if (most < kLargest && untold && programs_.size() == 1) {
        add("the file refuses " + symbol.name + " above " + std::to_string(most) +
            ": there the model executes another program");
      }
      if (!symbol.other_above || most < kLargest) continue;
      add("the file refuses " + symbol.name + " above " + std::to_string(symbol.max) + ": there " +
          symbol.reason);
    }
    return notes;
  }

  // Whether the file holds what the model executes at other values, too: by one question, with both
  // answers.
  [[nodiscard]] bool has_other_values(const Row& row) const {
    // Of several questions it is not known which one the other program is for.
    if (row.built.asked_of_values() != 1) return false;
    const std::vector<ProgramId> held = lab_.programs();
    return row.by_value || std::any_of(held.begin(), held.end(), [&](ProgramId id) {
             return lab_.row(id).by_value && lab_.row(id).parent == row.id;
           });
  }

  [[nodiscard]] static std::string sentence(const Row& row, const Fact& fact) {
    const Evidence& e = fact.evidence;
    const std::string refuses = "the file refuses ";
    const std::string size = std::to_string(fact.setting.empty() ? fact.size : fact.setting[0]);
    switch (fact.kind) {
      case FactKind::kLeast:
        if (e.why == Why::kGuarded) return e.symbol + ": at least 2, because " + words_of(e);
        return fact.taken ? "" : refuses + e.symbol + " below " + size + ": " + words_of(e);
      case FactKind::kMost:
        return fact.taken ? "" : refuses + e.symbol + " above " + size + ": " + words_of(e);
      case FactKind::kRequired:
        if (fact.taken || fact.size != row.probings) return "";
        if (e.why == Why::kUntried) {
          return refuses + e.key + ", asked at " + e.source + ": it was not tried";
        }
        return refuses + e.key + ": " + words_of(e);
      case FactKind::kDoubtful:
        if (fact.size != row.probings) return "";
        return "at " + e.key + " (asked at " + e.source + ") the file may differ: " + words_of(e);
      case FactKind::kUntaken:
        return refuses + one_size(e.symbol, fact.size) + ": " + words_of(e) +
               "; there are 6 programs in the file";
      case FactKind::kForgets:
        if (!row.forgets) return "";
        return "recorded with plain integers: with sizes that remember, the model computes "
               "something else";
      case FactKind::kPlain:
        return std::string("recorded as in plain eager: told that it is traced, the model ") +
               (e.why == Why::kTraced ? "computes something else" : "refuses the example");
      default:
        return "";
    }
  }

  [[nodiscard]] static std::string one_size(const std::string& symbol, std::int64_t size) {
    return symbol + (size == 1 ? " below 2" : " = " + std::to_string(size));
  }

  // What follows for the program that a closed one parts from.
  [[nodiscard]] std::string refused_by(const Row& row, const Fact& fact) const {
    const std::string refuses = "the file refuses ";
    const std::string size = std::to_string(row.size);
    const std::string cause = "; " + closed(fact);
    switch (row.side) {
      case Side::kBelow:
        return refuses + row.symbol + " below " + size + ": " + words_of(row.reason) + cause;
      case Side::kAt:
        return refuses + one_size(row.symbol, row.size) + ": " + words_of(row.reason) + cause;
      case Side::kAbove:
        return refuses + row.symbol + " above " + size + ": there the model executes " +
               instead(row.parting) + cause;
      case Side::kAside:
        return refuses + row.reason.key + ": " + words_of(row.reason) + cause;
      case Side::kExample:
      case Side::kStep:
        return "";
    }
    return "";
  }

  // ---- several programs -------------------------------------------------------------------------

  // Puts what the further programs change into what was said of the example's.
  void of_several() {
    std::erase_if(found_.fixed, [&](const FixedRow& row) {
      return !is_const(shapes_.at(row.place.leaf).at(row.place.axis));
    });
    const std::vector<SymbolRow> own = std::move(found_.symbols);
    found_.symbols.clear();
    const auto named = [](const std::vector<SymbolRow>& rows, const std::string& name) {
      return std::find_if(rows.begin(), rows.end(),
                          [&](const SymbolRow& row) { return row.name == name; });
    };
    for (std::size_t leaf = 0; leaf < shapes_.size(); ++leaf) {
      for (std::size_t axis = 0; axis < shapes_[leaf].size(); ++axis) {
        const std::optional<Multiple> multiple = as_multiple(shapes_[leaf][axis]);
        if (!multiple) continue;
        const std::string& name = pool_.symbols()[multiple->symbol].name;
        if (named(found_.symbols, name) != found_.symbols.end()) continue;
        const auto it = named(own, name);
        if (multiple->unit != 1) {
          if (it != own.end()) found_.symbols.push_back(*it);
          continue;
        }
        SymbolRow row = it != own.end() ? *it : SymbolRow{name, {}, 1, kLargest, {leaf, axis}};
        range_at({leaf, axis}, row);
        places_.emplace_back(name, Place{leaf, axis});
        found_.symbols.push_back(std::move(row));
      }
    }
    for (const ProgramId id : programs_) {
      if (id == 0) continue;
      const Row& row = lab_.row(id);
      const std::string where = where_of(row);
      found_.notes.push_back("at " + where + " the model executes another program (" +
                             in_parentheses(row.parting) + "): the file holds both");
      std::vector<std::string> more = notes_of(row);
      for (std::string& note : narrower(row)) more.push_back(std::move(note));
      for (const std::string& note : more) found_.notes.push_back("where " + where + ": " + note);
    }
    std::string own_sizes;
    for (const std::string& words : narrower(lab_.row(0))) {
      own_sizes += (own_sizes.empty() ? "the example's program: " : "; ") + words;
    }
    if (!own_sizes.empty()) found_.notes.push_back(own_sizes);
  }

  [[nodiscard]] static std::string in_parentheses(const Evidence& e) {
    return e.why == Why::kBranches && !e.now.empty() ? instead(e) : words_of(e);
  }

  // Sizes of a dimension that ran, and the bounds, over all programs.
  void range_at(const Place& place, SymbolRow& row) const {
    std::set<std::int64_t> tried;
    std::int64_t low = kLargest, high = 0;
    const auto widen = [&](std::int64_t least, std::int64_t most) {
      low = std::min(low, least);
      high = std::max(high, most);
    };
    for (const ProgramId id : programs_) {
      const Row& program = lab_.row(id);
      const ProbeResult& probed = *program.probed;
      std::set<std::int64_t> ran;
      for (const ProbedRun& run : probed.runs) {
        ran.insert(sizes_at(probed, run.values).at(place.leaf).at(place.axis));
      }
      tried.insert(ran.begin(), ran.end());
      const Expr e = probed.shapes.at(place.leaf).at(place.axis);
      if (e->kind == ExprKind::kConst) {
        widen(e->value, e->value);
      } else if (e->kind == ExprKind::kSymbol) {
        const auto [least, most] = lab_.range_of(program, static_cast<std::size_t>(e->value));
        widen(least, most);
      } else {
        widen(*ran.begin(), kLargest);
      }
    }
    row.tried.assign(tried.begin(), tried.end());
    row.min = low;
    row.max = high;
  }

  // Sizes that vary in the file and are fixed in a program although they do not decide.
  [[nodiscard]] std::vector<std::string> narrower(const Row& row) const {
    std::vector<std::string> said;
    if (row.side == Side::kStep) return said;  // they are all in its words
    for (const auto& [name, place] : places_) {
      const bool decides =
          row.id > 0 && std::find(row.places.begin(), row.places.end(), place) != row.places.end();
      if (!is_constant(*row.probed, place) || decides) continue;
      std::string words = name + " is " + text_at(*row.probed, place) + " only";
      for (const FixedDim& fixed : row.probed->fixed) {
        if (fixed.leaf != place.leaf || fixed.axis != place.axis) continue;
        if (!fixed.reason.empty()) words += ", " + why_fixed(row, fixed);
        break;
      }
      said.push_back(std::move(words));
    }
    return said;
  }

  // The sizes that the program turned out to be for.
  [[nodiscard]] std::string where_of(const Row& row) const {
    const ProbeResult& probed = *row.probed;
    if (row.side == Side::kStep) {  // a call of generation is known by what is fixed in its program
      std::string words;
      int count = 0;
      for (const auto& [name, place] : places_) {
        if (!is_constant(probed, place)) continue;
        ++count;
        if (count > 3) continue;
        words += (words.empty() ? "" : ", ") + name + " = " + text_at(probed, place);
      }
      return words.empty() ? row.words : words + (count > 3 ? ", ..." : "");
    }
    if (row.side != Side::kBelow && row.side != Side::kAbove) return row.words;
    const std::string outer = row.words.substr(0, row.words.rfind(row.symbol));
    const Expr e = probed.shapes.at(row.places[0].leaf).at(row.places[0].axis);
    if (e->kind != ExprKind::kSymbol) {
      return outer + row.symbol + " = " + text_at(probed, row.places[0]);
    }
    const auto [least, most] = lab_.range_of(row, static_cast<std::size_t>(e->value));
    return outer + row.symbol + " = " + std::to_string(least) +
           (most >= kLargest ? " and more" : " to " + std::to_string(most));
  }

  const Lab& lab_;
  const ExprPool& pool_;
  const std::vector<std::vector<Expr>>& shapes_;
  std::vector<ProgramId> programs_;
  std::vector<std::pair<std::string, Place>> places_;  // of the file's symbols
  Described found_;
};

}  // namespace

std::string words_of(const Evidence& e) {
  switch (e.why) {
    case Why::kBranches:
      if (!e.at.empty()) {
        return "at " + e.at + " it executes " + instead(e) +
               ": it branches on a size or a value there";
      }
      return e.now.empty() ? e.text : "the model executes " + instead(e);
    case Why::kRefused:
      return "the model refuses it: " + e.text;
    case Why::kEmpty:
      return "its size is 0, and at 3 the model raises " + e.text;
    case Why::kTooLarge:
      return e.key + " (" + e.source + ") is too large to be tried";
    case Why::kUntried:
      return "not tried";
    case Why::kEnds:
      return "that program has a largest size too";
    case Why::kUnchosen:
      return "no value that the model asks for chooses it";
    case Why::kGuarded:
      return "torch.export makes 1 another program";
    default:
      return e.text;
  }
}

Described describe(const Lab& lab, const ExprPool& pool,
                   const std::vector<std::vector<Expr>>& shapes) {
  return Describer(lab, pool, shapes).all();
}

}  // namespace fairlead
