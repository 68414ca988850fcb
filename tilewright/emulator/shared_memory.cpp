// Race detection on the shadow by vector clocks, as FastTrack does: the last write and the reads since, per cell.
#include "tilewright/emulator/shared_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tilewright/emulator/instructions/hardware_fma.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kInFlight = 1U << 31;
// Values of Cell::writer.epoch that stand for no agent's write, as kSplit does; all have clock 0.
constexpr std::uint32_t kWrittenBefore = 2;  // written, and the write is ordered before every access
constexpr std::uint32_t kRedZone = 4;        // bytes between variables
// As a writer: the last write was a strong one, which is in strong_writes_. The clock is the largest, so that no access
// takes a path on which ordered() is enough.
constexpr std::uint32_t kWrittenStrongly = 0x7ffff800;
constexpr std::byte kPoison{0xff};
constexpr int kAgentBits = 11;

std::uint32_t clock_of(std::uint32_t epoch) { return (epoch & ~kInFlight) >> kAgentBits; }
constexpr std::uint32_t kNextLane = 1U << 27;  // added to a code
std::uint32_t lane_of(std::uint32_t code) { return code / kNextLane; }
constexpr std::uint32_t kWidthMask = 3U << 25;  // of the code of a sector
std::uint32_t code_of(std::uint32_t code) { return code % kNextLane & ~kWidthMask; }
/// The lane of a code, as a part of it. Sums of lanes are modulo 32, as they are the highest bits.
std::uint32_t lane_bits(std::uint32_t code) { return code / kNextLane * kNextLane; }
Agent agent_of(std::uint32_t epoch) { return epoch & ((1U << kAgentBits) - 1); }

constexpr std::uint32_t clear_lowest(std::uint32_t mask) { return mask & (mask - 1); }

/// The first read of the agent in a set, which is ordered by agents, or where it would be. Most often that is the end:
/// CTAs run in turn.
auto first_read_of(auto& readers, Agent agent) {
  const auto agent_of_read = [](const auto& reader) { return agent_of(reader.epoch); };
  if (readers.empty() || agent_of_read(readers.back()) < agent) return readers.end();
  return std::ranges::lower_bound(readers, agent, {}, agent_of_read);
}

}  // namespace

SharedMemory::SharedMemory(bool check_races, bool check_uninitialised, bool check_warps)
    : check_races_(check_races), check_uninitialised_(check_uninitialised), check_warps_(check_warps) {}

void SharedMemory::set_checks(bool check_races, bool check_uninitialised, bool check_warps) {
  check_races_ = check_races;
  check_uninitialised_ = check_uninitialised;
  check_warps_ = check_warps;
}

void SharedMemory::reset(std::uint32_t bytes) {
  size_ = bytes;
  const std::size_t words = (bytes + 3) / 4;
  data_.assign(words * 4, kPoison);
  written_now_.assign(words * 4 / 64 + 1, 0);
  if (shadowed()) clear_shadow(bytes, {});
}

void SharedMemory::reset_shadow(std::uint32_t bytes) {
  size_ = bytes;
  clear_shadow(bytes, {{kWrittenBefore, 0}, {}});
}

void SharedMemory::clear_shadow(std::uint32_t bytes, const Cell& cell) {
  sectors_.assign((bytes + kSectorBytes - 1) / kSectorBytes, cell);
  if (!words_.empty() && words_.size() < kWordsPerSector * sectors_.size()) {
    words_.resize(kWordsPerSector * sectors_.size());
  }
  free_all_sets();
  clear_published();
  undefined_bits_.clear();
}

void SharedMemory::mark_red_zone(std::uint64_t address, std::uint32_t bytes) {
  if (!shadowed() || bytes == 0) return;
  each_cell_or_sector(address, bytes, [](Cell& cell) { cell.writer = {kRedZone, 0}; });
}

void SharedMemory::restart_clocks() {
  const auto order_before_all = [](Cell& cell) {
    cell.reader = {};
    const PackedEpoch writer = cell.writer.epoch;
    const bool written = writer != 0 && writer != kSplit && writer != kRedZone && (writer & kInFlight) == 0;
    if (written) cell.writer.epoch = kWrittenBefore;
  };
  std::ranges::for_each(sectors_, order_before_all);
  std::ranges::for_each(words_, order_before_all);
  std::ranges::for_each(bytes_, order_before_all);
  free_all_sets();
  clear_published();
}

SharedMemory::Stamp SharedMemory::stamp(const VectorClock& now, const Accessor& accessor) {
  const std::uint32_t clock = std::min(accessor.clock != 0 ? accessor.clock : now[accessor.agent], kClockLimit);
  return {(clock << kAgentBits) | accessor.agent, (accessor.lane << kCodeBits) | accessor.code};
}

bool SharedMemory::ordered(PackedEpoch epoch, const VectorClock& now) {
  return clock_of(epoch) <= now[agent_of(epoch)];
}

SharedVerdict SharedMemory::conflict(SharedVerdict verdict, Stamp other, bool reads) {
  const bool enabled = verdict == SharedVerdict::uninitialised ? check_uninitialised_ : check_races_;
  if (!enabled) return SharedVerdict::ok;
  other_ = {agent_of(other.epoch), other.code >> kCodeBits, other.code & ((1U << kCodeBits) - 1),
            clock_of(other.epoch)};
  other_reads_ = reads;
  return verdict;
}

void SharedMemory::split_word(std::size_t word) {
  Cell& whole = *word_cell(word);
  if (bytes_.size() < 4 * words_.size()) bytes_.resize(4 * words_.size());
  for (std::size_t i = 0; i < 4; ++i) {
    Cell& part = bytes_[4 * word + i];
    part = whole;
  }
  if ((whole.reader.epoch & kSet) != 0) set_of(whole).cells += 3;
  whole = {{kSplit, 0}, {}};
}

void SharedMemory::split_sector(std::size_t sector) {
  if (words_.empty()) words_.resize(kWordsPerSector * sectors_.size());
  Cell& whole = sectors_[sector];
  const std::uint32_t of_writer = words_per_lane(whole.writer.code), of_reader = words_per_lane(whole.reader.code);
  whole.writer.code &= ~kWidthMask;
  whole.reader.code &= ~kWidthMask;
  // A set of readers has counted the sector as its words.
  for (std::uint32_t i = 0; i < kWordsPerSector; ++i) {
    words_[kWordsPerSector * sector + i] = {{whole.writer.epoch, whole.writer.code + i / of_writer * kNextLane},
                                            {whole.reader.epoch, whole.reader.code + i / of_reader * kNextLane}};
  }
  whole = {{kSplit, 0}, {}};
}

template <class Visit>
void SharedMemory::each_cell_or_sector(std::uint64_t address, std::uint32_t bytes, Visit&& visit) {
  const auto each = [&](std::uint64_t begin, std::uint64_t end) {
    each_cell(begin, static_cast<std::uint32_t>(end - begin), false, [&](Cell& cell) {
      visit(cell);
      return SharedVerdict::ok;
    });
  };
  const std::uint64_t end = address + bytes;
  while (address < end) {
    const std::size_t begin = address - kSharedBase;
    std::uint64_t next = std::min(end, address + kSectorBytes - begin % kSectorBytes);
    Cell& sector = sectors_[begin / kSectorBytes];
    if (next - address == kSectorBytes && sector.writer.epoch != kSplit) {
      visit(sector);
    } else {
      // Whole words, or a part of one.
      if (begin % 4 != 0) next = std::min(next, address + 4 - begin % 4);
      if (begin % 4 == 0 && next - address > 4) next -= (next - address) % 4;
      each(address, next);
    }
    address = next;
  }
}

template <class Visit>
SharedVerdict SharedMemory::each_cell(std::uint64_t address, std::uint32_t bytes, bool whole_write, Visit&& visit) {
  const std::size_t begin = address - kSharedBase;
  SharedVerdict worst = SharedVerdict::ok;
  const auto note = [&](SharedVerdict verdict) { worst = std::max(worst, verdict); };
  if (bytes >= 4 && begin % 4 == 0) {
    for (std::size_t word = begin / 4; word < (begin + bytes) / 4; ++word) {
      Cell& cell = *word_cell(word);
      if (cell.writer.epoch != kSplit) [[likely]] {
        note(visit(cell));
        continue;
      }
      for (std::size_t i = 0; i < 4; ++i) note(visit(bytes_[4 * word + i]));
      if (whole_write) cell = bytes_[4 * word];
    }
    return worst;
  }
  for (std::size_t byte = begin; byte < begin + bytes; ++byte) {
    if (word_cell(byte / 4)->writer.epoch != kSplit) split_word(byte / 4);
    note(visit(bytes_[byte]));
  }
  return worst;
}

void SharedMemory::free_all_sets() {
  free_sets_.resize(read_sets_.size());
  std::iota(free_sets_.begin(), free_sets_.end(), 0U);
}

std::uint32_t SharedMemory::new_read_set(std::uint32_t cells) {
  std::uint32_t set = static_cast<std::uint32_t>(read_sets_.size());
  if (free_sets_.empty()) {
    read_sets_.emplace_back();
  } else {
    set = free_sets_.back();
    free_sets_.pop_back();
    read_sets_[set].readers.clear();
  }
  read_sets_[set].cells = cells;
  return set;
}

