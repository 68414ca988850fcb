// The shadow: happens-before by vector clocks, one cell a word or a byte.
#include "tilewright/emulator/shared_memory.hpp"

#include <algorithm>

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kInFlight = 1U << 31;
constexpr std::uint32_t kSet = 1U << 31;
constexpr std::uint32_t kSplit = ~std::uint32_t{0};  // writer of a word whose bytes have their own cells
constexpr std::uint32_t kWrittenBefore = 2;          // by somebody, ordered before everything: clock 0
constexpr std::uint32_t kForbidden = 4;              // writer of bytes between variables
constexpr std::byte kPoison{0xff};
constexpr int kAgentBits = 11;
constexpr int kCodeBits = 27;

std::uint32_t clock_of(std::uint32_t epoch) { return (epoch & ~kInFlight) >> kAgentBits; }
Agent agent_of(std::uint32_t epoch) { return epoch & ((1U << kAgentBits) - 1); }

}  // namespace

SharedMemory::SharedMemory(bool check_races, bool check_uninitialised)
    : check_races_(check_races), check_uninitialised_(check_uninitialised) {}

void SharedMemory::reset(std::uint32_t bytes) {
  size_ = bytes;
  const std::size_t words = (bytes + 3) / 4;
  data_.assign(words * 4, kPoison);
  touched_.assign(words * 4 / 64 + 1, 0);
  if (!shadowed()) return;
  words_.assign(words, Cell{});
  bytes_.resize(words * 4);
  read_sets_.clear();
  free_sets_.clear();
  synchronisers_.clear();
}

void SharedMemory::forbid(std::uint64_t address, std::uint32_t bytes) {
  if (!shadowed() || bytes == 0) return;
  each_cell(address, bytes, false, [](Cell& cell) {
    cell.writer = {kForbidden, 0};
    return SharedVerdict::ok;
  });
}

void SharedMemory::forget_order() {
  const auto forget = [](Cell& cell) {
    cell.reader = {};
    const PackedEpoch writer = cell.writer.epoch;
    const bool written = writer != 0 && writer != kSplit && writer != kForbidden && (writer & kInFlight) == 0;
    if (written) cell.writer.epoch = kWrittenBefore;
  };
  std::ranges::for_each(words_, forget);
  std::ranges::for_each(bytes_, forget);
  read_sets_.clear();
  free_sets_.clear();
  synchronisers_.clear();
}

SharedMemory::Stamp SharedMemory::stamp(const VectorClock& now, const Accessor& who) {
  const std::uint32_t clock = std::min(who.clock != 0 ? who.clock : now[who.agent], kClockLimit);
  return {(clock << kAgentBits) | who.agent, (who.lane << kCodeBits) | who.code};
}

bool SharedMemory::ordered(PackedEpoch epoch, const VectorClock& now) {
  return clock_of(epoch) <= now[agent_of(epoch)];
}

SharedVerdict SharedMemory::conflict(SharedVerdict verdict, Stamp other, bool reads) {
  const bool wanted = verdict == SharedVerdict::uninitialised ? check_uninitialised_ : check_races_;
  if (!wanted) return SharedVerdict::ok;
  other_ = {agent_of(other.epoch), other.code >> kCodeBits, other.code & ((1U << kCodeBits) - 1),
            clock_of(other.epoch)};
  other_reads_ = reads;
  return verdict;
}

void SharedMemory::split(std::size_t word) {
  Cell& whole = words_[word];
  for (std::size_t i = 0; i < 4; ++i) {
    Cell& part = bytes_[4 * word + i];
    part = whole;
    if ((whole.reader.epoch & kSet) == 0 || i == 0) continue;
    part.reader.code = new_read_set();
    read_sets_[part.reader.code] = read_sets_[whole.reader.code];
  }
  whole = {{kSplit, 0}, {}};
}

