#include "tilewright/op/epilogue_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tilewright/base/spelling.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/expression.hpp"

namespace tilewright::op {
namespace {

/// Thrown to end the parse.
struct SyntaxError {
  std::size_t at;
  std::string reason;
};

enum class TokenKind : std::uint8_t { end, name, number, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  double number = 0.0;
  std::size_t at = 0;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  const Token& next() const { return next_; }
  bool is(std::string_view symbol) const { return next_.kind == TokenKind::symbol && next_.text == symbol; }
  Token take() {
    const Token taken = next_;
    advance();
    return taken;
  }
  bool take_if(std::string_view symbol) {
    if (!is(symbol)) return false;
    advance();
    return true;
  }
  void expect(std::string_view symbol) {
    if (!take_if(symbol)) fail("expected '{}', got {}", symbol, describe());
  }
  std::string_view expect_name(std::string_view what) {
    if (next_.kind != TokenKind::name) fail("expected {}, got {}", what, describe());
    return take().text;
  }

  template <class... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    throw SyntaxError{next_.at, fmt::format(format, std::forward<Arguments>(arguments)...)};
  }
  std::string describe() const {
    return next_.kind == TokenKind::end ? "the end" : fmt::format("'{}'", printable(next_.text, 40));
  }

 private:
  void advance() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    next_ = {TokenKind::end, {}, 0.0, at_};
    if (at_ == text_.size()) return;
    const char first = text_[at_];
    if (is_digit(first) || first == '.') return read_number();
    std::size_t length = 1;
    if (is_letter(first)) {
      next_.kind = TokenKind::name;
      while (at_ + length < text_.size() && (is_letter(text_[at_ + length]) || is_digit(text_[at_ + length]))) ++length;
    } else {
      next_.kind = TokenKind::symbol;
      const bool is_comparison = first == '<' || first == '>' || first == '=' || first == '!';
      if (is_comparison && at_ + 1 < text_.size() && text_[at_ + 1] == '=') length = 2;
    }
    next_.text = text_.substr(at_, length);
    at_ += length;
  }

  void read_number() {
    next_.kind = TokenKind::number;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), next_.number);
    if (error != std::errc{}) fail("the number is out of the range of f64");
    next_.text = text_.substr(at_, static_cast<std::size_t>(end - begin));
    at_ += next_.text.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Token next_;
};

class Parser {
 public:
  Parser(std::string_view text, const std::map<std::string, double>& scalars) : tokens_(text), scalars_(scalars) {}

  /// Returns D and the auxiliary outputs.
  std::pair<Expression, std::vector<NamedOutput>> parse() {
    while (tokens_.next().kind != TokenKind::end) {
      statement();
      if (!tokens_.take_if(";") && tokens_.next().kind != TokenKind::end)
        tokens_.fail("expected ';', got {}", tokens_.describe());
    }
    if (!d_) tokens_.fail("nothing is assigned to D");
    return {*d_, std::move(outputs_)};
  }

 private:
  void statement() {
    const bool is_local = tokens_.next().text == "let";
    if (is_local) tokens_.take();
    std::optional<Broadcast> broadcast = is_local ? std::nullopt : take_broadcast();
    const std::size_t at = tokens_.next().at;
    const std::string name{tokens_.expect_name("a name to assign to")};
    if (!broadcast && tokens_.next().text != "=")
      tokens_.fail("expected '=', got {}: a result is assigned to a name, as in 'D = relu(acc)'", tokens_.describe());
    if (is_taken(name)) throw SyntaxError{at, fmt::format("'{}' is already defined", name)};
    if (broadcast) tokens_.expect(")");
    tokens_.expect("=");
    const bool may_reduce = !is_local && name != "D";
    const NamedReduction* const reduction = may_reduce ? take_reduction(broadcast.has_value()) : nullptr;
    if (reduction != nullptr) return store_reduction(*reduction, name, broadcast.value_or(kSingle));
    if (broadcast)
      tokens_.fail("'{}' has shape {}: expected a reduction, got {}", name, op::name(*broadcast), tokens_.describe());
    Expression value = expression(0);
    names_.emplace(name, value);
    if (is_local) return;
    if (name == "D") {
      d_ = std::move(value);
    } else {
      outputs_.push_back({name, std::move(value)});
    }
  }