void SharedMemory::drop_set(const Cell& cell, std::uint32_t cells) {
  ReadSet& set = set_of(cell);
  set.cells -= cells;
  if (set.cells == 0) free_sets_.push_back(static_cast<std::uint32_t>(set_index(cell)));
}

bool SharedMemory::has_read(const ReadSet& set, Stamp access) const {
  const Agent agent = agent_of(access.epoch);
  for (auto reader = first_read_of(set.readers, agent); reader != set.readers.end(); ++reader) {
    if (agent_of(reader->epoch) != agent) return false;
    if (reader->epoch == access.epoch && (!check_warps_ || lane_of(reader->code) == lane_of(access.code))) return true;
  }
  return false;
}

bool SharedMemory::has_read(const Cell& cell, Stamp access) const {
  if ((cell.reader.epoch & kSet) != 0) {
    return has_read(set_of(cell), {access.epoch, access.code - lane_bits(cell.reader.code)});
  }
  return cell.reader.epoch == access.epoch && (!check_warps_ || lane_of(cell.reader.code) == lane_of(access.code));
}

bool SharedMemory::unordered(Stamp earlier, const VectorClock& now, Stamp access) const {
  if (earlier.epoch == 0 || earlier.epoch == kWrittenStrongly) return false;
  if (!ordered(earlier.epoch, now)) return true;
  // Lanes of one warp at the same instruction write in an order that check_lanes_agree() judges.
  return check_warps_ && earlier.epoch == access.epoch && earlier.code != access.code &&
         lane_of(earlier.code) != lane_of(access.code) && code_of(earlier.code) != code_of(access.code);
}

void SharedMemory::add_reader(ReadSet& set, Stamp access) {
  const Agent agent = agent_of(access.epoch);
  auto reader = first_read_of(set.readers, agent);
  for (int lanes = 0; reader != set.readers.end() && agent_of(reader->epoch) == agent; ++reader) {
    const bool apart = check_warps_ && reader->epoch == access.epoch && lane_of(reader->code) != lane_of(access.code);
    if (apart && ++lanes < 2) continue;  // a write conflicts with one of two lanes if it conflicts with any
    if (!apart) *reader = access;
    return;
  }
  set.readers.insert(reader, access);
}

bool SharedMemory::follows(const Cell& first, const Cell& cell, std::size_t i, std::size_t words) {
  return cell.reader.epoch == first.reader.epoch &&
         cell.reader.code == first.reader.code + static_cast<std::uint32_t>(i / words) * kNextLane;
}

void SharedMemory::add_reader(Cell* cells, std::size_t count, std::size_t words, Stamp access, std::uint32_t lanes) {
  const Stamp before = cells[0].reader;
  const auto sharers = static_cast<std::uint32_t>(lanes == 0 ? count : count * kWordsPerSector);
  const std::uint32_t step = std::max(lanes, 1U) * kNextLane;
  const std::uint32_t width = access.code & kWidthMask;
  access.code -= width;
  if ((before.epoch & kSet) != 0) {
    const Stamp relative{access.epoch, access.code - lane_bits(before.code)};
    ReadSet& old = set_of(cells[0]);
    if (has_read(old, relative)) return;
    // Two lanes of the warp are enough, see add_reader() of a set: it would not change.
    const auto own = first_read_of(old.readers, agent_of(access.epoch));
    if (old.readers.end() - own >= 2 && own[0].epoch == access.epoch && own[1].epoch == access.epoch) return;
    if (old.cells == sharers) return add_reader(old, relative);
  }
  const std::uint32_t set = new_read_set(sharers);
  ReadSet& readers = read_sets_[set];
  std::uint32_t position = lane_bits(before.code);
  if ((before.epoch & kSet) != 0) {
    readers.readers = set_of(cells[0]).readers;
    drop_set(cells[0], sharers);
  } else {
    readers.readers.push_back({before.epoch, code_of(before.code)});
  }
  add_reader(readers, {access.epoch, access.code - position});
  for (std::size_t i = 0; i < count; i += words, position += step) {
    for (std::size_t word = 0; word < words; ++word) cells[i + word].reader = {kSet, set | position | width};
  }
}

bool SharedMemory::replaces_reader(const Cell& cell, const VectorClock& now, Stamp access) const {
  if ((cell.reader.epoch & kSet) != 0) return false;
  // With check_warps, reads of two lanes since the warp's clock last grew are kept apart.
  const bool apart =
      check_warps_ && cell.reader.epoch == access.epoch && lane_of(cell.reader.code) != lane_of(access.code);
  const bool same = agent_of(cell.reader.epoch) == agent_of(access.epoch);
  return !apart && (cell.reader.epoch == 0 || same || ordered(cell.reader.epoch, now));
}

void SharedMemory::add_reader(Cell& cell, const VectorClock& now, Stamp access) {
  if (!replaces_reader(cell, now, access)) return add_reader(&cell, 1, 1, access);
  cell.reader = access;
}

SharedVerdict SharedMemory::read_cell(Cell& cell, const VectorClock& now, const Clocks* through_async, Stamp access) {
  const PackedEpoch writer = cell.writer.epoch;
  // Was checked at that read, and not written since.
  if (writer != 0 && has_read(cell, access)) return SharedVerdict::ok;
  if (writer == kRedZone) return SharedVerdict::out_of_bounds;
  SharedVerdict verdict = SharedVerdict::ok;
  if (writer == 0) {
    verdict = conflict(SharedVerdict::uninitialised, {});
  } else if ((writer & kInFlight) != 0) {
    verdict = conflict(SharedVerdict::in_flight, cell.writer);
  } else if (unordered(cell.writer, now, access)) {
    verdict = conflict(SharedVerdict::race, cell.writer);
  } else if (through_async != nullptr && unfenced(writer, through_async->proxy_fenced)) {
    verdict = conflict(SharedVerdict::unfenced, cell.writer);
  }
  add_reader(cell, now, access);
  return verdict;
}

bool SharedMemory::unfenced(PackedEpoch epoch, const VectorClock& proxy_fenced) {
  return epoch != 0 && epoch != kWrittenStrongly && !is_async(agent_of(epoch)) && !ordered(epoch, proxy_fenced);
}

template <class Visit>
void SharedMemory::each_reader(const Cell& cell, Visit&& visit) const {
  if ((cell.reader.epoch & kSet) == 0) return visit(cell.reader);
  for (const Stamp& reader : set_of(cell).readers) visit({reader.epoch, reader.code + lane_bits(cell.reader.code)});
}

SharedVerdict SharedMemory::write_cell(Cell& cell, const VectorClock& now, const Clocks* through_async, Stamp access) {
  if (cell.writer.epoch == kRedZone) return SharedVerdict::out_of_bounds;
  SharedVerdict verdict = SharedVerdict::ok;
  const auto check = [&](const Stamp& earlier, bool reads) {
    if (unordered(earlier, now, access)) {
      verdict = conflict(SharedVerdict::race, earlier, reads);
    } else if (verdict == SharedVerdict::ok && through_async != nullptr &&
               unfenced(earlier.epoch, through_async->proxy_fenced) &&
               !(reads && ordered(earlier.epoch, through_async->completed_reads))) {
      verdict = conflict(SharedVerdict::unfenced_reuse, earlier, reads);
    }
  };
  if ((cell.writer.epoch & kInFlight) != 0) {
    verdict = conflict(SharedVerdict::in_flight, cell.writer);
  } else {
    check(cell.writer, false);
  }
  each_reader(cell, [&](const Stamp& reader) { check(reader, true); });
  drop_readers(cell);
  cell.writer = access;
  return verdict;
}

SharedVerdict SharedMemory::read(const VectorClock& now, const Accessor& accessor, std::uint64_t address,
                                 std::uint32_t bytes) {
  const Stamp access = stamp(now, accessor);
  const SharedVerdict verdict =
      each_cell(address, bytes, false, [&](Cell& cell) { return read_cell(cell, now, nullptr, access); });
  return with_undefined_bits(address, bytes,
                             follow_strong_writes(now, address, bytes, SharedVerdict::mixed_race, verdict));
}

SharedVerdict SharedMemory::async_read(const Clocks& clocks, const Accessor& accessor, std::uint64_t address,
                                       std::uint32_t bytes) {
  const Stamp access = stamp(clocks.ordered, accessor);
  const SharedVerdict verdict =
      each_cell(address, bytes, false, [&](Cell& cell) { return read_cell(cell, clocks.ordered, &clocks, access); });
  return with_undefined_bits(address, bytes, verdict);
}

SharedVerdict SharedMemory::with_undefined_bits(std::uint64_t address, std::uint32_t bytes,
                                                SharedVerdict verdict) const {
  return has_undefined_bits(address, bytes) ? std::max(verdict, SharedVerdict::uninitialised) : verdict;
}

bool SharedMemory::has_undefined_bits(std::uint64_t address, std::uint32_t bytes) const {
  if (undefined_bits_.empty()) return false;
  for (std::uint64_t at = address; at < address + bytes; ++at) {
    if (undefined_bits_.contains(at)) return true;
  }
  return false;
}

