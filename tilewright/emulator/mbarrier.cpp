// State of an mbarrier: a phase completes when its pending count and its tx-count are both zero.
#include "tilewright/emulator/mbarrier.hpp"

namespace tilewright::emulator {
namespace {

MbarrierResult complete_if_due(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.transactions != 0) return {};
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.completed_clocks.join(barrier.arrival_clocks);
  barrier.completed_clocks.ordered.raise(barrier.agent, barrier.phase);
  barrier.completed_clocks.ordered.raise(async_of(barrier.agent), barrier.phase);
  barrier.arrival_clocks.clear();
  return {true, {}};
}

std::string take_arrivals(Mbarrier& barrier, std::uint32_t count) {
  if (count == 0 || count > barrier.pending) {
    return fmt::format("{} arrivals at once, but the phase has {} pending", count, barrier.pending);
  }
  barrier.pending -= count;
  return {};
}

std::string add_transactions(Mbarrier& barrier, std::int64_t bytes) {
  barrier.transactions += bytes;
  if (barrier.transactions >= -kMaxTransactionBytes && barrier.transactions <= kMaxTransactionBytes) return {};
  return fmt::format("a tx-count of {} bytes, outside the range of +-{}", barrier.transactions, kMaxTransactionBytes);
}

MbarrierResult finish(Mbarrier& barrier, std::string error) {
  if (!error.empty()) return {false, std::move(error)};
  return complete_if_due(barrier);
}

}  // namespace

MbarrierResult arrive(Mbarrier& barrier, std::uint32_t count) { return finish(barrier, take_arrivals(barrier, count)); }

MbarrierResult arrive_and_drop(Mbarrier& barrier, std::uint32_t count) {
  std::string error = take_arrivals(barrier, count);
  if (error.empty()) barrier.count -= count;
  return finish(barrier, std::move(error));
}

MbarrierResult expect_tx(Mbarrier& barrier, std::uint64_t bytes) {
  return {false, add_transactions(barrier, static_cast<std::int64_t>(bytes))};
}

MbarrierResult complete_tx(Mbarrier& barrier, std::uint64_t bytes) {
  return finish(barrier, add_transactions(barrier, -static_cast<std::int64_t>(bytes)));
}

MbarrierResult arrive_expect_tx(Mbarrier& barrier, std::uint32_t count, std::uint64_t bytes, bool drops) {
  std::string error = add_transactions(barrier, static_cast<std::int64_t>(bytes));
  if (error.empty()) error = take_arrivals(barrier, count);
  if (error.empty() && drops) barrier.count -= count;
  return finish(barrier, std::move(error));
}

std::string describe(const Mbarrier& barrier) {
  return fmt::format("phase {}, {} of {} arrivals and {} transaction bytes pending", barrier.phase, barrier.pending,
                     barrier.count, barrier.transactions);
}

}  // namespace tilewright::emulator
