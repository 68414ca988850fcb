// Words, numbers and strings of PTX.
#include "tilewright/emulator/ptx_lexer.hpp"

#include <bit>
#include <charconv>
#include <cstdlib>

#include "tilewright/base/text.hpp"
#include "tilewright/emulator/checks.hpp"

namespace tilewright::emulator {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool starts_word(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%' || c == '.'; }
bool continues_word(char c) { return starts_word(c) || is_digit(c); }

}  // namespace

void refuse_ptx(int line, std::string reason) {
  throw EmulationFinding(Finding{FindingKind::malformed_ptx, std::move(reason), std::nullopt, {line, {}, {}}, 0, {}});
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const char following = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\0') {
      ++at_;
    } else if (c == '/' && following == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '/' && following == '*') {
      const int opened = line_;
      at_ += 2;
      while (at_ + 1 < text_.size() && !(text_[at_] == '*' && text_[at_ + 1] == '/')) line_ += text_[at_++] == '\n';
      if (at_ + 1 >= text_.size()) refuse_ptx(opened, "the comment that begins here is not closed");
      at_ += 2;
    } else {
      return;
    }
  }
}

Token Lexer::number() {
  Token token{Token::Kind::integer, {}, 0, line_, at_};
  std::size_t end = at_;
  while (end < text_.size() &&
         (is_digit(text_[end]) || is_letter(text_[end]) || text_[end] == '.' ||
          ((text_[end] == '+' || text_[end] == '-') && (text_[end - 1] == 'e') && text_.substr(at_, 2) != "0x" &&
           text_.substr(at_, 2) != "0f" && text_.substr(at_, 2) != "0d")))
    ++end;
  std::string_view digits = text_.substr(at_, end - at_);
  token.text = digits;
  at_ = end;
  const auto fail = [&] { refuse_ptx(line_, fmt::format("malformed number \"{}\"", printable(digits, 40))); };
  const auto parse = [&](std::string_view part, int base) {
    const auto result = std::from_chars(part.data(), part.data() + part.size(), token.bits, base);
    if (part.empty() || result.ec != std::errc() || result.ptr != part.data() + part.size()) fail();
  };
  const std::string_view prefix = digits.substr(0, 2);
  if (prefix == "0f" || prefix == "0F") {
    token.kind = Token::Kind::real_f32;
    if (digits.size() != 10) fail();
    parse(digits.substr(2), 16);
  } else if (prefix == "0d" || prefix == "0D") {
    token.kind = Token::Kind::real;
    if (digits.size() != 18) fail();
    parse(digits.substr(2), 16);
  } else if (prefix == "0x" || prefix == "0X") {
    if (digits.back() == 'U') digits.remove_suffix(1);
    parse(digits.substr(2), 16);
  } else if (digits.find_first_of(".eE") != std::string_view::npos) {
    token.kind = Token::Kind::real;
    const std::string copy(digits);
    char* stop = nullptr;
    token.bits = std::bit_cast<std::uint64_t>(std::strtod(copy.c_str(), &stop));
    if (stop != copy.c_str() + copy.size()) fail();
  } else {
    if (digits.back() == 'U') digits.remove_suffix(1);
    if (prefix == "0b" || prefix == "0B") {
      parse(digits.substr(2), 2);
    } else {
      parse(digits, digits.size() > 1 && digits[0] == '0' ? 8 : 10);
    }
  }
  return token;
}

Token Lexer::next() {
  skip_blanks();
  if (at_ >= text_.size()) return {Token::Kind::end, {}, 0, line_, text_.size()};
  const std::size_t begin = at_;
  const char c = text_[at_];
  if (is_digit(c)) return number();
  if (c == '"') {
    const std::size_t close = text_.find_first_of("\"\n", at_ + 1);
    if (close == std::string_view::npos || text_[close] == '\n')
      refuse_ptx(line_, "a string is not closed on its line");
    at_ = close + 1;
    return {Token::Kind::text, text_.substr(begin + 1, close - begin - 1), 0, line_, begin};
  }
  if (starts_word(c)) {
    ++at_;
    while (at_ < text_.size()) {
      if (c == '.' && text_[at_] == '.') break;  // ".reg.b32" is a directive and a type
      if (continues_word(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_, 2) == "::" && at_ + 2 < text_.size() && continues_word(text_[at_ + 2])) {
        at_ += 2;
      } else {
        break;
      }
    }
    return {Token::Kind::word, text_.substr(begin, at_ - begin), 0, line_, begin};
  }
  ++at_;
  return {Token::Kind::punctuation, text_.substr(begin, 1), 0, line_, begin};
}

}  // namespace tilewright::emulator