  /// Reads the shape and the parenthesis of an assignment such as "row(total) = ...", if there is one.
  std::optional<Broadcast> take_broadcast() {
    constexpr std::pair<std::string_view, Broadcast> kBroadcasts[] = {
        {"row", kRowVector}, {"column", kColumnVector}, {"single", kSingle}};
    for (const auto& [word, broadcast] : kBroadcasts) {
      if (tokens_.next().text != word) continue;
      tokens_.take();
      tokens_.expect("(");
      return broadcast;
    }
    return std::nullopt;
  }

  /// Reads the name of a reduction, if there is one. Without a shape on the left, "max" and "min" are functions.
  const NamedReduction* take_reduction(bool has_shape) {
    const NamedReduction* const reduction = find_reduction(tokens_.next().text);
    if (reduction == nullptr || (!has_shape && find_function(reduction->name) != nullptr)) return nullptr;
    tokens_.take();
    return reduction;
  }

  void store_reduction(const NamedReduction& reduction, const std::string& name, const Broadcast& broadcast) {
    tokens_.expect("(");
    const Expression value = bounded(reduction.of(expression(1)));
    tokens_.expect(")");
    if (!tokens_.is(";") && tokens_.next().kind != TokenKind::end)
      tokens_.fail("a reduction must end its statement, got {}", tokens_.describe());
    outputs_.push_back({name, value, reduction.reduction, broadcast});
    reduced_.insert(name);
  }

  static bool is_reserved(std::string_view name) {
    constexpr std::string_view kReserved[] = {"acc", "A",      "B",    "C",       "alpha",  "beta",      "row",
                                              "let", "column", "full", "convert", "single", "row_index", "column_index",
                                              "inf", "nan"};
    return std::ranges::find(kReserved, name) != std::end(kReserved) || find_function(name) != nullptr ||
           find_reduction(name) != nullptr;
  }
  bool is_taken(const std::string& name) const {
    return is_reserved(name) || names_.contains(name) || reduced_.contains(name);
  }

  static const NamedReduction* find_reduction(std::string_view name) {
    const auto found = std::ranges::find(reductions(), name, &NamedReduction::name);
    return found == reductions().end() ? nullptr : &*found;
  }

  static const NamedFunction* find_function(std::string_view name) {
    const auto found = std::ranges::find(functions(), name, &NamedFunction::name);
    return found == functions().end() ? nullptr : &*found;
  }

  Expression bounded(Expression value) const {
    if (std::ssize(value.nodes()) > kMaxEpilogueNodes) tokens_.fail("more than {} nodes", kMaxEpilogueNodes);
    return value;
  }

  Expression expression(int depth) {
    if (depth > kMaxEpilogueTextDepth) tokens_.fail("more than {} nested expressions", depth - 1);
    Expression x = sum(depth);
    using Compare = Expression (*)(const Expression&, const Expression&);
    constexpr std::pair<std::string_view, Compare> kComparisons[] = {
        {"<", operator<},
         {"<=", operator<= }, {">", operator> }, {">=", operator>= }, {"==", operator== }, {"!=", operator!= } };
    for (const auto& [symbol, compare] : kComparisons) {
      if (tokens_.take_if(symbol)) return bounded(compare(x, sum(depth)));
    }
    return x;
  }

  Expression sum(int depth) {
    Expression x = product(depth);
    for (;;) {
      if (tokens_.take_if("+")) {
        x = bounded(x + product(depth));
      } else if (tokens_.take_if("-")) {
        x = bounded(x - product(depth));
      } else {
        return x;
      }
    }
  }

  Expression product(int depth) {
    Expression x = unary(depth);
    for (;;) {
      if (tokens_.take_if("*")) {
        x = bounded(x * unary(depth));
      } else if (tokens_.take_if("/")) {
        x = bounded(x / unary(depth));
      } else {
        return x;
      }
    }
  }

  Expression unary(int depth) {
    if (depth > kMaxEpilogueTextDepth) tokens_.fail("more than {} nested expressions", depth - 1);
    if (tokens_.take_if("-")) return bounded(-unary(depth + 1));
    return primary(depth);
  }

