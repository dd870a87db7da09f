// Writes and reads transcripts by the lists of fields. What a field is by default is left out.
#include "fairlead/experiment/transcript.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "fairlead/base/error.h"
#include "fairlead/experiment/fields.h"

namespace fairlead {
namespace {

constexpr int kVersion = 1;

// ---- writing ------------------------------------------------------------------------------------

void write(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(byte));
      out += code;
    } else {
      out += c;
    }
  }
  out += '"';
}

void write(std::string& out, bool value) { out += value ? "true" : "false"; }

template <std::integral T>
void write(std::string& out, T value) {
  out += std::to_string(value);
}

// In the fewest digits that are read back as the same. JSON has no infinity, and no NaN: these are
// texts.
void write(std::string& out, double value) {
  char digits[32];
  const std::string text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (std::isfinite(value)) {
    out += text;
  } else {
    write(out, text);
  }
}

template <typename E>
  requires std::is_enum_v<E>
void write(std::string& out, E value) {
  write(out, std::string(EnumNames<E>::names.at(static_cast<std::size_t>(value))));
}

template <typename A, typename B>
void write(std::string& out, const std::pair<A, B>& pair);
template <typename T>
  requires requires(const T* v) { fields(v); }
void write(std::string& out, const T& value);

template <typename T>
void write(std::string& out, const std::vector<T>& list) {
  out += '[';
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (k > 0) out += ',';
    write(out, list[k]);
  }
  out += ']';
}

template <typename A, typename B>
void write(std::string& out, const std::pair<A, B>& pair) {
  out += '[';
  write(out, pair.first);
  out += ',';
  write(out, pair.second);
  out += ']';
}

template <typename T>
  requires requires(const T* v) { fields(v); }
void write(std::string& out, const T& value) {
  const T otherwise{};
  bool first = true;
  const auto one = [&](const auto& f) {
    std::string text, usual;
    write(text, value.*f.member);
    write(usual, otherwise.*f.member);
    if (text == usual) return;
    if (!first) out += ',';
    first = false;
    write(out, std::string(f.name));
    out += ':';
    out += text;
  };
  out += '{';
  std::apply([&](const auto&... f) { (one(f), ...); }, fields(static_cast<const T*>(nullptr)));
  out += '}';
}

std::string text_of(const Step& step) {
  std::string out = "\"" + std::string(kStepNames.at(step.index())) + "\",";
  std::visit([&](const auto& asked) { write(out, asked); }, step);
  return out;
}

// ---- reading ------------------------------------------------------------------------------------

using Json = simdjson::dom::element;

[[noreturn]] void not_one(const std::string& what) {
  throw Error(ErrorCode::kParse, "[replay] Expected a transcript of an experiment, got " + what +
                                     ". Write one with FAIRLEAD_TRANSCRIPT.");
}

template <typename T>
T get(const Json& json, const char* what) {
  T value;
  if (json.get(value) != simdjson::SUCCESS) not_one(std::string("no ") + what);
  return value;
}

void read(const Json& json, std::string& text) {
  text = std::string(get<std::string_view>(json, "text"));
}
void read(const Json& json, bool& value) { value = get<bool>(json, "truth value"); }

template <std::integral T>
void read(const Json& json, T& value) {
  if constexpr (std::is_unsigned_v<T>) {
    value = static_cast<T>(get<std::uint64_t>(json, "number"));
  } else {
    value = static_cast<T>(get<std::int64_t>(json, "number"));
  }
}

void read(const Json& json, double& value) {
  std::string_view text;
  if (json.get(text) == simdjson::SUCCESS) {
    value = std::strtod(std::string(text).c_str(), nullptr);
  } else {
    value = get<double>(json, "number");
  }
}

template <typename E>
  requires std::is_enum_v<E>
void read(const Json& json, E& value) {
  const auto name = get<std::string_view>(json, "name");
  const auto& names = EnumNames<E>::names;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (names[k] != name) continue;
    value = static_cast<E>(k);
    return;
  }
  not_one("'" + std::string(name) + "' for one of " + std::to_string(names.size()) + " names");
}

template <typename A, typename B>
void read(const Json& json, std::pair<A, B>& pair);
template <typename T>
  requires requires(const T* v) { fields(v); }
void read(const Json& json, T& value);

template <typename T>
void read(const Json& json, std::vector<T>& list) {
  list.clear();
  for (const Json item : get<simdjson::dom::array>(json, "list")) {
    T one{};
    read(item, one);
    list.push_back(std::move(one));
  }
}