SharedVerdict SharedMemory::ChunkReads::read_other(std::uint64_t address, const Cell* cells) {
  const Cell before = cells[0];
  const SharedVerdict verdict = memory_.async_read(clocks_, accessor_, address, kBytes);
  // Cells of split words and sets of readers are judged one by one: they have other epochs, or stay sets.
  if (verdict == SharedVerdict::ok && before.writer.epoch != kSplit && cells[0].reader.epoch == stamp_.epoch) {
    has_last_ = true;
    writer_ = before.writer.epoch;
    reader_ = before.reader.epoch;
  }
  return verdict;
}

SharedVerdict SharedMemory::write(const VectorClock& now, const Accessor& accessor, std::uint64_t address,
                                  std::uint32_t bytes) {
  const Stamp access = stamp(now, accessor);
  forget_undefined_bits(address, bytes);
  const SharedVerdict before = follow_strong_writes(now, address, bytes, SharedVerdict::race, SharedVerdict::ok);
  const Accessor strong = other_;
  const SharedVerdict verdict =
      each_cell(address, bytes, true, [&](Cell& cell) { return write_cell(cell, now, nullptr, access); });
  if (verdict >= before) return verdict;
  other_ = strong;
  other_reads_ = false;
  return before;
}

SharedVerdict SharedMemory::follow_strong_writes(const VectorClock& now, std::uint64_t address, std::uint32_t bytes,
                                                 SharedVerdict unordered, SharedVerdict verdict) {
  if (strong_writes_.empty() || !check_races_ || verdict >= unordered) return verdict;
  for (std::uint64_t at = address; at < address + bytes; at = at / 4 * 4 + 4) {
    if (cell_at(at).writer.epoch != kWrittenStrongly) continue;
    const std::uint32_t index = strong_write_at_word_[(at - kSharedBase) / 4];
    if (index == 0) continue;
    const StrongWrite& write = strong_writes_[index - 1];
    if (write.begin >= address + bytes || address >= write.begin + write.bytes) continue;
    if (write.accessor.clock <= now[write.accessor.agent]) continue;
    other_ = write.accessor;
    other_reads_ = false;
    return unordered;
  }
  return verdict;
}

void SharedMemory::note_strong_write(const StrongWrite& write) {
  if (strong_write_at_word_.empty()) strong_write_at_word_.resize(sectors_.size() * kWordsPerSector);
  for (std::uint64_t at = write.begin; at < write.begin + write.bytes; at = at / 4 * 4 + 4) {
    std::uint32_t& index = strong_write_at_word_[(at - kSharedBase) / 4];
    if (index == 0) {
      strong_writes_.emplace_back();
      index = static_cast<std::uint32_t>(strong_writes_.size());
    }
    strong_writes_[index - 1] = write;
  }
}

SharedVerdict SharedMemory::async_write(const Clocks& clocks, const Accessor& accessor, std::uint64_t address,
                                        std::uint32_t bytes) {
  const Stamp access = stamp(clocks.ordered, accessor);
  forget_undefined_bits(address, bytes);
  return each_cell(address, bytes, true, [&](Cell& cell) { return write_cell(cell, clocks.ordered, &clocks, access); });
}

bool SharedMemory::is_plain(const Cell& cell, const VectorClock& now, Stamp access, bool writes) const {
  const PackedEpoch writer = cell.writer.epoch;
  // A split word has all bits set, so that it counts as in flight here.
  if ((writer & kInFlight) != 0 || writer == kRedZone || writer == kWrittenStrongly || (writer == 0 && !writes))
    return false;
  if (unordered(cell.writer, now, access)) return false;
  if (!writes) return true;
  if ((cell.reader.epoch & kSet) == 0) return !unordered(cell.reader, now, access);
  return std::ranges::none_of(set_of(cell).readers, [&](const Stamp& reader) {
    return unordered({reader.epoch, reader.code + lane_bits(cell.reader.code)}, now, access);
  });
}

// Two cells are compared and written as one vector: an epoch and a code of the writer, the same of the reader. Vectors
// are passed by reference, as their ABI depends on the target.
namespace {

using Four = std::uint32_t __attribute__((vector_size(16)));
using Eight = std::uint32_t __attribute__((vector_size(32)));

/// Which lanes the cells of consecutive lanes belong to. Lanes are in units of kNextLane.
struct CellLanes {
  std::uint32_t pairs = 0;           // of cells
  std::uint32_t second = 0;          // the lane of the second cell of a pair, if the first one's is 0
  std::uint32_t step = 0;            // the lanes from one pair to the next, or the one after it
  std::uint32_t pairs_per_step = 1;  // 1 or 2
};

/// The cells of all words, or bytes, of 32 lanes that have `words` each.
constexpr CellLanes lanes_of_words(std::uint32_t words) {
  return {kWarpSize / 2 * words, words == 1 ? kNextLane : 0, words == 1 ? 2 * kNextLane : kNextLane,
          words == 4 ? 2U : 1U};
}
/// The cells of `sectors` sectors, each of which `lanes` lanes access.
constexpr CellLanes lanes_of_sectors(std::uint32_t sectors, std::uint32_t lanes) {
  return {sectors / 2, lanes * kNextLane, 2 * lanes * kNextLane};
}

/// Calls f(i, lanes) for each pair i of cells; `lanes` is `first` with the lane of each cell added to the codes where
/// `mask` has ones.
template <class F>
[[gnu::always_inline]] inline void each_pair(const CellLanes& of, const Eight& first, const Eight& mask, F&& f) {
  const Eight second = {0, 0, 0, 0, 0, of.second, 0, of.second};
  const Eight step = {0, of.step, 0, of.step, 0, of.step, 0, of.step};
  Eight lanes = first + (second & mask);
  const Eight next = step & mask;
  for (std::uint32_t i = 0; i < of.pairs; ++i) {
    f(i, lanes);
    if (of.pairs_per_step == 1 || i % 2 == 1) lanes += next;
  }
}

/// The bits in which cells differ from one of them.
struct CellDifferences {
  std::uint32_t epochs = 0;   // of the writers and of the readers
  std::uint32_t writers = 0;  // codes
  std::uint32_t readers = 0;  // codes
};
/// The differences of both cells of a pair.
[[gnu::always_inline]] inline CellDifferences joined(const Eight& pair) {
  return {pair[0] | pair[2] | pair[4] | pair[6], pair[1] | pair[5], pair[3] | pair[7]};
}

/// The differences of cells from the first one, with the lane of each cell added to its codes.
[[gnu::always_inline]] inline CellDifferences differences_inline(const CellLanes& of, const void* cells) {
  Four cell;
  std::memcpy(&cell, cells, sizeof(cell));
  const Eight first = __builtin_shufflevector(cell, cell, 0, 1, 2, 3, 0, 1, 2, 3);
  Eight all = {};
  each_pair(of, first, ~Eight{}, [&](std::uint32_t i, const Eight& lanes) {
    Eight stamps;
    std::memcpy(&stamps, static_cast<const std::byte*>(cells) + i * sizeof(stamps), sizeof(stamps));
    all |= stamps ^ lanes;
  });
  return joined(all);
}

/// Makes each lane the writer of its cells, which then have no reader, or their reader.
[[gnu::always_inline]] inline void stamp_inline(const CellLanes& of, void* cells, std::uint32_t epoch,
                                                std::uint32_t code, bool writes) {
  const std::uint32_t w = writes ? ~0U : 0U, r = ~w;
  const Eight replaced = {w, w, ~0U, ~0U, w, w, ~0U, ~0U}, of_access = {w, w, r, r, w, w, r, r};
  const Eight stamps = {epoch, code, epoch, code, epoch, code, epoch, code};
  each_pair(of, stamps & of_access, of_access, [&](std::uint32_t i, const Eight& lanes) {
    std::byte* const at = static_cast<std::byte*>(cells) + i * sizeof(Eight);
    Eight old;
    std::memcpy(&old, at, sizeof(old));
    const Eight changed = (old & ~replaced) | lanes;
    std::memcpy(at, &changed, sizeof(changed));
  });
}

template <std::uint32_t kWords>
TILEWRIGHT_TARGET_FMA CellDifferences differences_of_words_with_hardware(const void* cells) {
  return differences_inline(lanes_of_words(kWords), cells);
}
template <std::uint32_t kWords>
CellDifferences differences_of_words(const void* cells) {
  return has_hardware_fma() ? differences_of_words_with_hardware<kWords>(cells)
                            : differences_inline(lanes_of_words(kWords), cells);
}

template <std::uint32_t kWords>
TILEWRIGHT_TARGET_FMA void stamp_words_with_hardware(void* cells, std::uint32_t epoch, std::uint32_t code,
                                                     bool writes) {
  stamp_inline(lanes_of_words(kWords), cells, epoch, code, writes);
}
template <std::uint32_t kWords>
void stamp_words(void* cells, std::uint32_t epoch, std::uint32_t code, bool writes) {
  if (has_hardware_fma()) return stamp_words_with_hardware<kWords>(cells, epoch, code, writes);
  stamp_inline(lanes_of_words(kWords), cells, epoch, code, writes);
}

TILEWRIGHT_TARGET_FMA CellDifferences differences_of_sectors_with_hardware(const CellLanes& of, const void* sectors) {
  return differences_inline(of, sectors);
}
CellDifferences differences_of_sectors(const CellLanes& of, const void* sectors) {
  return has_hardware_fma() ? differences_of_sectors_with_hardware(of, sectors) : differences_inline(of, sectors);
}

TILEWRIGHT_TARGET_FMA void stamp_sectors_with_hardware(const CellLanes& of, void* sectors, std::uint32_t epoch,
                                                       std::uint32_t code, bool writes) {
  stamp_inline(of, sectors, epoch, code, writes);
}
void stamp_sectors(const CellLanes& of, void* sectors, std::uint32_t epoch, std::uint32_t code, bool writes) {
  if (has_hardware_fma()) return stamp_sectors_with_hardware(of, sectors, epoch, code, writes);
  stamp_inline(of, sectors, epoch, code, writes);
}

/// Calls f(cells) for each pair of the cells of chunks of 16 bytes. `cells` are those of kSharedBase.
template <class F>
[[gnu::always_inline]] inline void each_pair_of_chunks(std::byte* cells, const std::uint32_t* addresses, int count,
                                                       F&& f) {
  for (int i = 0; i < count; ++i) {
    std::byte* const at = cells + (addresses[i] - kSharedBase) / 4 * (sizeof(Eight) / 2);
    f(at);
    f(at + sizeof(Eight));
  }
}

/// The bits in which the cells of the chunks differ from the first of them.
[[gnu::always_inline]] inline CellDifferences chunk_differences_inline(std::byte* cells, const std::uint32_t* addresses,
                                                                       int count) {
  Four cell;
  std::memcpy(&cell, cells + (addresses[0] - kSharedBase) / 4 * sizeof(cell), sizeof(cell));
  const Eight first = __builtin_shufflevector(cell, cell, 0, 1, 2, 3, 0, 1, 2, 3);
  Eight all = {};
  each_pair_of_chunks(cells, addresses, count, [&](const std::byte* at) {
    Eight stamps;
    std::memcpy(&stamps, at, sizeof(stamps));
    all |= stamps ^ first;
  });
  return joined(all);
}

/// Makes an access the reader of the cells of the chunks.
[[gnu::always_inline]] inline void stamp_chunks_inline(std::byte* cells, const std::uint32_t* addresses, int count,
                                                       std::uint32_t epoch, std::uint32_t code) {
  const Eight kept = {~0U, ~0U, 0, 0, ~0U, ~0U, 0, 0}, stamps = {0, 0, epoch, code, 0, 0, epoch, code};
  each_pair_of_chunks(cells, addresses, count, [&](std::byte* at) {
    Eight pair;
    std::memcpy(&pair, at, sizeof(pair));
    pair = (pair & kept) | stamps;
    std::memcpy(at, &pair, sizeof(pair));
  });
}

TILEWRIGHT_TARGET_FMA CellDifferences chunk_differences_with_hardware(std::byte* cells, const std::uint32_t* addresses,
                                                                      int count) {
  return chunk_differences_inline(cells, addresses, count);
}
TILEWRIGHT_TARGET_FMA void stamp_chunks_with_hardware(std::byte* cells, const std::uint32_t* addresses, int count,
                                                      std::uint32_t epoch, std::uint32_t code) {
  stamp_chunks_inline(cells, addresses, count, epoch, code);
}

}  // namespace

