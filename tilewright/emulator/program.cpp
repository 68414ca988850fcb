#include "tilewright/emulator/program.hpp"

#include <set>
#include <vector>

namespace tilewright::emulator {

bool tests_before_update(const Program& program, std::uint32_t read) {
  constexpr std::size_t kNear = 64;  // instructions
  std::set<std::uint32_t> reached;
  std::vector<std::uint32_t> pending{read + 1};
  while (!pending.empty() && reached.size() < kNear) {
    const std::uint32_t at = pending.back();
    pending.pop_back();
    if (at >= program.code.size() || !reached.insert(at).second) continue;
    const Instruction& instruction = program.code[at];
    if (instruction.is_atomic) return true;
    const bool is_branch = instruction.target != kNone;
    if (!is_branch || instruction.guard != kNone) pending.push_back(at + 1);
    if (is_branch) pending.push_back(instruction.target);
  }
  return false;
}

}  // namespace tilewright::emulator