template <class Visit>
SharedVerdict SharedMemory::each_cell(std::uint64_t address, std::uint32_t bytes, bool whole_write, Visit&& visit) {
  const std::size_t begin = address - kSharedBase;
  SharedVerdict worst = SharedVerdict::ok;
  const auto consider = [&](SharedVerdict verdict) { worst = std::max(worst, verdict); };
  if (bytes >= 4 && begin % 4 == 0) {
    for (std::size_t word = begin / 4; word < (begin + bytes) / 4; ++word) {
      Cell& cell = words_[word];
      if (cell.writer.epoch != kSplit) [[likely]] {
        consider(visit(cell));
        continue;
      }
      for (std::size_t i = 0; i < 4; ++i) consider(visit(bytes_[4 * word + i]));
      if (whole_write) cell = bytes_[4 * word];
    }
    return worst;
  }
  for (std::size_t byte = begin; byte < begin + bytes; ++byte) {
    if (words_[byte / 4].writer.epoch != kSplit) split(byte / 4);
    consider(visit(bytes_[byte]));
  }
  return worst;
}

std::uint32_t SharedMemory::new_read_set() {
  if (free_sets_.empty()) {
    read_sets_.emplace_back();
    return static_cast<std::uint32_t>(read_sets_.size() - 1);
  }
  const std::uint32_t set = free_sets_.back();
  free_sets_.pop_back();
  read_sets_[set].clear();
  return set;
}

bool SharedMemory::has_read(const Cell& cell, Stamp me) const {
  if ((cell.reader.epoch & kSet) == 0) return cell.reader.epoch == me.epoch;
  const ReadSet& readers = read_sets_[cell.reader.code];
  return std::ranges::any_of(readers, [&](const Stamp& reader) { return reader.epoch == me.epoch; });
}

void SharedMemory::add_reader(Cell& cell, const VectorClock& now, Stamp me) {
  if ((cell.reader.epoch & kSet) == 0) {
    const bool same = agent_of(cell.reader.epoch) == agent_of(me.epoch);
    if (cell.reader.epoch == 0 || same || ordered(cell.reader.epoch, now)) {
      cell.reader = me;
      return;
    }
    const Stamp first = cell.reader;
    cell.reader = {kSet, new_read_set()};
    read_sets_[cell.reader.code].push_back(first);
  }
  ReadSet& readers = read_sets_[cell.reader.code];
  for (Stamp& reader : readers) {
    if (agent_of(reader.epoch) != agent_of(me.epoch)) continue;
    reader = me;
    return;
  }
  readers.push_back(me);
}

void SharedMemory::drop_readers(Cell& cell) {
  if ((cell.reader.epoch & kSet) != 0) free_sets_.push_back(cell.reader.code);
  cell.reader = {};
}

SharedVerdict SharedMemory::read_cell(Cell& cell, const VectorClock& now, const VectorClock* fenced, Stamp me) {
  if (has_read(cell, me)) return SharedVerdict::ok;  // judged then, and not written since
  const PackedEpoch writer = cell.writer.epoch;
  if (writer == kForbidden) return SharedVerdict::outside;
  SharedVerdict verdict = SharedVerdict::ok;
  if (writer == 0) {
    verdict = conflict(SharedVerdict::uninitialised, {});
  } else if ((writer & kInFlight) != 0) {
    verdict = conflict(SharedVerdict::in_flight, cell.writer);
  } else if (!ordered(writer, now)) {
    verdict = conflict(SharedVerdict::race, cell.writer);
  } else if (fenced != nullptr && !is_async(agent_of(writer)) && !ordered(writer, *fenced)) {
    verdict = conflict(SharedVerdict::unfenced, cell.writer);
  }
  add_reader(cell, now, me);
  return verdict;
}