bool SharedMemory::ChunkReads::is_plain(const Cell& cell) const {
  return memory_.is_plain(cell, clocks_.ordered, stamp_, false) && !unfenced(cell.writer.epoch, clocks_.proxy_fenced) &&
         memory_.replaces_reader(cell, clocks_.ordered, stamp_);
}

bool SharedMemory::ChunkReads::read_alike(const std::uint32_t (&addresses)[kAlike]) {
  if (!memory_.undefined_bits_.empty()) return false;
  for (const std::uint32_t address : addresses) memory_.word_cell((address - kSharedBase) / 4);
  const Cell first = memory_.words_[(addresses[0] - kSharedBase) / 4];
  if (!is_like_last(first) && !is_plain(first)) return false;
  auto* const cells = reinterpret_cast<std::byte*>(memory_.words_.data());
  const CellDifferences differences = has_hardware_fma() ? chunk_differences_with_hardware(cells, addresses, kAlike)
                                                         : chunk_differences_inline(cells, addresses, kAlike);
  if (differences.epochs != 0) return false;
  has_last_ = true;
  writer_ = first.writer.epoch;
  reader_ = first.reader.epoch;
  // The other warps of a warpgroup read the same B.
  if (differences.readers == 0 && first.reader.epoch == stamp_.epoch && first.reader.code == stamp_.code) return true;
  if (has_hardware_fma()) {
    stamp_chunks_with_hardware(cells, addresses, kAlike, stamp_.epoch, stamp_.code);
  } else {
    stamp_chunks_inline(cells, addresses, kAlike, stamp_.epoch, stamp_.code);
  }
  return true;
}

template <std::uint32_t kWords>
bool SharedMemory::access_words(const VectorClock& now, Stamp first, Cell* cells, bool writes) {
  // All cells must have the epochs of the first; accesses at the warp's current time must be of the same lanes. Then
  // the judgement of one cell holds for all.
  static_assert(2 * sizeof(Cell) == sizeof(Eight));
  constexpr std::size_t kCells = kWords * kWarpSize;
  const Stamp writer = cells[0].writer, reader = cells[0].reader;
  if (!is_plain(cells[0], now, first, writes)) return false;
  const CellDifferences differences = differences_of_words<kWords>(cells);
  if (differences.epochs != 0) return false;
  const auto is_of_other_lanes = [&](const Stamp& stamp, std::uint32_t difference) {
    return check_warps_ && stamp.epoch == first.epoch && (lane_of(stamp.code) | lane_of(difference)) != 0;
  };
  if (is_of_other_lanes(writer, differences.writers) || is_of_other_lanes(reader, differences.readers)) return false;
  const bool is_set = (reader.epoch & kSet) != 0;
  if (is_set && differences.readers != 0) return false;
  if (writes) {
    if (is_set) drop_set(cells[0], kCells);
  } else {
    if (reader.epoch == first.epoch) return true;
    if (is_set ||
        (reader.epoch != 0 && agent_of(reader.epoch) != agent_of(first.epoch) && !ordered(reader.epoch, now))) {
      if (differences.readers != 0) return false;
      add_reader(cells, kCells, kWords, first);
      return true;
    }
  }
  stamp_words<kWords>(cells, first.epoch, first.code, writes);
  return true;
}

bool SharedMemory::has_plain_readers(const Cell& sector, const VectorClock& now, Stamp access) const {
  const std::uint32_t lane_and_width = sector.reader.code & ~((1U << kWidthShift) - 1);
  return std::ranges::none_of(set_of(sector).readers, [&](const Stamp& each) {
    return !ordered(each.epoch, now) || is_of_other_lanes({each.epoch, each.code + lane_and_width}, access);
  });
}

inline bool SharedMemory::is_plain_sector(const Cell& sector, const VectorClock& now, Stamp access, bool writes) const {
  const PackedEpoch writer = sector.writer.epoch;
  if ((writer & kInFlight) != 0 || writer == kRedZone || (writer == 0 && !writes)) return false;
  if (!ordered(writer, now)) return false;
  // If the warp has written the sector at its current time, the same lanes must have done so. If it writes now, the
  // same holds for its reads.
  if (is_of_other_lanes(sector.writer, access)) return false;
  if (!writes) return true;
  if ((sector.reader.epoch & kSet) != 0) return has_plain_readers(sector, now, access);
  return ordered(sector.reader.epoch, now) && !is_of_other_lanes(sector.reader, access);
}

inline bool SharedMemory::access_sectors(const VectorClock& now, Stamp first, Cell* sectors, std::uint32_t count,
                                         std::uint32_t lanes, bool writes) {
  const Cell before = sectors[0];
  if (!is_plain_sector(before, now, first, writes)) return false;
  // Then the same holds for all sectors if they have the epochs of the first, and lanes that follow its lanes.
  const CellLanes of = lanes_of_sectors(count, lanes);
  const CellDifferences differences = count > 1 ? differences_of_sectors(of, sectors) : CellDifferences{};
  const PackedEpoch reader = before.reader.epoch;
  const bool is_set = (reader & kSet) != 0;
  if (differences.epochs != 0 || (differences.writers != 0 && before.writer.epoch == first.epoch)) return false;
  if (differences.readers != 0 && (is_set || reader == first.epoch)) return false;
  const auto stamp_all = [&] {
    if (count > 1) return stamp_sectors(of, sectors, first.epoch, first.code, writes);
    sectors[0] = writes ? Cell{first, {}} : Cell{before.writer, first};
  };
  if (writes) {
    if (is_set) drop_set(before, count * kWordsPerSector);
  } else {
    const bool same_width = ((before.reader.code ^ first.code) & kWidthMask) == 0;
    if (reader == first.epoch) {
      if (!check_warps_ || (before.reader.code ^ first.code) >> kWidthShift == 0) return true;
    } else if (!is_set && (reader == 0 || agent_of(reader) == agent_of(first.epoch) || ordered(reader, now))) {
      stamp_all();
      return true;
    }
    if (differences.readers != 0 || !same_width) return false;
    add_reader(sectors, count, 1, first, lanes);
    return true;
  }
  stamp_all();
  return true;
}

