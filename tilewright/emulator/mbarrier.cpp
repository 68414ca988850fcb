// State of an mbarrier: a phase completes when no arrival and no transaction byte is pending.
#include "tilewright/emulator/mbarrier.hpp"

namespace tilewright::emulator {
namespace {

MbarrierResult settle(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.transactions != 0) return {};
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.completed.join(barrier.gathering);
  barrier.completed.happened.raise(barrier.agent, barrier.phase);
  barrier.completed.happened.raise(async_of(barrier.agent), barrier.phase);
  barrier.gathering.clear();
  return {true, {}};
}

std::string take_arrivals(Mbarrier& barrier, std::uint32_t count) {
  if (count == 0 || count > barrier.pending) {
    return fmt::format("{} arrivals where {} are pending", count, barrier.pending);
  }
  barrier.pending -= count;
  return {};
}

std::string add_transactions(Mbarrier& barrier, std::int64_t bytes) {
  barrier.transactions += bytes;
  if (barrier.transactions >= -kMaxTransactionBytes && barrier.transactions <= kMaxTransactionBytes) return {};
  return fmt::format("{} pending transaction bytes, past the limit of {}", barrier.transactions, kMaxTransactionBytes);
}

MbarrierResult settled(Mbarrier& barrier, std::string broken) {
  if (!broken.empty()) return {false, std::move(broken)};
  return settle(barrier);
}

}  // namespace

MbarrierResult arrive(Mbarrier& barrier, std::uint32_t count) {
  return settled(barrier, take_arrivals(barrier, count));
}

MbarrierResult arrive_and_drop(Mbarrier& barrier, std::uint32_t count) {
  std::string broken = take_arrivals(barrier, count);
  if (broken.empty()) barrier.count -= count;
  return settled(barrier, std::move(broken));
}

MbarrierResult expect_transactions(Mbarrier& barrier, std::uint64_t bytes) {
  return {false, add_transactions(barrier, static_cast<std::int64_t>(bytes))};
}

MbarrierResult complete_transactions(Mbarrier& barrier, std::uint64_t bytes) {
  return settled(barrier, add_transactions(barrier, -static_cast<std::int64_t>(bytes)));
}

MbarrierResult arrive_expecting(Mbarrier& barrier, std::uint32_t count, std::uint64_t bytes, bool drops) {
  std::string broken = add_transactions(barrier, static_cast<std::int64_t>(bytes));
  if (broken.empty()) broken = take_arrivals(barrier, count);
  if (broken.empty() && drops) barrier.count -= count;
  return settled(barrier, std::move(broken));
}

std::string describe(const Mbarrier& barrier) {
  return fmt::format("phase {}, {} of {} arrivals and {} transaction bytes pending", barrier.phase, barrier.pending,
                     barrier.count, barrier.transactions);
}

}  // namespace tilewright::emulator
