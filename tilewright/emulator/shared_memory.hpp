// The shared memory of one CTA, with a shadow that knows who wrote and read each byte and what ordered them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

inline constexpr int kMaxWarps = 32;  // of a CTA: 1024 threads

/// For each warp of the CTA, how far its past is known to have happened. A warp's own entry is its present; it grows by
/// one at each release (arrival at a barrier).
using VectorClock = std::array<std::uint32_t, kMaxWarps>;

void join(VectorClock& into, const VectorClock& from);

/// Who accesses shared memory, and with which instruction.
struct Accessor {
  std::uint32_t warp = 0;
  std::uint32_t lane = 0;
  std::uint32_t code = 0;  // index in Program::code
};

/// In the order of what is reported when an access breaks several rules.
enum class SharedVerdict : std::uint8_t { ok, uninitialised, race, in_flight, outside };

/// A word of shadow covers 4 bytes; a word touched by narrower accesses splits into a cell for each byte, until it is
/// written whole again. Accesses of one warp are ordered by its instructions.
class SharedMemory {
 public:
  SharedMemory(bool check_races, bool check_uninitialised);

  /// Starts a CTA: poisons the contents (all ones) and forgets every access.
  void reset(std::uint32_t bytes);

  /// Bytes that belong to no variable: accesses are `outside`. Seen only while shadowed().
  void forbid(std::uint64_t address, std::uint32_t bytes);

  std::uint32_t end() const { return kSharedBase + size_; }
  bool contains(std::uint64_t address, std::uint64_t bytes) const {
    return address >= kSharedBase && address <= end() && bytes <= end() - address;
  }
  /// @pre contains(address, 1)
  std::byte* at(std::uint64_t address) { return data_.data() + (address - kSharedBase); }

  bool shadowed() const { return check_races_ || check_uninitialised_; }

  // Each tells whether the access is in order, and records it. @pre shadowed() and contains(address, bytes)
  SharedVerdict read(const VectorClock& now, const Accessor& who, std::uint64_t address, std::uint32_t bytes);
  SharedVerdict write(const VectorClock& now, const Accessor& who, std::uint64_t address, std::uint32_t bytes);
  /// Atomic and volatile accesses synchronise through the address: what the writer did before is ordered for the
  /// reader.
  SharedVerdict synchronising_access(VectorClock& now, const Accessor& who, std::uint64_t address, std::uint32_t bytes,
                                     bool writes);
  /// An asynchronous write by the thread begins; until it is completed nobody may touch the bytes.
  SharedVerdict begin_copy(const VectorClock& now, const Accessor& who, std::uint64_t address, std::uint32_t bytes);
  void complete_copy(const VectorClock& now, const Accessor& who, std::uint64_t address, std::uint32_t bytes);
  /// The earlier access that the last verdict but ok is about.
  const Accessor& other() const { return other_; }

  /// Marks bytes written by the present instruction. Returns true when another lane of it wrote some of them already.
  bool touch(std::uint64_t address, std::uint32_t bytes);
  void untouch(std::uint64_t address, std::uint32_t bytes);

  /// Clocks grow by one a barrier; when one reaches this they all restart, and races across that point are not seen.
  static constexpr std::uint32_t kClockLimit = (1U << 20) - 1;
  void forget_order();

 private:
  // 0: never. Else bit 31: in flight, or, of readers, a set; bits 10..30: clock, 5..9: warp, 0..4: lane.
  using PackedEpoch = std::uint32_t;

  struct Stamp {
    PackedEpoch epoch = 0;
    std::uint32_t code = 0;  // of readers that are a set: its index
  };
  using ReadSet = std::array<Stamp, kMaxWarps>;

  struct Cell {
    Stamp writer;
    Stamp reader;  // the only one since the last write, or the set of them
  };

  static Stamp stamp(const VectorClock& now, const Accessor& who);
  static bool ordered(PackedEpoch epoch, const VectorClock& now, std::uint32_t warp);

  template <class Visit>
  SharedVerdict each_cell(std::uint64_t address, std::uint32_t bytes, bool whole_write, Visit&& visit);
  void split(std::size_t word);

  SharedVerdict read_cell(Cell& cell, const VectorClock& now, Stamp me);
  SharedVerdict write_cell(Cell& cell, const VectorClock& now, Stamp me);
  SharedVerdict conflict(SharedVerdict verdict, Stamp other);
  /// This warp at this clock, since the last write.
  bool has_read(const Cell& cell, Stamp me) const;
  void add_reader(Cell& cell, const VectorClock& now, Stamp me);
  void drop_readers(Cell& cell);
  Stamp new_read_set();

  std::vector<std::byte> data_;
  std::vector<Cell> words_;
  std::vector<Cell> bytes_;  // of split words, 4 a word
  std::vector<ReadSet> read_sets_;
  std::vector<std::uint32_t> free_sets_;
  std::vector<std::uint64_t> touched_;  // a bit a byte
  std::unordered_map<std::uint64_t, VectorClock> synchronisers_;
  Accessor other_;
  std::uint32_t size_ = 0;
  bool check_races_ = true;
  bool check_uninitialised_ = true;
};

}  // namespace tilewright::emulator
