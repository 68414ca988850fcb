#include "tilewright/emulator/value_flow.hpp"

#include <algorithm>
#include <initializer_list>

namespace tilewright::emulator {
namespace {

bool starts_with_any(std::string_view opcode, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return opcode.starts_with(prefix); });
}

/// Whether one of the modifiers is `modifier`.
bool has(std::string_view opcode, std::string_view modifier) {
  for (std::size_t at = opcode.find('.'); at != std::string_view::npos; at = opcode.find('.', at + 1)) {
    if (opcode.substr(at + 1, opcode.find('.', at + 1) - at - 1) == modifier) return true;
  }
  return false;
}

/// Whether no type among the modifiers is one of floats. No modifier of the integer instructions below has an f.
bool is_integer(std::string_view opcode) { return opcode.find('f', opcode.find('.')) == std::string_view::npos; }

bool carries(std::string_view opcode) {
  if (!is_integer(opcode) || has(opcode, "sat") || has(opcode, "cc") || opcode.ends_with("x2")) return false;
  if (starts_with_any(opcode, {"add.", "sub.", "neg."})) return true;
  return starts_with_any(opcode, {"mul.", "mad."}) && (has(opcode, "lo") || has(opcode, "wide"));
}

bool has_halves(std::string_view opcode) {
  return opcode.ends_with("x2") &&
         starts_with_any(opcode, {"add.", "sub.", "mul.", "fma.", "min.", "max.", "neg.", "abs.", "ex2.", "tanh."});
}

ValueFlow flow_of_logic(std::string_view opcode) {
  const bool of_predicates = opcode.ends_with(".pred");
  if (opcode.starts_with("and.")) return of_predicates ? ValueFlow::conjunction : ValueFlow::logic_and;
  if (opcode.starts_with("or.")) return of_predicates ? ValueFlow::disjunction : ValueFlow::logic_or;
  if (of_predicates) return ValueFlow::whole;
  if (opcode.starts_with("xor.")) return ValueFlow::logic_xor;
  if (opcode.starts_with("not.")) return ValueFlow::logic_not;
  return opcode.starts_with("lop3.b") ? ValueFlow::logic_table : ValueFlow::whole;
}

}  // namespace

ValueFlow value_flow(std::string_view opcode) {
  if (starts_with_any(opcode, {"atom", "red.", "bar.", "barrier", "mbarrier", "cp.", "mma", "wgmma", "mapa",
                               "tensormap", "brx", "call", "nanosleep", "fence", "st.async"}))
    return ValueFlow::uses;
  if (starts_with_any(opcode, {"ld", "st.", "stmatrix"})) return ValueFlow::access;
  if (opcode.starts_with("shfl")) return ValueFlow::shuffle;
  if (starts_with_any(opcode, {"vote", "match", "redux"})) return ValueFlow::warp_wide;
  if (starts_with_any(opcode, {"and.", "or.", "xor.", "not.", "lop3"})) return flow_of_logic(opcode);
  if (opcode.starts_with("mov.")) return opcode == "mov.pred" ? ValueFlow::whole : ValueFlow::moves;
  if (opcode.starts_with("brev.")) return ValueFlow::moves;
  if (opcode.starts_with("cvt."))
    return is_integer(opcode) && !has(opcode, "sat") ? ValueFlow::moves : ValueFlow::whole;
  if (starts_with_any(opcode, {"shl.", "shr.", "shf.", "prmt.", "szext."})) return ValueFlow::moves_by_last;
  if (starts_with_any(opcode, {"bfe.", "bfi."})) return ValueFlow::moves_by_last_two;
  if (opcode.starts_with("selp.")) return ValueFlow::select;
  if (starts_with_any(opcode, {"setp.", "set."})) return is_integer(opcode) ? ValueFlow::compare : ValueFlow::combine;
  if (has_halves(opcode)) return ValueFlow::halves;
  return carries(opcode) ? ValueFlow::carries : ValueFlow::whole;
}

}  // namespace tilewright::emulator
