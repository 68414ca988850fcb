#include "outcome.hpp"

#include <algorithm>

namespace tilewright::bench {

const Row* find_row(const Outcome& outcome, const std::string& contender) {
  const auto found = std::ranges::find(outcome.rows, contender, &Row::contender);
  return found == outcome.rows.end() ? nullptr : &*found;
}

const Timing* find_timing(const Outcome& outcome, const std::string& contender) {
  const Row* row = find_row(outcome, contender);
  return row != nullptr && row->verdict.right ? &row->timing : nullptr;
}

double tera_ops(const Problem& problem, double microseconds) { return 1e-6 * operations(problem) / microseconds; }

}  // namespace tilewright::bench
