// Reads graphs from text.
#include <algorithm>
#include <charconv>
#include <optional>

#include "fairlead/base/error.h"
#include "fairlead/graph/graph.h"
#include "fairlead/graph/text_impl.h"

namespace fairlead {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text), most_values_(kFreeValues + text.size()) {}

  [[nodiscard]] Graph read() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_number_;
      at_ = 0;
      read_line();
    }
    if (!open_.empty()) {
      ++line_number_;
      fail_at(0, "Expected 'end' of a body, got the end of the text");
    }
    graph_.symbol_sources.resize(graph_.pool->symbols().size());
    return std::move(graph_);
  }

 private:
  static constexpr int kMaxDepth = 200;
  // Values that nothing makes any more are not in the text, yet keep their numbers. More of them
  // than this is a slip of the pen, and would only cost memory.
  static constexpr std::size_t kFreeValues = std::size_t{1} << 20;

  [[noreturn]] void fail_at(std::size_t at, const std::string& sentence) const {
    throw Error(ErrorCode::kParse, "[parse_graph] " + sentence + " (line " +
                                       std::to_string(line_number_) + ", column " +
                                       std::to_string(at + 1) + ").");
  }

  [[noreturn]] void fail(const std::string& expected) const {
    std::string got = "the end of the line";
    if (at_ < line_.size()) got.assign({'\'', line_[at_], '\''});
    fail_at(at_, "Expected " + expected + ", got " + got);
  }

  // ---- tokens: blanks before a token are skipped ----------------------------------------------

  char peek() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) {
      ++at_;
    }
    return at_ < line_.size() ? line_[at_] : '\0';
  }

  bool accept(std::string_view token) {
    (void)peek();
    if (!line_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail("'" + std::string(token) + "'");
  }

  [[nodiscard]] std::string_view peek_word() {
    (void)peek();
    return word_at(line_, at_);
  }

  bool accept_word(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }

  [[nodiscard]] std::int64_t integer() {
    (void)peek();
    std::int64_t number = 0;
    const char* first = line_.data() + at_;
    const auto [end, status] = std::from_chars(first, line_.data() + line_.size(), number);
    if (status == std::errc::result_out_of_range) fail("a number of 64 bits");
    if (status != std::errc()) fail("a number");
    at_ += static_cast<std::size_t>(end - first);
    return number;
  }

  [[nodiscard]] ValueId value_number() {
    expect("%");
    const std::size_t start = at_;
    if (!is_digit(at_ < line_.size() ? line_[at_] : '\0')) fail("the number of a value");
    const std::int64_t number = integer();
    if (static_cast<std::size_t>(number) >= most_values_ || number > INT32_MAX) {
      fail_at(start, "Expected the number of a value below " + std::to_string(most_values_) +
                         ", got " + std::to_string(number));
    }
    return static_cast<ValueId>(number);
  }

  [[nodiscard]] int hex_digit() {
    const char c = at_ < line_.size() ? line_[at_] : '\0';
    if (!is_digit(c) && (c < 'a' || c > 'f')) fail("a hexadecimal digit");
    ++at_;
    return is_digit(c) ? c - '0' : c - 'a' + 10;
  }

  [[nodiscard]] std::string string() {
    expect("\"");
    std::string text;
    while (true) {
      if (at_ == line_.size()) fail("a closing '\"'");
      const char c = line_[at_++];
      if (c == '"') return text;
      if (c != '\\') {
        text += c;
      } else if (at_ < line_.size() && (line_[at_] == '"' || line_[at_] == '\\')) {
        text += line_[at_++];
      } else if (accept_here('n')) {
        text += '\n';
      } else if (accept_here('x')) {
        const int high = hex_digit();
        text += static_cast<char>(high * 16 + hex_digit());
      } else {
        fail("'n', 'x', '\"' or '\\' after '\\'");
      }
    }
  }

  bool accept_here(char c) {
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }

  [[nodiscard]] Dtype dtype() {
    const std::string_view word = peek_word();
    const auto found = parse_dtype(word);
    if (!found) fail("a dtype");
    at_ += word.size();
    return *found;
  }

  // Up to a comma or a closing bracket that belongs to what stands around it.
  [[nodiscard]] Expr expression() {
    (void)peek();
    const std::size_t start = at_;
    int depth = 0;
    for (; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == '`') at_ = std::min(line_.find('`', at_ + 1), line_.size() - 1);
      if (c == '(') ++depth;
      if (depth == 0 && (c == ',' || c == ')' || c == ']')) break;
      if (c == ')') --depth;
    }
    const std::size_t known = graph_.pool->symbols().size();
    Expr result = nullptr;
    try {
      result = graph_.pool->parse(line_.substr(start, at_ - start));
    } catch (const Error& error) {
      std::string inner = error.what();
      if (inner.ends_with('.')) inner.pop_back();
      fail_at(start, inner);
    }
    if (graph_.pool->symbols().size() != known) {
      fail_at(start, "Expected symbols that a line declares, got '" +
                         graph_.pool->symbols().back().name + "'");
    }
    return result;
  }

  // inf, -inf, nan, or a number with a point or an exponent; nullopt: something else stands there.
  [[nodiscard]] std::optional<double> accept_float() {
    (void)peek();
    const std::size_t sign = at_ < line_.size() && line_[at_] == '-' ? 1 : 0;
    const std::string_view word = word_at(line_, at_ + sign);
    const bool named = word == "inf" || word == "nan";
    if (!named && (word.empty() || (!is_digit(word[0]) && word[0] != '.'))) return std::nullopt;
    double number = 0;
    const char* first = line_.data() + at_;
    const auto [end, status] = std::from_chars(first, line_.data() + line_.size(), number);
    const std::string_view token(first, static_cast<std::size_t>(end - first));
    if (!named && token.find_first_of(".eE") == std::string_view::npos) return std::nullopt;
    if (status != std::errc()) fail("a number that a double can hold");
    at_ += token.size();
    return number;
  }

  // ---- lists ----------------------------------------------------------------------------------

  template <typename Read>
  void list(std::string_view close, Read read) {
    if (accept(close)) return;
    do {
      read();
    } while (accept(","));
    if (!accept(close)) fail("',' or '" + std::string(close) + "'");
  }

  [[nodiscard]] std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> numbers;
    expect("[");
    list("]", [&] { numbers.push_back(integer()); });
    return numbers;
  }

  // ---- lines ----------------------------------------------------------------------------------

  void read_line() {
    const char c = peek();
    if (c == '#' || at_ == line_.size()) return;
    if (c == '%' || c == '(' || peek_word() == "None") {
      read_node();
    } else if (accept_word("body")) {
      open_body();
    } else if (!open_.empty()) {
      read_body_line();
    } else if (accept_word("symbol")) {
      read_symbol();
    } else if (accept_word("input")) {
      const ValueId id = typed();
      make(id);
      graph_.inputs.push_back(id);
    } else if (accept_word("constant")) {
      read_constant();
    } else if (accept_word("output")) {
      graph_.output_names.push_back(string());
      expect("=");
      graph_.outputs.push_back(used_value());
    } else if (accept_word("require")) {
      std::string words = string();
      expect("=");
      graph_.requirements.push_back({expression(), std::move(words)});
    } else {
      fail("symbol, input, constant, output, require or a value");
    }
    (void)peek();
    if (at_ < line_.size()) fail("the end of the line");
  }

  // ---- bodies: read into a list of nodes of their own, then given to the node before them -------

  struct Open {
    Body body;
    std::vector<bool> outside;  // what was made before it
    bool finished = false;      // its results were read
  };

  [[nodiscard]] std::vector<Node>& nodes() {
    return open_.empty() ? graph_.nodes : open_.back().body.nodes;
  }

  void open_body() {
    if (nodes().empty() || (!open_.empty() && open_.back().finished)) fail("a node before a body");
    if (open_.size() >= kMaxDepth) fail("at most 200 nested bodies");
    // The results of the node itself are not seen inside.
    Open open;
    open.outside = made_;
    for (const ValueId id : nodes().back().outputs) {
      if (id != kNoValue) made_[id] = false;
    }
    open_.push_back(std::move(open));
  }

  void read_body_line() {
    Open& open = open_.back();
    if (!open.finished && accept_word("parameter")) {
      if (!open.body.nodes.empty()) fail("the parameters of a body before its nodes");
      const ValueId id = typed();
      make(id);
      open.body.inputs.push_back(id);
    } else if (!open.finished && accept_word("result")) {
      open.finished = true;
      (void)peek();
      if (at_ == line_.size()) return;
      do {
        open.body.outputs.push_back(used_value());
      } while (accept(","));
    } else if (open.finished && accept_word("end")) {
      Open done = std::move(open_.back());
      open_.pop_back();
      done.outside.resize(made_.size(), false);
      made_ = std::move(done.outside);
      nodes().back().bodies.push_back(std::move(done.body));
    } else {
      fail(open.finished ? "end" : "parameter, result or a value");
    }
  }

  void read_symbol() {
    (void)peek();
    const std::size_t start = at_;
    std::string_view name = peek_word();
    if (accept("`")) {
      const std::size_t end = line_.find('`', at_);
      if (end == std::string_view::npos) fail("a closing backquote");
      name = line_.substr(at_, end - at_);
      at_ = end + 1;
    } else if (!is_plain(name)) {
      fail("the name of a symbol");
    } else {
      at_ += name.size();
    }
    expect(":");
    const auto kind = std::find_if(kSymbolKinds.begin(), kSymbolKinds.end(),
                                   [&](const auto& row) { return accept_word(row.first); });
    if (kind == kSymbolKinds.end()) fail("size, data or read");
    const std::size_t id = graph_.pool->symbols().size();
    if (name.empty()) fail_at(start, "Expected the name of a symbol, got none");
    (void)graph_.pool->symbol(name, kind->second);
    if (graph_.pool->symbols().size() == id) {
      fail_at(start, "Expected every symbol once, got '" + std::string(name) + "' again");
    }
    graph_.symbol_sources.resize(id + 1);
    if (!accept("=")) return;
    SymbolSource& source = graph_.symbol_sources[id];
    source.value = value_number();
    reserve(source.value);
    expect("[");
    const std::size_t axis_at = at_;
    const std::int64_t axis = integer();
    if (axis < 0 || axis > INT32_MAX)
      fail_at(axis_at, "Expected an axis or an element of at least 0");
    source.axis = static_cast<int>(axis);
    expect("]");
    if (!accept("//")) return;
    const std::size_t divisor_at = at_;
    source.divisor = integer();
    if (source.divisor < 1) fail_at(divisor_at, "Expected a divisor of at least 1");
  }

  void read_constant() {
    Constant constant;
    constant.value = typed();
    make(constant.value);
    for (const Expr e : graph_.values[constant.value].shape) {
      if (!is_const(e)) fail_at(0, "Expected a constant whose sizes are numbers");
      constant.dims.push_back(e->value);
    }
    if (accept_word("strides")) {
      const std::size_t start = at_;
      constant.strides = integers();
      if (constant.strides.size() != constant.dims.size()) {
        fail_at(start, "Expected one stride for each of " + std::to_string(constant.dims.size()) +
                           " sizes, got " + std::to_string(constant.strides.size()));
      }
    }
    graph_.add_constant(std::move(constant));
  }

  void read_node() {
    Node node;
    if (accept("(")) {
      expect(")");
    } else {
      do {
        node.outputs.push_back(accept_word("None") ? kNoValue : typed());
      } while (accept(","));
    }
    expect("=");
    if (peek_word() == "random" && !line_.substr(at_).starts_with("random(")) {
      node.random = accept_word("random");
    }
    if (peek() == '"') {
      node.op = string();
    } else {
      const std::string_view word = peek_word();
      if (!is_plain(word)) fail("the name of an operator");
      node.op = word;
      at_ += word.size();
    }
    expect("(");
    list(")", [&] { node.args.push_back(arg(0)); });
    if (accept_word("in")) node.module = graph_.keep(string());
    if (accept_word("at")) node.source = graph_.keep(string());
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) make(id);
    }
    if (!open_.empty() && open_.back().finished)
      fail_at(0, "Expected 'end' after the results of a body");
    nodes().push_back(std::move(node));
  }

  // ---- values ---------------------------------------------------------------------------------

  void reserve(ValueId id) {
    const auto size = static_cast<std::size_t>(id) + 1;
    if (graph_.values.size() >= size) return;
    graph_.values.resize(size);
    made_.resize(size, false);
    seen_.resize(size, false);
  }

  void make(ValueId id) {
    if (seen_[id])
      fail_at(0, "Expected every value to be made once, got %" + std::to_string(id) + " again");
    made_[id] = seen_[id] = true;
  }

  [[nodiscard]] ValueId used_value() {
    const std::size_t start = at_;
    const ValueId id = value_number();
    if (static_cast<std::size_t>(id) >= made_.size() || !made_[id]) {
      fail_at(start, "Expected a value made on a line before, got %" + std::to_string(id));
    }
    return id;
  }

  [[nodiscard]] ValueId typed() {
    const ValueId id = value_number();
    Value value;
    if (peek() == '"') value.name = string();
    expect(":");
    value.dtype = dtype();
    expect("[");
    list("]", [&] { value.shape.push_back(expression()); });
    reserve(id);
    graph_.values[id] = std::move(value);
    return id;
  }

  // ---- arguments ------------------------------------------------------------------------------

  [[nodiscard]] Arg arg(int depth) {
    if (depth > kMaxDepth) fail("at most 200 nested lists");
    Arg result;
    const char c = peek();
    const std::string_view word = peek_word();
    if (c == '%') {
      result.kind = ArgKind::kValue;
      result.value = used_value();
    } else if (c == '"') {
      result.kind = ArgKind::kString;
      result.text = string();
    } else if (accept("[")) {
      result.kind = ArgKind::kList;
      list("]", [&] { result.items.push_back(arg(depth + 1)); });
    } else if (const auto number = accept_float()) {
      result.kind = ArgKind::kFloat;
      result.number = *number;
      if (accept("*")) read_base(result);
    } else if (accept_word("None")) {
      return result;
    } else if (word == "True" || word == "False") {
      result.kind = ArgKind::kBool;
      result.number = word == "True" ? 1 : 0;
      at_ += word.size();
    } else if (parse_dtype(word)) {
      result.kind = ArgKind::kDtype;
      result.dtype = dtype();
    } else {
      result.kind = ArgKind::kInt;
      result.expr = expression();
    }
    return result;
  }

  // number*(base)^power
  void read_base(Arg& result) {
    expect("(");
    result.expr = expression();
    expect(")");
    if (!accept("^")) return;
    const auto power = accept_float();
    if (!power) fail("a power with a point");
    result.power = *power;
  }

  std::string_view rest_;
  std::string_view line_;
  std::size_t line_number_ = 0;
  std::size_t at_ = 0;
  std::size_t most_values_;
  Graph graph_;
  std::vector<bool> made_;  // and not in a body that has ended
  std::vector<bool> seen_;  // made anywhere before
  std::vector<Open> open_;  // bodies that have not ended, the innermost last
};

}  // namespace

Graph parse_graph(std::string_view text) { return Reader(text).read(); }

}  // namespace fairlead