bool SharedMemory::access_sector(const VectorClock& now, Stamp first, std::size_t sector, std::uint32_t lanes,
                                 bool writes) {
  Cell& whole = sectors_[sector];
  if (whole.writer.epoch != kSplit) return access_sectors(now, first, &whole, 1, lanes, writes);
  if (!writes) return false;
  // The sector becomes one cell again if there is nothing to report of any of its words.
  Cell* const cells = &words_[kWordsPerSector * sector];
  const Stamp access{first.epoch, first.code & ~kWidthMask};
  const std::uint32_t words = kWordsPerSector / lanes;
  for (std::uint32_t i = 0; i < kWordsPerSector; ++i) {
    if (!is_plain(cells[i], now, {access.epoch, access.code + i / words * kNextLane}, true)) return false;
  }
  for (std::uint32_t i = 0; i < kWordsPerSector; ++i) drop_readers(cells[i]);
  whole = {first, {}};
  return true;
}

bool SharedMemory::access_consecutive(const VectorClock& now, const Accessor& accessor, std::uint64_t address,
                                      std::uint32_t bytes, bool writes) {
  if (!undefined_bits_.empty()) return false;
  const std::size_t begin = address - kSharedBase;
  const Stamp first = stamp(now, accessor);
  Cell* const sectors = &sectors_[begin / kSectorBytes];
  if (bytes >= 4 && begin % kSectorBytes == 0 && sectors[0].writer.epoch != kSplit) {
    return access_sectors(now, with_width(first, bytes / 4), sectors, kWarpSize * bytes / kSectorBytes,
                          lanes_per_sector(bytes), writes);
  }
  return access_consecutive_cells(now, first, begin, bytes, writes);
}

bool SharedMemory::access_consecutive_cells(const VectorClock& now, Stamp first, std::size_t begin, std::uint32_t bytes,
                                            bool writes) {
  if (bytes == 1 || bytes == 2) {
    for (std::size_t word = begin / 4; word <= (begin + kWarpSize * bytes - 1) / 4; ++word) {
      if (word_cell(word)->writer.epoch != kSplit) split_word(word);
    }
    Cell* const cells = &bytes_[begin];
    return bytes == 1 ? access_words<1>(now, first, cells, writes) : access_words<2>(now, first, cells, writes);
  }
  if (begin % 4 != 0) return false;
  const std::uint32_t words = bytes / 4;
  Cell* const cells = word_cells(begin / 4, std::size_t{words} * kWarpSize);
  const bool done = words == 1   ? access_words<1>(now, first, cells, writes)
                    : words == 2 ? access_words<2>(now, first, cells, writes)
                                 : access_words<4>(now, first, cells, writes);
  if (!done || !writes || begin % kSectorBytes != 0) return done;
  stamp_sectors(lanes_of_sectors(kWarpSize * bytes / kSectorBytes, lanes_per_sector(bytes)),
                &sectors_[begin / kSectorBytes], first.epoch, with_width(first, words).code, true);
  return true;
}

namespace {

bool are_ascending(const std::uint64_t* addresses, Mask lanes) {
  std::uint64_t before = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t address = addresses[std::countr_zero(lanes)];
    if (address <= before) return false;
    before = address;
  }
  return true;
}

/// The cells of the lanes of an instruction, as the words of four numbers that cells are, and who accesses them.
struct LaneCells {
  const std::uint32_t* cells = nullptr;
  std::int32_t index[kWarpSize];  // in `cells`
  std::uint32_t lane[kWarpSize];  // who accesses the cell
  const std::uint32_t* clocks = nullptr;
  std::uint32_t first_agent = 0;  // whose clock is the first
  std::uint32_t agents = 0;
  std::uint32_t epoch = 0;         // of the access
  std::uint32_t checks_lanes = 0;  // all ones if accesses of the warp at this time must be of the same lane
  std::uint32_t reads = 0;         // all ones, or 0 for writes
};

/// Sets the lanes and, to the bytes that they access, the indices; lanes outside of the mask repeat the first one of
/// it. Returns the bits of the bytes, and whether all their sectors are split.
struct LaneBytes {
  std::uint32_t bits = 0;
  bool are_split = false;
};
[[gnu::always_inline]] inline LaneBytes locate_inline(LaneCells& of, const std::uint64_t* addresses, std::uint64_t base,
                                                      Mask lanes, const std::uint32_t* sectors) {
  constexpr int kSectorShift = 5, kNumbersOfCell = 4;
  const auto any = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const auto other = static_cast<std::int32_t>(addresses[any] - base);
  LaneBytes found;
  std::uint32_t split = ~0U;
  for (int l = 0; l < kWarpSize; ++l) {
    const bool active = (lanes >> l & 1) != 0;
    of.index[l] = active ? static_cast<std::int32_t>(addresses[l] - base) : other;
    of.lane[l] = active ? static_cast<std::uint32_t>(l) : any;
    found.bits |= static_cast<std::uint32_t>(of.index[l]);
    split &= sectors[(of.index[l] >> kSectorShift) * kNumbersOfCell];
  }
  found.are_split = split == ~0U;
  return found;
}
/// 0 if each cell was written, and read if it was, before the access by what happens before it, and has at most one
/// reader.
[[gnu::always_inline]] inline std::uint32_t judge_inline(const LaneCells& of) {
  std::uint32_t bad = 0;
  const auto is_late = [&](std::uint32_t epoch, std::uint32_t code, std::uint32_t lane) {
    const std::uint32_t agent = agent_of(epoch) - of.first_agent;
    const std::uint32_t known = agent < of.agents ? of.clocks[static_cast<std::int32_t>(agent)] : 0;
    const std::uint32_t other_lane = epoch == of.epoch && lane_of(code) != lane ? of.checks_lanes : 0;
    return (clock_of(epoch) > known ? 1 : 0) | other_lane | (epoch & kInFlight);
  };
  for (int l = 0; l < kWarpSize; ++l) {
    const std::uint32_t* const cell = of.cells + of.index[l];
    const std::uint32_t writer = cell[0];
    bad |= is_late(writer, cell[1], of.lane[l]) | is_late(cell[2], cell[3], of.lane[l]);
    bad |= (writer == kRedZone ? 1 : 0) | (writer == 0 ? of.reads : 0);
  }
  return bad;
}

#if defined(__x86_64__)
// The same for 16 lanes at once: compilers do not vectorise the loops above. GCC 12 takes the undefined vectors of its
// own header for an error.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

TILEWRIGHT_TARGET_AVX512 LaneBytes locate_with_avx512(LaneCells& of, const std::uint64_t* addresses, std::uint64_t base,
                                                      Mask lanes, const std::uint32_t* sectors) {
  constexpr int kLanes = 16, kSectorShift = 5, kNumbersOfCellShift = 2, kGatherScale = 4;
  const int any = std::countr_zero(lanes);
  const __m512i other = _mm512_set1_epi32(static_cast<int>(addresses[any] - base));
  const __m512i from = _mm512_set1_epi64(static_cast<long long>(base));
  const __m512i numbers = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  __m512i bits = other;
  unsigned whole = 0;
  for (int l = 0; l < kWarpSize; l += kLanes) {
    const auto active = static_cast<__mmask16>(lanes >> l);
    const __m256i low = _mm512_cvtepi64_epi32(_mm512_sub_epi64(_mm512_loadu_si512(addresses + l), from));
    const __m256i high = _mm512_cvtepi64_epi32(_mm512_sub_epi64(_mm512_loadu_si512(addresses + l + kLanes / 2), from));
    const __m512i offsets = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    const __m512i index = _mm512_mask_mov_epi32(other, active, offsets);
    const __m512i lane = _mm512_add_epi32(numbers, _mm512_set1_epi32(l));
    _mm512_storeu_si512(of.index + l, index);
    _mm512_storeu_si512(of.lane + l, _mm512_mask_mov_epi32(_mm512_set1_epi32(any), active, lane));
    bits = _mm512_or_si512(bits, index);
    const __m512i sector = _mm512_slli_epi32(_mm512_srai_epi32(index, kSectorShift), kNumbersOfCellShift);
    const __m512i epochs = _mm512_i32gather_epi32(sector, sectors, kGatherScale);
    whole |= _mm512_cmpneq_epi32_mask(epochs, _mm512_set1_epi32(-1));
  }
  return {static_cast<std::uint32_t>(_mm512_reduce_or_epi32(bits)), whole == 0};
}