template <typename A, typename B>
void read(const Json& json, std::pair<A, B>& pair) {
  const auto both = get<simdjson::dom::array>(json, "pair");
  if (both.size() != 2) not_one("a pair of " + std::to_string(both.size()));
  read(both.at(0).value(), pair.first);
  read(both.at(1).value(), pair.second);
}

template <typename T>
  requires requires(const T* v) { fields(v); }
void read(const Json& json, T& value) {
  const auto object = get<simdjson::dom::object>(json, "object");
  const auto one = [&](const auto& f) {
    Json found;
    if (object[f.name].get(found) == simdjson::SUCCESS) read(found, value.*f.member);
  };
  std::apply([&](const auto&... f) { (one(f), ...); }, fields(static_cast<const T*>(nullptr)));
}

template <std::size_t K = 0>
Answer answer_named(std::string_view name, const Json& json) {
  if constexpr (K == std::variant_size_v<Answer>) {
    not_one("an answer '" + std::string(name) + "'");
  } else {
    if (kAnswerNames[K] != name) return answer_named<K + 1>(name, json);
    std::variant_alternative_t<K, Answer> value{};
    read(json, value);
    return value;
  }
}

// As simdjson writes it, which has ways of its own to write numbers.
std::string minified(const Fact& fact) {
  std::string text;
  write(text, fact);
  simdjson::dom::parser parser;
  return simdjson::minify(parser.parse(text).value());
}

Json at(const Json& json, const char* key) {
  Json found;
  if (json[key].get(found) != simdjson::SUCCESS) not_one(std::string("none of '") + key + "'");
  return found;
}

}  // namespace

Transcript::Transcript(const Request& request) {
  text_ = "{\"fairlead\":" + std::to_string(kVersion) + ",\n\"request\":";
  write(text_, request);
  text_ += ",\n\"turns\":[";
}

void Transcript::add(const Step& step, const Answer& answer, double seconds) {
  text_ += first_ ? "\n[" : ",\n[";
  first_ = false;
  text_ += text_of(step) + ",\"" + std::string(kAnswerNames.at(answer.index())) + "\",";
  std::visit([&](const auto& given) { write(text_, given); }, answer);
  char took[32];
  std::snprintf(took, sizeof took, ",%.4f]", seconds);
  text_ += took;
}

std::string Transcript::text(const Experiment& experiment) const {
  std::string out = text_ + "\n],\n\"step\":[" + text_of(experiment.step()) + "],\n\"ledger\":[";
  bool first = true;
  for (const Fact& fact : experiment.ledger()) {
    out += first ? "\n" : ",\n";
    first = false;
    write(out, fact);
  }
  return out + "\n]}\n";
}

std::string replay(std::string_view transcript) {
  simdjson::dom::parser parser;
  Json json;
  if (parser.parse(transcript.data(), transcript.size()).get(json) != simdjson::SUCCESS) {
    not_one("something else");
  }
  Request request;
  read(at(json, "request"), request);
  Experiment experiment(request);
  std::size_t turn = 0;
  for (const Json item : get<simdjson::dom::array>(at(json, "turns"), "turns")) {
    const auto parts = get<simdjson::dom::array>(item, "turn");
    if (parts.size() != 5) not_one("a turn of " + std::to_string(parts.size()) + " parts");
    const std::string asked = "\"" +
                              std::string(get<std::string_view>(parts.at(0).value(), "step")) +
                              "\"," + simdjson::minify(parts.at(1).value());
    const std::string asks = text_of(experiment.step());
    if (asked != asks) {
      return "turn " + std::to_string(turn) + " asked " + asked + ", and asks " + asks;
    }
    const auto name = get<std::string_view>(parts.at(2).value(), "answer");
    const Answer given = answer_named(name, parts.at(3).value());
    const auto seconds = get<double>(parts.at(4).value(), "seconds");
    try {
      experiment.answer(given, seconds);
    } catch (const Error& error) {  // the request cannot be met: the experiment is over
      if (!experiment.over() || error.code() == ErrorCode::kInternal) throw;
    }
    ++turn;
  }
  const std::string step = text_of(experiment.step());
  const std::string ended = "[" + step + "]";
  if (ended != simdjson::minify(at(json, "step"))) return "it ended otherwise, and asks " + step;
  std::size_t number = 0;
  const std::vector<Fact>& facts = experiment.ledger();
  for (const Json item : get<simdjson::dom::array>(at(json, "ledger"), "ledger")) {
    std::string fact;
    if (number < facts.size()) fact = minified(facts[number]);
    const std::string was = simdjson::minify(item);
    if (fact != was) return "fact " + std::to_string(number) + " was " + was + ", and is " + fact;
    ++number;
  }
  return number == facts.size() ? "" : "it knows " + std::to_string(facts.size()) + " facts";
}

}  // namespace fairlead
