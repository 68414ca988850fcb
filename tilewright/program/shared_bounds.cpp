#include "tilewright/program/shared_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tilewright/base/error.hpp"

namespace tilewright::program {
namespace {

using layout::Number;

/// Whether the number is an expression over `variable` alone, or static.
bool depends_only_on(const Number& number, const Number& variable) {
  if (number.is_static() || number == variable) return true;
  const layout::NumberNode& node = *number.node();
  if (node.op == layout::NumberOp::variable) return false;
  return depends_only_on(node.a, variable) && depends_only_on(node.b, variable) && depends_only_on(node.c, variable);
}

/// The region that has the byte; null: none.
const SharedRegion* region_of(const std::vector<SharedRegion>& regions, std::int64_t byte) {
  const auto found = std::ranges::find_if(
      regions, [&](const SharedRegion& region) { return region.begin <= byte && byte < region.end; });
  return found == regions.end() ? nullptr : &*found;
}

std::string described(const std::vector<SharedRegion>& regions, std::int64_t offset) {
  const SharedRegion* region = region_of(regions, offset);
  if (region == nullptr) return "which no shared() has reserved";
  return fmt::format("which are not all among the {} bytes from shared + {} on that one shared() has reserved",
                     region->end - region->begin, region->begin);
}

/// Whether the thread executes the access, as far as conditions on `thread` alone tell; sets `is_certain` to whether
/// they are all of that kind.
bool is_executed(const SharedAccess& access, const layout::Bindings& bindings, bool& is_certain) {
  is_certain = true;
  for (const AccessCondition& condition : access.conditions) {
    if (!depends_only_on(condition.holds, access.thread)) {
      is_certain = false;
    } else if ((evaluate(condition.holds, bindings) != 0) == condition.negated) {
      return false;
    }
  }
  return true;
}

/// A thread that executes the access, or may do so if not all conditions are known.
struct Execution {
  int thread = 0;
  std::int64_t at = 0;  // the offset
  bool is_certain = true;
};

/// @pre the offset depends on the thread alone
std::vector<Execution> executions_of(const SharedAccess& access) {
  std::vector<Execution> executions;
  for (int thread = 0; thread < access.threads; ++thread) {
    layout::Bindings bindings;
    bindings.set(access.thread, thread);
    bool is_certain = true;
    if (is_executed(access, bindings, is_certain))
      executions.push_back({thread, evaluate(access.offset, bindings), is_certain});
  }
  return executions;
}

/// "thread 3 accesses 16 bytes at shared + 40"
std::string described(const SharedAccess& access, const Execution& execution) {
  const std::string who = access.offset.is_static() ? "an instruction" : fmt::format("thread {}", execution.thread);
  return fmt::format("{} accesses {} bytes at shared {} {}", who, access.bytes, execution.at < 0 ? '-' : '+',
                     std::abs(execution.at));
}

}  // namespace

std::optional<std::string> out_of_shared_memory(const std::vector<SharedRegion>& regions, const SharedAccess& access) {
  const std::int64_t lower = access.offset.lower(), upper = access.offset.upper();
  const SharedRegion* const first = region_of(regions, lower);
  if (first != nullptr && upper <= first->end - access.bytes) return std::nullopt;
  if (!depends_only_on(access.offset, access.thread)) {
    const std::int64_t end = regions.empty() ? 0 : regions.back().end;
    if (lower < end && upper >= 0) return std::nullopt;
    return fmt::format("{} bytes at shared + {}, which is {} of the {} bytes that the kernel has reserved",
                       access.bytes, to_string(access.offset), upper < 0 ? "in front" : "behind the end", end);
  }
  std::optional<std::int64_t> least;  // offset of the threads that execute the access
  std::optional<Execution> wrong;
  for (const Execution& execution : executions_of(access)) {
    const std::int64_t at = execution.at;
    const SharedRegion* region = region_of(regions, at);
    const bool is_within = region != nullptr && at + access.bytes <= region->end;
    if (is_within && !execution.is_certain) return std::nullopt;
    if (!is_within && !wrong) wrong = execution;
    // Threads that are in several regions cross from the one of the least address to the next.
    if (is_within && least && region_of(regions, *least) != region && !wrong)
      wrong = {execution.thread, std::max(at, *least), execution.is_certain};
    least = std::min(least.value_or(at), at);
  }
  if (!wrong) return std::nullopt;
  const std::string text = described(access, *wrong) + ", ";
  const SharedRegion* of_least = region_of(regions, *least);
  const SharedRegion* of_wrong = region_of(regions, wrong->at);
  if (of_least == nullptr || of_wrong == nullptr || of_least == of_wrong) return text + described(regions, wrong->at);
  return fmt::format(
      "{}and another thread accesses the {} bytes from shared + {} on: they are of two calls of shared()", text,
      of_least->end - of_least->begin, of_least->begin);
}

std::optional<std::string> misaligned_in_shared_memory(const SharedAccess& access) {
  if (access.offset.divisor() % access.alignment == 0) return std::nullopt;  // 0 is a multiple of everything
  if (!depends_only_on(access.offset, access.thread)) return std::nullopt;
  std::optional<Execution> wrong;
  for (const Execution& execution : executions_of(access)) {
    const bool is_aligned = execution.at % access.alignment == 0;
    if (is_aligned && !execution.is_certain) return std::nullopt;
    if (!is_aligned && !wrong) wrong = execution;
  }
  if (!wrong) return std::nullopt;
  return fmt::format("{}, which must be a multiple of {}", described(access, *wrong), access.alignment);
}

}  // namespace tilewright::program