TILEWRIGHT_TARGET_AVX512 std::uint32_t judge_with_avx512(const LaneCells& of) {
  constexpr int kLanes = 16, kGatherScale = 4, kLaneShift = 27;
  const __m512i in_flight = _mm512_set1_epi32(static_cast<int>(kInFlight));
  const __m512i agent_bits = _mm512_set1_epi32((1 << kAgentBits) - 1);
  const __m512i first_agent = _mm512_set1_epi32(static_cast<int>(of.first_agent));
  const __m512i agents = _mm512_set1_epi32(static_cast<int>(of.agents));
  const __m512i own_epoch = _mm512_set1_epi32(static_cast<int>(of.epoch));
  unsigned bad = 0;
  for (int l = 0; l < kWarpSize; l += kLanes) {
    const __m512i index = _mm512_loadu_si512(of.index + l), lane = _mm512_loadu_si512(of.lane + l);
    for (int stamp = 0; stamp < 4; stamp += 2) {  // the writer and the reader
      const __m512i epoch = _mm512_i32gather_epi32(index, of.cells + stamp, kGatherScale);
      const __m512i code = _mm512_i32gather_epi32(index, of.cells + stamp + 1, kGatherScale);
      const __m512i agent = _mm512_sub_epi32(_mm512_and_si512(epoch, agent_bits), first_agent);
      const __mmask16 has_clock = _mm512_cmplt_epu32_mask(agent, agents);
      const __m512i known =
          _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), has_clock, agent, of.clocks, kGatherScale);
      const __m512i clock = _mm512_srli_epi32(_mm512_andnot_si512(in_flight, epoch), kAgentBits);
      bad |= _mm512_cmpgt_epu32_mask(clock, known);
      bad |= _mm512_test_epi32_mask(epoch, in_flight);
      const __mmask16 own = _mm512_mask_cmpeq_epi32_mask(static_cast<__mmask16>(of.checks_lanes), epoch, own_epoch);
      bad |= _mm512_mask_cmpneq_epi32_mask(own, _mm512_srli_epi32(code, kLaneShift), lane);
      if (stamp != 0) continue;
      bad |= _mm512_cmpeq_epi32_mask(epoch, _mm512_set1_epi32(kRedZone));
      bad |= _mm512_mask_cmpeq_epi32_mask(static_cast<__mmask16>(of.reads), epoch, _mm512_setzero_si512());
    }
  }
  return bad;
}
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#else
LaneBytes locate_with_avx512(LaneCells& of, const std::uint64_t* addresses, std::uint64_t base, Mask lanes,
                             const std::uint32_t* sectors) {
  return locate_inline(of, addresses, base, lanes, sectors);
}
std::uint32_t judge_with_avx512(const LaneCells& of) { return judge_inline(of); }
#endif

}  // namespace

bool SharedMemory::access_scattered(const VectorClock& now, Stamp first, const std::uint64_t* addresses,
                                    std::uint64_t base, Mask lanes, std::uint32_t bytes, bool writes) {
  // Lanes that read the same cells are kept apart.
  if (!writes && !are_ascending(addresses, lanes)) return false;
  LaneCells of;
  const bool in_words = bytes >= 4;
  static_assert(kSplit == ~PackedEpoch{0} && kSectorBytes == 32 && sizeof(Cell) == 4 * sizeof(std::uint32_t));
  const auto* const sectors = reinterpret_cast<const std::uint32_t*>(sectors_.data());
  const LaneBytes at = has_avx512() ? locate_with_avx512(of, addresses, base + kSharedBase, lanes, sectors)
                                    : locate_inline(of, addresses, base + kSharedBase, lanes, sectors);
  if (at.bits % bytes != 0) return false;
  if (!at.are_split || !in_words) {
    for (const std::int32_t index : of.index) {
      const auto word = static_cast<std::size_t>(index) / 4;
      if (word_cell(word)->writer.epoch != kSplit && !in_words) split_word(word);
    }
  }
  for (std::int32_t& index : of.index) index *= in_words ? 1 : 4;
  Cell* const cells = in_words ? words_.data() : bytes_.data();
  of.clocks = now.clocks().data();
  of.first_agent = now.first();
  of.agents = static_cast<std::uint32_t>(now.clocks().size());
  of.epoch = first.epoch;
  of.checks_lanes = check_warps_ ? ~0U : 0;
  of.reads = writes ? 0 : ~0U;
  const std::size_t words = in_words ? bytes / 4 : bytes;
  for (std::size_t i = 0; i < words; ++i) {
    of.cells = reinterpret_cast<const std::uint32_t*>(cells + i);
    if ((has_avx512() ? judge_with_avx512(of) : judge_inline(of)) != 0) return false;
  }
  // Lanes outside of the mask repeat one of it.
  const auto each = [&](auto&& visit) {
    for (int l = 0; l < kWarpSize; ++l) {
      const Stamp access{first.epoch, first.code + of.lane[l] * kNextLane};
      Cell* const cell = cells + of.index[l] / 4;
      visit(cell[0], access);
      for (std::size_t i = 1; i < words; ++i) visit(cell[i], access);
    }
  };
  if (writes) {
    each([](Cell& cell, const Stamp& access) { cell = {access, {}}; });
    return true;
  }
  each([](Cell& cell, const Stamp& access) {
    if (cell.reader.epoch != access.epoch) cell.reader = access;
  });
  return true;
}

Mask SharedMemory::access_whole_sectors(const VectorClock& now, Stamp first, const std::uint64_t* addresses,
                                        std::uint64_t base, Mask lanes, std::size_t words, bool writes) {
  if (words != 1 && words != 2 && words != 4) return lanes;
  const std::uint32_t group = kWordsPerSector / static_cast<std::uint32_t>(words);  // lanes of one sector
  const Mask all = (Mask{1} << group) - 1;
  Mask others = lanes;
  for (std::uint32_t lane = 0; lane < kWarpSize; lane += group) {
    if ((lanes >> lane & all) != all) continue;
    const std::uint64_t begin = addresses[lane] - base - kSharedBase;
    if (begin % kSectorBytes != 0) continue;
    std::uint64_t gaps = 0;
    for (std::uint32_t i = 1; i < group; ++i) gaps |= addresses[lane + i] - addresses[lane] - i * words * 4;
    if (gaps != 0) continue;
    const Stamp access = with_width({first.epoch, first.code + lane * kNextLane}, static_cast<std::uint32_t>(words));
    if (access_sector(now, access, begin / kSectorBytes, group, writes)) others &= ~(all << lane);
  }
  return others;
}

/// The accesses of one instruction, lane by lane: the last resort of access_lanes().
class SharedMemory::LaneAccess {
 public:
  LaneAccess(SharedMemory& memory, const VectorClock& now, Stamp first, const std::uint64_t* addresses,
             std::uint64_t base, std::uint32_t bytes, bool writes)
      : memory_(memory), now_(now), first_(first), addresses_(addresses), base_(base), bytes_(bytes), writes_(writes) {}

  /// The cells of a lane: one for each word, or for each byte of a part of a word.
  Cell* cells_of(int lane) {
    const std::size_t begin = addresses_[lane] - base_ - kSharedBase;
    if (bytes_ == 4) return memory_.word_cell(begin / 4);
    if (bytes_ > 4) return memory_.word_cells(begin / 4, cells_);
    if (memory_.word_cell(begin / 4)->writer.epoch != kSplit) memory_.split_word(begin / 4);
    return &memory_.bytes_[begin];
  }

  /// As access_lanes().
  Mask access(Mask lanes) {
    Mask others = 0;
    std::uint64_t last = 0, before_last = 0;  // addresses of lanes that read without a finding
    while (lanes != 0) {
      const int lane = std::countr_zero(lanes);
      lanes &= lanes - 1;
      // add_reader() keeps two of the lanes that read the same bytes, so that more need no check.
      if (!writes_ && addresses_[lane] == last && last == before_last) continue;
      Cell* const cells = cells_of(lane);
      const Stamp access = stamp_of(static_cast<std::uint32_t>(lane));
      if (!is_plain(lane, cells, access)) {
        others |= Mask{1} << lane;
        continue;
      }
      before_last = last;
      last = addresses_[lane];
      if (writes_) {
        write(cells, access);
        continue;
      }
      const std::size_t recorded = read(lane, cells, access, lanes);
      if (recorded == 0) continue;
      const std::size_t after = static_cast<std::size_t>(lane) + recorded;
      lanes = after < kWarpSize ? lanes >> after << after : 0;
      last = addresses_[after - 1];
    }
    return others;
  }

 private:
  Stamp stamp_of(std::uint32_t lane) const { return {first_.epoch, first_.code + lane * kNextLane}; }

  bool is_own(const Stamp& earlier, const Stamp& access) const {
    return earlier.epoch == access.epoch && !memory_.unordered(earlier, now_, access);
  }

  bool writer_is_plain(const Cell& cell, const Stamp& access) {
    const PackedEpoch writer = cell.writer.epoch;
    if ((writer & kInFlight) != 0 || writer == kRedZone) return false;  // also of a split word
    if (writer == ordered_writer_ || is_own(cell.writer, access)) return true;
    if (writer == access.epoch) return false;
    if (writer == 0) return writes_;
    if (!ordered(writer, now_)) return false;
    ordered_writer_ = writer;
    return true;
  }