  Expression primary(int depth) {
    if (tokens_.next().kind == TokenKind::number) return tokens_.take().number;
    if (tokens_.take_if("(")) {
      Expression x = expression(depth + 1);
      tokens_.expect(")");
      return x;
    }
    if (tokens_.take_if("$")) return launch_argument();
    const std::size_t at = tokens_.next().at;
    const std::string name{tokens_.expect_name("a value")};
    return tokens_.is("(") ? application(name, at, depth) : variable(name, at);
  }

  Expression launch_argument() {
    const std::size_t at = tokens_.next().at;
    const std::string name{tokens_.expect_name("the name of a launch argument")};
    if (name == "alpha" || name == "beta") return scalar(name);
    const auto found = scalars_.find(name);
    if (found == scalars_.end()) throw SyntaxError{at, fmt::format("${} has no value", name)};
    return scalar(name, found->second);
  }

  Expression variable(const std::string& name, std::size_t at) {
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    if (name == "acc") return acc();
    if (name == "C") return c();
    if (name == "alpha") return alpha();
    if (name == "beta") return beta();
    if (name == "row_index") return row_index();
    if (name == "column_index") return column_index();
    if (is_reserved(name)) throw SyntaxError{at, fmt::format("'{}' is not a value", name)};
    if (reduced_.contains(name))
      throw SyntaxError{at, fmt::format("'{}' is a reduction, which no expression can read", name)};
    return full(name);
  }

  Expression application(const std::string& name, std::size_t at, int depth) {
    tokens_.expect("(");
    using Leaf = Expression (*)(std::string);
    constexpr std::pair<std::string_view, Leaf> kLeaves[] = {
        {"row", row}, {"column", column}, {"single", single}, {"full", full}};
    for (const auto& [leaf, make] : kLeaves) {
      if (name != leaf) continue;
      const std::size_t label_at = tokens_.next().at;
      const std::string label{tokens_.expect_name("the name of a tensor")};
      if (is_taken(label)) throw SyntaxError{label_at, fmt::format("'{}' is not a tensor", label)};
      tokens_.expect(")");
      return make(label);
    }
    if (name == "convert") return conversion(depth);
    const NamedFunction* function = find_function(name);
    if (function == nullptr && find_reduction(name) != nullptr)
      throw SyntaxError{at, fmt::format("{} is a reduction, which must be assigned to an output of its own", name)};
    if (function == nullptr) {
      std::vector<std::string> known;
      for (const NamedFunction& each : functions()) known.emplace_back(each.name);
      throw SyntaxError{at, fmt::format("unknown function '{}'{}", name, suggestion(name, known))};
    }
    std::vector<Expression> inputs;
    do {
      inputs.push_back(expression(depth + 1));
    } while (tokens_.take_if(","));
    if (std::ssize(inputs) != function->arity)
      throw SyntaxError{at, fmt::format("{} takes {} inputs, got {}", name, function->arity, inputs.size())};
    tokens_.expect(")");
    return bounded(function->apply(inputs));
  }

  Expression conversion(int depth) {
    const std::size_t at = tokens_.next().at;
    const std::string_view name = tokens_.expect_name("a type");
    const std::optional<DType> type = parse_dtype(name);
    if (!type || !is_convertible(*type)) throw SyntaxError{at, fmt::format("cannot convert to '{}'", name)};
    tokens_.expect(",");
    Expression x = expression(depth + 1);
    tokens_.expect(")");
    return bounded(convert(*type, x));
  }

  Tokens tokens_;
  const std::map<std::string, double>& scalars_;
  std::map<std::string, Expression> names_;  // values assigned so far
  std::set<std::string> reduced_;            // names of the reductions
  std::optional<Expression> d_;
  std::vector<NamedOutput> outputs_;
};

}  // namespace

Result<Epilogue> parse_epilogue(std::string_view text, DType compute, const std::map<std::string, double>& scalars) {
  if (text.size() > kMaxEpilogueText) {
    return refuse("the text of an epilogue may have at most {} characters, got {}", kMaxEpilogueText, text.size());
  }
  try {
    auto [d, outputs] = Parser(text, scalars).parse();
    return make_epilogue("graph", compute, d, outputs);
  } catch (const SyntaxError& error) {
    return refuse("epilogue, character {}: {}", error.at + 1, error.reason);
  }
}

}  // namespace tilewright::op
