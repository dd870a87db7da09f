// Sentences about checks: what they do not prove, and why one failed.
#include <cstdio>
#include <string>
#include <vector>

#include "fairlead/experiment/describe.h"

namespace fairlead {
namespace {

// As in "differs by 0.0012".
std::string shown(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", number);
  return text;
}

// The same operator may be called otherwise.
std::string executes(const std::string& before, const std::string& now) {
  return now + (now == before ? " with other arguments" : " where it executed " + before);
}

std::string moved(const Evidence& e, const std::string& how) {
  return e.key + " differs by " + shown(e.differs) + " at " + e.at + "; eager itself by " +
         shown(e.moves) + " where its inputs are " + how;
}

std::string note(const Evidence& e) {
  switch (e.why) {
    case Why::kOverflows:
      return e.key + " is exact up to 2^53";
    case Why::kRounds:
      return moved(e, "rounded otherwise");
    case Why::kJumps:
      return moved(e, "moved by a step of rounding");
    case Why::kNothing:
      return "output '" + e.key + "' " + e.text + " at " + e.at;
    case Why::kTraced:
      return "at " + e.at +
             " the model computes something else when torch.compiler.is_compiling(); the file has "
             "what it computes then";
    case Why::kIntegers:
      return "with other integers at " + e.at + ", " + e.key + " " + e.text;
    default:
      return "";
  }
}

// Settings at which there was nothing to compare with: some of them.
std::string refused(const std::vector<std::string>& settings) {
  constexpr std::size_t kShown = 4;
  std::string words = "eager itself refuses ";
  for (std::size_t k = 0; k < settings.size() && k < kShown; ++k) {
    words += (k > 0 ? "; " : "") + settings[k];
  }
  if (settings.size() <= kShown) return words;
  return words + " and " + std::to_string(settings.size() - kShown) + " more";
}

std::string outside(const std::vector<Outside>& rows) {
  const Outside& first = rows.at(0);
  std::string words = first.place.empty() ? "the model returns " + first.what
                                          : first.place + " takes " + first.what;
  if (rows.size() > 1) words += " (and " + std::to_string(rows.size() - 1) + " more)";
  return words +
         " that was made outside of them (Python, NumPy, another thread, a kernel of its own) and "
         "changes with the values of the inputs";
}

}  // namespace

Reserves reserves(const std::vector<Fact>& facts, std::int64_t file) {
  Reserves found;
  std::vector<std::string> settings;
  for (const Fact& fact : facts) {
    if (fact.kind != FactKind::kUnproven || fact.size != file) continue;
    const Evidence& e = fact.evidence;
    if (e.why == Why::kRefused) {
      settings.push_back(e.at);
    } else if (e.why == Why::kPackage) {
      found.assumed.push_back({"values",
                               "executes " + executes(e.before, e.now) + " at other values (" +
                                   e.at + "): the file is for values like the example's there",
                               e.source});
    } else if (e.why == Why::kRemembers) {
      found.assumed.push_back({"state", e.text + ": the file computes the first call", e.source});
    } else {
      found.notes.push_back(note(e));
    }
  }
  if (!settings.empty()) found.notes.push_back(refused(settings));
  return found;
}

std::string cause_of(const Finding& f) {
  const std::string output = "output '" + f.output + "' " + f.text;
  switch (f.why) {
    case Why::kBranches:
      return "at " + f.at + " it executes " + executes(f.before, f.now) + ": it branches on " +
             (f.by_values ? "a value" : "a size or a value") + " there";
    case Why::kOutside:
      return outside(f.outside);
    case Why::kUnsteady:
      return "eager differs from itself: " + output + " between two calls at " + f.at;
    default:
      return output + " at " + f.at;
  }
}

std::string sentence_of(const Finding& f, const Around& around) {
  const std::string cause = cause_of(f);
  switch (f.why) {
    case Why::kBranches:
      return std::string("[verify] Expected the model to execute the same operators ") +
             (f.by_values ? "for all values" : "at every size") + ", but " + cause + ". " +
             around.nothing +
             (f.by_values ? " Write the choice with torch.where, or export each side as a model of "
                            "its own."
                          : " Fix that dimension, or give its bounds, with dynamic_shapes={..: {0: "
                            "Dim(\"n\", min=.., max=..)}}.");
    case Why::kOutside:
      return "[export] Expected everything that follows the inputs to come from PyTorch's "
             "operators, but " +
             cause + ". " + around.nothing +
             " Compute it with torch operators on tensors: torch.stack([a, b]) for "
             "torch.tensor([a, b]).";
    case Why::kUnsteady:
      return "[verify] Expected a model whose outputs repeat, but " + cause + ". " +
             around.nothing +
             " Something outside of the model decides: a counter, the time, a generator of Python "
             "or NumPy.";
    default:
      break;
  }
  std::string more;
  if (!around.read.empty()) {
    more +=
        " The model " + around.read + " at " + around.read_at + ": that assumption may be wrong.";
  }
  if (!around.drawn.empty()) {
    more += " It draws with " + around.drawn +
            ", and this output repeats: where it seeds a generator of its own, the file cannot "
            "draw the same. Draw ahead, and keep the numbers in a buffer.";
  }
  return "[verify] Expected " + around.runtime + " to agree with " + around.model + ", but " +
         cause + "." + more + " " + around.nothing;
}

}  // namespace fairlead