  bool readers_are_plain(const Cell& cell, const Stamp& access) {
    const PackedEpoch reader = cell.reader.epoch;
    if (reader == 0 || reader == ordered_reader_ || is_own(cell.reader, access)) return true;
    if ((reader & kSet) != 0) {
      if (set_index(cell) == ordered_set_) return true;
      const auto& readers = memory_.set_of(cell).readers;
      if (!std::ranges::all_of(readers, [&](const Stamp& each) { return ordered(each.epoch, now_); })) return false;
      // The warp's own reads at this time are judged by lane.
      if (std::ranges::any_of(readers, [&](const Stamp& each) { return each.epoch == access.epoch; }))
        return memory_.is_plain(cell, now_, access, true);
      ordered_set_ = set_index(cell);
      return true;
    }
    if (reader == access.epoch || !ordered(reader, now_)) return false;
    ordered_reader_ = reader;
    return true;
  }

  /// Whether the access of the lane breaks no rule.
  bool is_plain(int lane, const Cell* cells, const Stamp& access) {
    bool plain = bytes_ < 4 || (addresses_[lane] - base_) % 4 == 0;
    for (std::size_t i = 0; i < cells_ && plain; ++i)
      plain = writer_is_plain(cells[i], access) && (!writes_ || readers_are_plain(cells[i], access));
    return plain;
  }

  void write(Cell* cells, const Stamp& access) {
    for (std::size_t i = 0; i < cells_; ++i) {
      memory_.drop_readers(cells[i]);
      cells[i].writer = access;
    }
  }

  /// Records the reads of the lane's cells. If those of the lanes after it, as far as they are in `lanes`, are alike,
  /// it records these too. Returns the number of lanes, or 0 if each cell was recorded on its own.
  std::size_t read(int lane, Cell* cells, const Stamp& access, Mask lanes) {
    for (std::size_t i = 0; i < cells_; ++i) {
      Cell& cell = cells[i];
      if (read_without_change_of_a_set(cell, access)) continue;
      const bool whole =
          i == 0 && std::all_of(cells, cells + cells_, [&](const Cell& each) { return follows(cell, each, 0, 1); });
      if (!whole) {
        if (!memory_.has_read(cell, access)) memory_.add_reader(cell, now_, access);
        continue;
      }
      std::size_t count = 1;
      while (is_alike(lane, cell, access, count, lanes)) ++count;
      memory_.add_reader(cells, count * cells_, cells_, access);
      return count;
    }
    return 0;
  }

  /// Records the read if the cell needs no set of readers for it, or has a set that stays as it is.
  bool read_without_change_of_a_set(Cell& cell, const Stamp& access) {
    const PackedEpoch reader = cell.reader.epoch;
    if (reader == 0 || reader == ordered_reader_) {
      cell.reader = access;
      return true;
    }
    if (reader == access.epoch && memory_.has_read(cell, access)) return true;
    if ((reader & kSet) != 0) {
      if (set_index(cell) == full_set_) return true;
      const auto& readers = memory_.set_of(cell).readers;
      const auto own = first_read_of(readers, agent_of(access.epoch));
      if (readers.end() - own < 2 || own[0].epoch != access.epoch || own[1].epoch != access.epoch) return false;
      full_set_ = set_index(cell);
      return true;
    }
    if (reader == access.epoch) return false;
    if (agent_of(reader) != agent_of(access.epoch) && !ordered(reader, now_)) return false;
    ordered_reader_ = reader;
    cell.reader = access;
    return true;
  }

  /// Whether the cells of the lane `count` lanes later follow those of `lane`, whose first is `cell`, and can be
  /// recorded together with them.
  bool is_alike(int lane, const Cell& cell, const Stamp& access, std::size_t count, Mask lanes) {
    const std::size_t next = static_cast<std::size_t>(lane) + count;
    if (next >= kWarpSize || ((lanes >> next) & 1) == 0) return false;
    if (addresses_[next] != addresses_[lane] + count * bytes_) return false;
    const Stamp of_next{access.epoch, access.code + static_cast<std::uint32_t>(count) * kNextLane};
    const Cell* const at = cells_of(static_cast<int>(next));
    return std::all_of(at, at + cells_, [&](const Cell& each) {
      return follows(cell, each, count, 1) && writer_is_plain(each, of_next);
    });
  }

  SharedMemory& memory_;
  const VectorClock& now_;
  const Stamp first_;
  const std::uint64_t* const addresses_;
  const std::uint64_t base_;
  const std::uint32_t bytes_;
  const bool writes_;
  const std::size_t cells_ = bytes_ < 4 ? bytes_ : bytes_ / 4;  // of a lane
  // Epochs and a set of which nothing is to be reported, whichever lane accesses the cell. kSplit stands for none.
  PackedEpoch ordered_writer_ = kSplit, ordered_reader_ = kSplit;
  std::size_t ordered_set_ = kSplit;
  std::size_t full_set_ = kSplit;  // two lanes of the warp have read its cells at this time
};

Mask SharedMemory::access_lanes(const VectorClock& now, const Accessor& accessor, const std::uint64_t* addresses,
                                std::uint64_t base, Mask lanes, std::uint32_t bytes, bool writes) {
  if (!shadowed() || !undefined_bits_.empty()) return lanes;
  const Stamp first = stamp(now, accessor);
  if (lanes == kAllLanes && bytes <= 16 && std::has_single_bit(bytes)) {
    std::uint64_t gaps = 0;
    for (std::uint64_t lane = 1; lane < kWarpSize; ++lane) gaps |= addresses[lane] - addresses[0] - lane * bytes;
    if (gaps == 0 && access_consecutive(now, accessor, addresses[0] - base, bytes, writes)) return 0;
  }
  if (bytes >= 4) lanes = access_whole_sectors(now, first, addresses, base, lanes, bytes / 4, writes);
  // add_reader() keeps two of the lanes that read the same bytes, so that more need no check.
  Mask like_before = 0;
  if (!writes) {
    Mask same = 0;
    for (int lane = 1; lane < kWarpSize; ++lane)
      same |= addresses[lane] == addresses[lane - 1] ? Mask{1} << lane : Mask{0};
    const Mask again = same & lanes & lanes << 1;
    like_before = again & again << 1;
    lanes &= ~like_before;
  }
  if (lanes == 0) return 0;
  LaneAccess by_lane(*this, now, first, addresses, base, bytes, writes);
  const Mask but_four = clear_lowest(clear_lowest(clear_lowest(clear_lowest(lanes))));
  // Most often the cells of all lanes have sets of readers if one has.
  const bool has_sets = but_four != 0 && (by_lane.cells_of(std::countr_zero(lanes))->reader.epoch & kSet) != 0;
  if (but_four != 0 && !has_sets && access_scattered(now, first, addresses, base, lanes, bytes, writes)) return 0;
  Mask others = by_lane.access(lanes);
  for (Mask left = others == 0 ? 0 : like_before; left != 0; left &= left - 1) {
    const Mask lane = left & (~left + 1);
    if ((others & (lane >> 1 | lane >> 2)) != 0) others |= lane;
  }
  return others;
}

SharedMemory::Published* SharedMemory::find_published(std::uint64_t address, bool added) {
  const std::size_t byte = address - kSharedBase;
  if (byte % 4 == 0 && published_at_word_.empty()) {
    if (!added) return nullptr;
    published_at_word_.resize(sectors_.size() * kWordsPerSector);
  }
  if (byte % 4 != 0 && !added && !published_at_.contains(address)) return nullptr;
  std::uint32_t& index = byte % 4 == 0 ? published_at_word_[byte / 4] : published_at_[address];
  if (index == 0) {
    if (!added) return nullptr;
    published_.emplace_back();
    index = static_cast<std::uint32_t>(published_.size());
  }
  return &published_[index - 1];
}

void SharedMemory::clear_published() {
  strong_writes_.clear();
  strong_write_at_word_.clear();
  published_.clear();
  published_at_word_.clear();
  published_at_.clear();
}

void SharedMemory::publish(Published& to, const StrongAccess& strong, const Clocks& clocks) {
  const bool known = !strong.releases && strong.warp != StrongAccess::kNobody && to.publisher == strong.warp &&
                     to.published_version == strong.released->version() && to.reach.scope == strong.reach.scope;
  if (known) return;
  to.publisher = strong.releases ? StrongAccess::kNobody : strong.warp;
  if (!strong.releases) to.published_version = strong.released->version();
  const auto join = [&](Clocks& into, MemoryScope scope) {
    if (strong.releases) return into.join(clocks);
    const Clocks& fenced = strong.released->at(scope);
    if (!strong.of_grid) return into.join(fenced);
    into.ordered.join(fenced.grid);
    into.proxy_fenced.join(fenced.grid_proxy_fenced);
    into.follows_grids |= fenced.follows_grids;
  };
  const MemoryScope scope = strong.reach.scope;
  if (scope == MemoryScope::gpu) join(to.everyone, MemoryScope::gpu);
  if (scope == MemoryScope::gpu && (strong.releases || !strong.released->is_split())) return;
  if (scope >= MemoryScope::cluster) join(to.clusters[strong.reach.cluster], MemoryScope::cluster);
  join(to.ctas[strong.reach.cta], MemoryScope::cta);
}

