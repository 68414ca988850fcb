// The shadow: happens-before by vector clocks, one cell a word or a byte.
#include "tilewright/emulator/shared_memory.hpp"

#include <algorithm>

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kInFlight = 1U << 31;
constexpr std::uint32_t kSet = 1U << 31;
constexpr std::uint32_t kSplit = ~std::uint32_t{0};  // writer of a word whose bytes have their own cells
constexpr std::uint32_t kWrittenBefore = 1;          // by somebody, ordered before everything: clock 0
constexpr std::uint32_t kForbidden = 2;              // writer of bytes between variables
constexpr std::byte kPoison{0xff};

std::uint32_t clock_of(std::uint32_t epoch) { return (epoch & ~kInFlight) >> 10; }
std::uint32_t warp_of(std::uint32_t epoch) { return (epoch >> 5) & 31; }

}  // namespace

void join(VectorClock& into, const VectorClock& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

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
  return {(now[who.warp] << 10) | (who.warp << 5) | who.lane, who.code};
}

bool SharedMemory::ordered(PackedEpoch epoch, const VectorClock& now, std::uint32_t warp) {
  const std::uint32_t other = warp_of(epoch);
  return other == warp || clock_of(epoch) <= now[other];
}

SharedVerdict SharedMemory::conflict(SharedVerdict verdict, Stamp other) {
  const bool wanted = verdict == SharedVerdict::uninitialised ? check_uninitialised_ : check_races_;
  if (!wanted) return SharedVerdict::ok;
  other_ = {warp_of(other.epoch), other.epoch & 31, other.code};
  return verdict;
}

void SharedMemory::split(std::size_t word) {
  Cell& whole = words_[word];
  for (std::size_t i = 0; i < 4; ++i) {
    Cell& part = bytes_[4 * word + i];
    part = whole;
    if ((whole.reader.epoch & kSet) == 0 || i == 0) continue;
    part.reader = new_read_set();
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

SharedMemory::Stamp SharedMemory::new_read_set() {
  if (free_sets_.empty()) {
    read_sets_.emplace_back();
    return {kSet, static_cast<std::uint32_t>(read_sets_.size() - 1)};
  }
  const std::uint32_t set = free_sets_.back();
  free_sets_.pop_back();
  read_sets_[set].fill({});
  return {kSet, set};
}

bool SharedMemory::has_read(const Cell& cell, Stamp me) const {
  const bool many = (cell.reader.epoch & kSet) != 0;
  const PackedEpoch known = many ? read_sets_[cell.reader.code][warp_of(me.epoch)].epoch : cell.reader.epoch;
  return ((known ^ me.epoch) >> 5) == 0;
}

void SharedMemory::add_reader(Cell& cell, const VectorClock& now, Stamp me) {
  if ((cell.reader.epoch & kSet) == 0) {
    if (cell.reader.epoch == 0 || ordered(cell.reader.epoch, now, warp_of(me.epoch))) {
      cell.reader = me;
      return;
    }
    const Stamp first = cell.reader;
    cell.reader = new_read_set();
    read_sets_[cell.reader.code][warp_of(first.epoch)] = first;
  }
  read_sets_[cell.reader.code][warp_of(me.epoch)] = me;
}

void SharedMemory::drop_readers(Cell& cell) {
  if ((cell.reader.epoch & kSet) != 0) free_sets_.push_back(cell.reader.code);
  cell.reader = {};
}

SharedVerdict SharedMemory::read_cell(Cell& cell, const VectorClock& now, Stamp me) {
  if (has_read(cell, me)) return SharedVerdict::ok;  // judged then, and not written since
  if (cell.writer.epoch == kForbidden) return SharedVerdict::outside;
  SharedVerdict verdict = SharedVerdict::ok;
  if (cell.writer.epoch == 0) {
    verdict = conflict(SharedVerdict::uninitialised, {});
  } else if ((cell.writer.epoch & kInFlight) != 0) {
    verdict = conflict(SharedVerdict::in_flight, cell.writer);
  } else if (!ordered(cell.writer.epoch, now, warp_of(me.epoch))) {
    verdict = conflict(SharedVerdict::race, cell.writer);
  }
  add_reader(cell, now, me);
  return verdict;
}

SharedVerdict SharedMemory::write_cell(Cell& cell, const VectorClock& now, Stamp me) {
  if (cell.writer.epoch == kForbidden) return SharedVerdict::outside;
  const std::uint32_t warp = warp_of(me.epoch);
  const auto unordered = [&](const Stamp& other) { return other.epoch != 0 && !ordered(other.epoch, now, warp); };
  SharedVerdict verdict = SharedVerdict::ok;
  if ((cell.writer.epoch & kInFlight) != 0) {
    verdict = conflict(SharedVerdict::in_flight, cell.writer);
  } else if (unordered(cell.writer)) {
    verdict = conflict(SharedVerdict::race, cell.writer);
  }
  if ((cell.reader.epoch & kSet) != 0) {
    for (const Stamp& reader : read_sets_[cell.reader.code]) {
      if (unordered(reader)) verdict = conflict(SharedVerdict::race, reader);
    }
  } else if (unordered(cell.reader)) {
    verdict = conflict(SharedVerdict::race, cell.reader);
  }
  drop_readers(cell);
  cell.writer = me;
  return verdict;
}

SharedVerdict SharedMemory::read(const VectorClock& now, const Accessor& who, std::uint64_t address,
                                 std::uint32_t bytes) {
  const Stamp me = stamp(now, who);
  return each_cell(address, bytes, false, [&](Cell& cell) { return read_cell(cell, now, me); });
}

SharedVerdict SharedMemory::write(const VectorClock& now, const Accessor& who, std::uint64_t address,
                                  std::uint32_t bytes) {
  const Stamp me = stamp(now, who);
  return each_cell(address, bytes, true, [&](Cell& cell) { return write_cell(cell, now, me); });
}

SharedVerdict SharedMemory::synchronising_access(VectorClock& now, const Accessor& who, std::uint64_t address,
                                                 std::uint32_t bytes, bool writes) {
  VectorClock& through = synchronisers_[address];
  join(now, through);
  if (writes) join(through, now);
  return each_cell(address, bytes, false, [&](Cell& cell) {
    if (cell.writer.epoch == kForbidden) return SharedVerdict::outside;
    SharedVerdict verdict = SharedVerdict::ok;
    if ((cell.writer.epoch & kInFlight) != 0) {
      verdict = conflict(SharedVerdict::in_flight, cell.writer);
    } else if (cell.writer.epoch != 0 && !ordered(cell.writer.epoch, now, who.warp)) {
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