SharedVerdict SharedMemory::write_cell(Cell& cell, const VectorClock& now, Stamp me) {
  if (cell.writer.epoch == kForbidden) return SharedVerdict::outside;
  const auto unordered = [&](const Stamp& other) { return other.epoch != 0 && !ordered(other.epoch, now); };
  SharedVerdict verdict = SharedVerdict::ok;
  if ((cell.writer.epoch & kInFlight) != 0) {
    verdict = conflict(SharedVerdict::in_flight, cell.writer);
  } else if (unordered(cell.writer)) {
    verdict = conflict(SharedVerdict::race, cell.writer);
  }
  if ((cell.reader.epoch & kSet) != 0) {
    for (const Stamp& reader : read_sets_[cell.reader.code]) {
      if (unordered(reader)) verdict = conflict(SharedVerdict::race, reader, true);
    }
  } else if (unordered(cell.reader)) {
    verdict = conflict(SharedVerdict::race, cell.reader, true);
  }
  drop_readers(cell);
  cell.writer = me;
  return verdict;
}

SharedVerdict SharedMemory::read(const VectorClock& now, const Accessor& who, std::uint64_t address,
                                 std::uint32_t bytes) {
  const Stamp me = stamp(now, who);
  return each_cell(address, bytes, false, [&](Cell& cell) { return read_cell(cell, now, nullptr, me); });
}

SharedVerdict SharedMemory::async_read(const Past& past, const Accessor& who, std::uint64_t address,
                                       std::uint32_t bytes) {
  const Stamp me = stamp(past.happened, who);
  return each_cell(address, bytes, false, [&](Cell& cell) { return read_cell(cell, past.happened, &past.fenced, me); });
}

SharedVerdict SharedMemory::write(const VectorClock& now, const Accessor& who, std::uint64_t address,
                                  std::uint32_t bytes) {
  const Stamp me = stamp(now, who);
  return each_cell(address, bytes, true, [&](Cell& cell) { return write_cell(cell, now, me); });
}

SharedVerdict SharedMemory::synchronising_access(Past& past, const Accessor& who, std::uint64_t address,
                                                 std::uint32_t bytes, bool writes) {
  Past& through = synchronisers_[address];
  past.join(through);
  if (writes) through.join(past);
  return each_cell(address, bytes, false, [&](Cell& cell) {
    if (cell.writer.epoch == kForbidden) return SharedVerdict::outside;
    SharedVerdict verdict = SharedVerdict::ok;
    if ((cell.writer.epoch & kInFlight) != 0) {
      verdict = conflict(SharedVerdict::in_flight, cell.writer);
    } else if (cell.writer.epoch != 0 && !ordered(cell.writer.epoch, past.happened)) {
      verdict = conflict(SharedVerdict::race, cell.writer);
    }
    if (writes) cell.writer = {kWrittenBefore, who.code};
    return verdict;
  });
}

SharedVerdict SharedMemory::begin_copy(const VectorClock& now, const Accessor& who, std::uint64_t address,
                                       std::uint32_t bytes) {
  const Stamp me = stamp(now, who);
  return each_cell(address, bytes, true, [&](Cell& cell) {
    const SharedVerdict verdict = write_cell(cell, now, me);
    cell.writer.epoch |= kInFlight;
    return verdict;
  });
}

void SharedMemory::complete_copy(const VectorClock& now, const Accessor& who, std::uint64_t address,
                                 std::uint32_t bytes) {
  each_cell(address, bytes, false, [&](Cell& cell) {
    cell.writer = stamp(now, who);
    return SharedVerdict::ok;
  });
}

bool SharedMemory::touch(std::uint64_t address, std::uint32_t bytes) {
  const std::size_t begin = address - kSharedBase;
  const std::uint64_t span = ((std::uint64_t{1} << bytes) - 1) << (begin % 64);
  const bool again = (touched_[begin / 64] & span) != 0;
  touched_[begin / 64] |= span;
  return again;
}

void SharedMemory::untouch(std::uint64_t address, std::uint32_t bytes) {
  const std::size_t begin = address - kSharedBase;
  touched_[begin / 64] &= ~(((std::uint64_t{1} << bytes) - 1) << (begin % 64));
}

}  // namespace tilewright::emulator
