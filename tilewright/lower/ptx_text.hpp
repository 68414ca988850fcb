// The text of a program's instruction, with the names of its operands' registers.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/program/value.hpp"

namespace tilewright::lower {

/// The letter of a register's type in the constraints of inline assembly, which CUDA C++ and LLVM share.
constexpr char constraint(program::RegisterType type) {
  switch (type) {
    case program::RegisterType::b16:
      return 'h';
    case program::RegisterType::b32:
      return 'r';
    case program::RegisterType::b64:
      return 'l';
    case program::RegisterType::f32:
      return 'f';
    case program::RegisterType::f64:
      return 'd';
  }
  return '?';
}

/// Whether the text has more than one instruction, so that a register may be written before another one is read. The
/// compiler must then not give an output the register of an input: early clobber, "=&r".
inline bool is_sequence(std::string_view text) { return std::ranges::count(text, ';') > 1; }

/// `text` with "$i" replaced by the registers of operand i, in braces if it has several, and "$i.j" by register j of
/// operand i. `escape` returns the text for each other character.
template <class Escape>
std::string with_operands(std::string_view text, const std::vector<std::vector<std::string>>& names,
                          const Escape& escape) {
  std::string out;
  std::size_t at = 0;
  const auto read_number = [&] {
    std::size_t number = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      number = 10 * number + static_cast<std::size_t>(text[at++] - '0');
    return number;
  };
  while (at < text.size()) {
    if (text[at] != '$') {
      out += escape(text[at++]);
      continue;
    }
    ++at;
    const std::vector<std::string>& registers = names.at(read_number());
    if (at + 1 < text.size() && text[at] == '.' && text[at + 1] >= '0' && text[at + 1] <= '9') {
      ++at;
      out += registers.at(read_number());
    } else if (registers.size() == 1) {
      out += registers.front();
    } else {
      out += '{';
      for (std::size_t i = 0; i < registers.size(); ++i) out += (i == 0 ? "" : ", ") + registers[i];
      out += '}';
    }
  }
  return out;
}

}  // namespace tilewright::lower