SharedVerdict SharedMemory::strong_access(Clocks& clocks, const StrongAccess& strong, const Accessor& accessor,
                                          std::uint64_t address, std::uint32_t bytes) {
  // A write that is neither a release nor after a fence publishes nothing, and its scope matters to other CTAs only.
  const bool publishes = strong.releases || !strong.of_one_cta || !strong.released->is_empty();
  Published* const published = find_published(address, strong.writes && publishes);
  SharedVerdict worst = SharedVerdict::ok;
  if (published != nullptr) {
    const Accessor& last = published->writer;
    const bool in_reach = strong.reach.includes(published->reach) && published->reach.includes(strong.reach);
    if (check_races_ && last.clock != 0 && !in_reach && last.clock > clocks.ordered[last.agent]) {
      other_ = last;
      other_reads_ = false;
      worst = SharedVerdict::narrow_scope;
    }
    if (strong.writes) {
      publish(*published, strong, clocks);
      published->reach = strong.reach;
      published->writer = accessor;
      published->writer.clock = clocks.ordered[accessor.agent];
    }
    if (strong.warp == StrongAccess::kNobody || published->joined_by != strong.warp) {
      clocks.join(published->everyone);
      const auto join = [&](const std::map<std::uint32_t, Clocks>& narrow, std::uint32_t of) {
        if (const auto found = narrow.find(of); found != narrow.end()) clocks.join(found->second);
      };
      join(published->clusters, strong.reach.cluster);
      join(published->ctas, strong.reach.cta);
      published->joined_by = strong.warp;
    }
  }
  if (strong.writes) forget_undefined_bits(address, bytes);
  const SharedVerdict verdict = each_cell(address, bytes, false, [&](Cell& cell) {
    if (cell.writer.epoch == kRedZone) return SharedVerdict::out_of_bounds;
    SharedVerdict of_cell = SharedVerdict::ok;
    if (cell.writer.epoch == kWrittenStrongly) {
      // Strong accesses do not race with each other.
    } else if ((cell.writer.epoch & kInFlight) != 0) {
      of_cell = conflict(SharedVerdict::in_flight, cell.writer);
    } else if (cell.writer.epoch != 0 && !ordered(cell.writer.epoch, clocks.ordered)) {
      of_cell = conflict(SharedVerdict::race, cell.writer);
    }
    if (!strong.writes) return of_cell;
    if (of_cell == SharedVerdict::ok && cell.reader.epoch != 0) {
      const Stamp access = stamp(clocks.ordered, accessor);
      each_reader(cell, [&](const Stamp& reader) {
        if (unordered(reader, clocks.ordered, access)) of_cell = conflict(SharedVerdict::mixed_race, reader, true);
      });
    }
    cell.writer = {kWrittenStrongly, accessor.code};
    return of_cell;
  });
  if (strong.writes && check_races_) {
    StrongWrite write{accessor, address, bytes};
    write.accessor.clock = clocks.ordered[accessor.agent];
    note_strong_write(write);
  }
  return std::max(worst, verdict);
}

SharedVerdict SharedMemory::begin_copy(const VectorClock& now, const Accessor& accessor, std::uint64_t address,
                                       std::uint32_t bytes) {
  const Stamp access = stamp(now, accessor);
  forget_undefined_bits(address, bytes);
  return each_cell(address, bytes, true, [&](Cell& cell) {
    const SharedVerdict verdict = write_cell(cell, now, nullptr, access);
    cell.writer.epoch |= kInFlight;
    return verdict;
  });
}

void SharedMemory::complete_copy(const VectorClock& now, const Accessor& accessor, std::uint64_t address,
                                 std::uint32_t bytes) {
  each_cell(address, bytes, false, [&](Cell& cell) {
    cell.writer = stamp(now, accessor);
    return SharedVerdict::ok;
  });
}

bool SharedMemory::is_undefined(std::uint64_t address, std::uint32_t bytes) const {
  if (!check_uninitialised_) return false;
  std::uint32_t written = 0;
  each_written(address, bytes,
               [&](std::uint64_t begin, std::uint64_t end) { written += static_cast<std::uint32_t>(end - begin); });
  return written != bytes || has_undefined_bits(address, bytes);
}

void SharedMemory::mark_undefined(std::uint64_t address, std::uint32_t bytes) {
  if (!check_uninitialised_) return;
  each_cell_or_sector(address, bytes, [](Cell& cell) { cell.writer.epoch = 0; });
  forget_undefined_bits(address, bytes);
}

std::uint32_t SharedMemory::store_of_undefined(std::uint64_t address, std::uint32_t bytes) const {
  for (std::uint64_t at = address; at < address + bytes; ++at) {
    const Stamp writer = cell_at(at).writer;
    const bool is_partly = writer.epoch != 0 && undefined_bits_.contains(at);
    if (writer.epoch == 0 || is_partly) return code_of(writer.code);
  }
  return 0;
}

void SharedMemory::forget_undefined_bits(std::uint64_t address, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes && !undefined_bits_.empty(); ++i) undefined_bits_.erase(address + i);
}

std::uint8_t SharedMemory::undefined_bits(std::uint64_t address) const {
  if (!is_undefined(address, 1)) return 0;
  const auto found = undefined_bits_.find(address);
  return found == undefined_bits_.end() ? std::uint8_t{0xff} : found->second;
}

void SharedMemory::mark_undefined_bits(std::uint64_t address, std::uint8_t bits) {
  if (bits == 0xff) return mark_undefined(address, 1);
  if (check_uninitialised_) undefined_bits_[address] = bits;
}

void SharedMemory::mark_defined(std::uint64_t address, std::uint32_t bytes) {
  each_cell_or_sector(address, bytes, [](Cell& cell) {
    if (cell.writer.epoch == 0) cell.writer = {kWrittenBefore, 0};
  });
}

void SharedMemory::mark_overwritten(std::uint64_t address, std::uint32_t bytes) {
  forget_undefined_bits(address, bytes);
  each_cell_or_sector(address, bytes, [](Cell& cell) { cell.writer = {kWrittenBefore, 0}; });
}

std::optional<Accessor> SharedMemory::find_write_after(const VectorClock& now, std::uint64_t address,
                                                       std::uint32_t bytes) const {
  for (std::uint64_t at = address; at < address + bytes;) {
    const std::size_t byte = at - kSharedBase;
    const auto [cell, length] = span_at(at);
    const Stamp writer = cell->writer;
    if (writer.epoch == kWrittenStrongly) {
      const std::uint32_t index = strong_write_at_word_.empty() ? 0 : strong_write_at_word_[byte / 4];
      if (index != 0 && strong_writes_[index - 1].accessor.clock > now[strong_writes_[index - 1].accessor.agent])
        return strong_writes_[index - 1].accessor;
    } else if (clock_of(writer.epoch) > now[agent_of(writer.epoch)]) {
      const std::uint32_t lanes_before =
          length <= 4 ? 0 : static_cast<std::uint32_t>(byte % kSectorBytes / 4) / words_per_lane(writer.code);
      return Accessor{agent_of(writer.epoch), lane_of(writer.code) + lanes_before, code_of(writer.code),
                      clock_of(writer.epoch)};
    }
    at += length;
  }
  return std::nullopt;
}

void SharedMemory::add_to(Footprint& footprint, std::uint64_t base) const {
  const auto add = [&](const Cell& cell, std::uint64_t begin, std::uint64_t bytes) {
    if (cell.reader.epoch != 0) footprint.reads.add(begin, begin + bytes);
    // A write before the last restart_clocks() may have been a strong one.
    const bool is_restarted = cell.writer.epoch == kWrittenBefore && cell.writer.code != 0;
    if (cell.writer.epoch == kWrittenStrongly || is_restarted) {
      footprint.updates.add(begin, begin + bytes);
    } else if (clock_of(cell.writer.epoch) != 0) {
      footprint.writes.add(begin, begin + bytes);
    }
  };
  for (std::size_t sector = 0; sector < sectors_.size(); ++sector) {
    if (sectors_[sector].writer.epoch != kSplit) {
      add(sectors_[sector], base + sector * kSectorBytes, kSectorBytes);
      continue;
    }
    for (std::size_t word = kWordsPerSector * sector; word < kWordsPerSector * (sector + 1); ++word) {
      if (words_[word].writer.epoch != kSplit) {
        add(words_[word], base + 4 * word, 4);
        continue;
      }
      for (std::size_t byte = 4 * word; byte < 4 * word + 4; ++byte) add(bytes_[byte], base + byte, 1);
    }
  }
}

bool SharedMemory::mark_written(std::uint64_t address, std::uint32_t bytes) {
  const std::size_t begin = address - kSharedBase;
  const std::uint64_t span = ((std::uint64_t{1} << bytes) - 1) << (begin % 64);
  const bool overlaps = (written_now_[begin / 64] & span) != 0;
  written_now_[begin / 64] |= span;
  return overlaps;
}

void SharedMemory::clear_written(std::uint64_t address, std::uint32_t bytes) {
  const std::size_t begin = address - kSharedBase;
  written_now_[begin / 64] &= ~(((std::uint64_t{1} << bytes) - 1) << (begin % 64));
}

}  // namespace tilewright::emulator
