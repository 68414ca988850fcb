// Splits PTX text into tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::emulator {

struct Token {
  enum class Kind : std::uint8_t {
    end,
    word,         // identifier, directive or dotted opcode: "%r1", ".reg", "ld.global.f32", "tid.x"
    integer,      // bits
    real,         // bits of an f64
    real_f32,     // bits of an f32, written 0f........
    text,         // a quoted string, without the quotes
    punctuation,  // one character
  };
  Kind kind = Kind::end;
  std::string_view text;
  std::uint64_t bits = 0;
  int line = 1;
  std::size_t begin = 0;  // offset in the text

  bool is(char punctuation_character) const { return kind == Kind::punctuation && text[0] == punctuation_character; }
  bool is(std::string_view word) const { return kind == Kind::word && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// The next token, consumed. @throws EmulationFinding on a malformed number or an unterminated string.
  Token next();

 private:
  void skip_blanks();
  Token number();

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

/// Throws a malformed_ptx finding at this line.
[[noreturn]] void refuse_ptx(int line, std::string reason);

}  // namespace tilewright::emulator
