// A recursive descent parser, with one function for each rule of the grammar.
#include "tilewright/layout/syntax.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::layout {
namespace {

using Kind = SyntaxNode::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > max_expression_length)
      fail_at(max_expression_length,
              fmt::format("an expression has at most {} characters, got {}", max_expression_length, text.size()));
  }

  SyntaxNode whole() {
    SyntaxNode node = expression();
    if (at_ != text_.size()) fail_expected("the end");
    return node;
  }

 private:
  // Counts the depth of nesting while it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) { parser_.require_depth(++parser_.depth_); }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  SyntaxNode expression() {
    SyntaxNode node = term();
    if (peek_name() != "o") return node;
    const int start = node.column;
    std::vector<SyntaxNode> links;
    links.push_back(std::move(node));
    while (peek_name() == "o") {
      take_name();
      links.push_back(term());
    }
    return {Kind::composition, start, std::move(links)};
  }

  SyntaxNode term() {
    SyntaxNode shape = operand();
    if (!accept(':')) return shape;
    const int start = shape.column;
    std::vector<SyntaxNode> parts;
    parts.push_back(std::move(shape));
    parts.push_back(operand());
    return {Kind::layout, start, std::move(parts)};
  }

  SyntaxNode operand() {
    SyntaxNode node = primary();
    const int depth = depth_;
    while (peek() == '(') {
      // Each application contains the one before it: the tree gets deeper, the recursion does not.
      require_depth(++depth_);
      const int start = column();
      std::vector<SyntaxNode> parts = arguments('(', ')');
      parts.insert(parts.begin(), std::move(node));
      node = {Kind::application, start, std::move(parts)};
    }
    depth_ = depth;
    return node;
  }

  SyntaxNode primary() {
    const Nesting nesting(*this);
    const char next = peek();
    const int start = column();
    if (is_digit(next) || next == '-' || (next == '_' && is_digit(peek(1)))) return integer();
    if (next == '(') return {Kind::tuple, start, arguments('(', ')')};
    if (next == '<') return {Kind::tiler, start, arguments('<', '>')};
    if (!is_name(next)) fail_expected("an integer, '(', '<' or a name");
    const std::string name(take_name());
    if (name == "_") return leaf(start, _);
    if (name == "Sw") return swizzle(start);
    if (peek() != '(') fail_expected(fmt::format("'(' after {}", printable(name, 40)));
    SyntaxNode call(Kind::call, start, arguments('(', ')'));
    call.name = name;
    return call;
  }

  std::vector<SyntaxNode> arguments(char open, char close) {
    std::vector<SyntaxNode> result;
    expect(open);
    while (!accept(close)) {
      result.push_back(expression());
      if (peek() != close && !accept(',')) fail_expected(fmt::format("',' or '{}'", close));
    }
    return result;
  }

  SyntaxNode swizzle(int start) {
    SyntaxNode node(Kind::swizzle, start);
    for (const char before : {'<', ',', ','}) {
      expect(before);
      const int at = column();
      node.operands.push_back(leaf(at, digits()));
    }
    expect('>');
    return node;
  }

  SyntaxNode integer() {
    const int start = column();
    const std::int64_t value = digits();
    std::vector<int> path;  // innermost mode first, as written
    while (accept('@')) {
      const int at = column();
      const std::int64_t mode = digits();
      if (mode < 0 || mode > max_basis_mode)
        fail_at(at, fmt::format("a mode is 0 to {}, got {}", max_basis_mode, mode));
      if (path.size() == Basis::kMaxDepth) fail_at(at, fmt::format("a basis is at most {} deep", Basis::kMaxDepth));
      path.push_back(static_cast<int>(mode));
    }
    Basis basis;
    for (auto mode = path.rbegin(); mode != path.rend(); ++mode) basis = basis.child(*mode);
    return leaf(start, IntTuple::scaled_basis(value, basis));
  }

  static SyntaxNode leaf(int column, IntTuple value) {
    SyntaxNode node(Kind::leaf, column);
    node.leaf = std::move(value);
    return node;
  }

  std::int64_t digits() {
    const int start = column();
    const bool negative = accept('-');
    if (peek() == '_') ++at_;
    if (!is_digit(peek())) fail_expected("an integer");
    const char* first = text_.data() + at_;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc()) fail_at(start, "the integer does not fit in 63 bits");
    at_ += static_cast<std::size_t>(end - first);
    return negative ? -value : value;
  }

  void require_depth(int depth) {
    if (depth > max_expression_depth)
      fail_at(column(), fmt::format("an expression is nested at most {} deep", max_expression_depth));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  /// The character after the spaces, or one further on; 0 at the end.
  char peek(std::size_t ahead = 0) {
    skip_spaces();
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  std::string_view peek_name() {
    skip_spaces();
    std::size_t end = at_;
    if (end < text_.size() && !is_digit(text_[end])) {
      while (end < text_.size() && is_name(text_[end])) ++end;
    }
    return text_.substr(at_, end - at_);
  }

  std::string_view take_name() {
    const std::string_view name = peek_name();
    at_ += name.size();
    return name;
  }

  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail_expected(fmt::format("'{}'", c));
  }

  int column() {
    skip_spaces();
    return static_cast<int>(at_) + 1;
  }

  [[noreturn]] void fail_expected(const std::string& what) {
    const int here = column();
    const std::string found = at_ == text_.size() ? "the end" : "'" + printable(text_.substr(at_, 1)) + "'";
    fail_at(here, fmt::format("expected {}, got {}", what, found));
  }

  static constexpr std::int64_t max_basis_mode = 127;

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

SyntaxNode parse_syntax(std::string_view text) { return Parser(text).whole(); }

void fail_at(int column, std::string_view reason) {
  throw InvalidArgument(fmt::format("column {}: {}", column, reason));
}

}  // namespace tilewright::layout
