#include "tilewright/profile/instruction_counts.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace tilewright::profile {
namespace {

struct Kind {
  std::string_view name;
  std::string_view prefix;  // of the opcode with its modifiers
};

/// The first kind whose prefix fits counts.
constexpr std::array kKinds{
    Kind{"wgmma", "wgmma.mma_async"},
    Kind{"mma", "mma."},
    Kind{"TMA copy", "cp.async.bulk"},
    Kind{"TMA reduction", "cp.reduce.async.bulk"},
    Kind{"cp.async", "cp.async"},
    Kind{"ldmatrix", "ldmatrix"},
    Kind{"stmatrix", "stmatrix"},
    Kind{"global load", "ld.global"},
    Kind{"global store", "st.global"},
    Kind{"shared load", "ld.shared"},
    Kind{"shared store", "st.shared"},
    Kind{"local memory", "ld.local"},
    Kind{"local memory", "st.local"},
    Kind{"other load or store", "ld."},
    Kind{"other load or store", "st."},
    Kind{"atomic", "atom"},
    Kind{"atomic", "red."},
    Kind{"mbarrier", "mbarrier"},
    Kind{"fence", "fence"},
    Kind{"fence", "wgmma."},
    Kind{"barrier", "bar"},
    Kind{"multiply-add", "fma"},
    Kind{"multiply-add", "mad"},
    Kind{"conversion", "cvt"},
    Kind{"branch", "bra"},
    Kind{"other", ""},
};

/// The opcode of a line, without a predicate; empty if the line has no instruction.
std::string_view opcode_of(std::string_view line) {
  const auto trim = [&] {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0) line.remove_prefix(1);
  };
  trim();
  if (!line.empty() && line.front() == '{') line.remove_prefix(1);
  trim();
  if (!line.empty() && line.front() == '@') {
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos) return {};
    line.remove_prefix(end);
    trim();
  }
  if (line.empty() || std::islower(static_cast<unsigned char>(line.front())) == 0) return {};
  const std::size_t end = line.find_first_of(" \t;");
  if (end == std::string_view::npos) return {};
  return line.substr(0, end);
}

}  // namespace

std::vector<std::pair<std::string, int>> count_instructions(std::string_view ptx) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Kind& kind : kKinds) {
    if (counts.empty() || counts.back().first != kind.name) counts.emplace_back(kind.name, 0);
  }
  while (!ptx.empty()) {
    const std::size_t end = std::min(ptx.find('\n'), ptx.size());
    const std::string_view opcode = opcode_of(ptx.substr(0, end));
    ptx.remove_prefix(std::min(end + 1, ptx.size()));
    if (opcode.empty()) continue;
    const auto kind = std::ranges::find_if(kKinds, [&](const Kind& each) { return opcode.starts_with(each.prefix); });
    ++std::ranges::find(counts, kind->name, &std::pair<std::string, int>::first)->second;
  }
  std::erase_if(counts, [](const auto& each) { return each.second == 0; });
  return counts;
}

}  // namespace tilewright::profile
