#include "outcome.hpp"

#include <algorithm>

namespace tilewright::bench {

const Row* cublaslt_reference(const Outcome& outcome) {
  for (const char* name : {"cublaslt", "cublaslt_best", "cublaslt_correct"}) {
    const Row* row = find_row(outcome, name);
    if (row != nullptr && row->verdict.right) return row;
  }
  return nullptr;
}

std::string why_other_reference(const Outcome& outcome) {
  const Row* choice = find_row(outcome, "cublaslt");
  if (choice == nullptr || choice->verdict.right || cublaslt_reference(outcome) == nullptr) return "";
  return choice->verdict.reason;
}

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
