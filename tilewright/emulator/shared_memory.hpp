// The shared memory of one CTA, with a shadow that knows who wrote and read each byte and what ordered them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tilewright/emulator/order.hpp"
#include "tilewright/emulator/program.hpp"

namespace tilewright::emulator {

/// Who accesses shared memory, and with which instruction.
struct Accessor {
  Agent agent = 0;
  std::uint32_t lane = 0;
  std::uint32_t code = 0;   // index in Program::code
  std::uint32_t clock = 0;  // of an asynchronous access: what must be waited for; 0: the agent's present
};

/// In the order of what is reported when an access breaks several rules.
enum class SharedVerdict : std::uint8_t { ok, uninitialised, unfenced, race, in_flight, outside };

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
  /// A read through the asynchronous proxy by who.agent, issued by who knows `past`: what the generic proxy wrote must
  /// be fenced too.
  SharedVerdict async_read(const Past& past, const Accessor& who, std::uint64_t address, std::uint32_t bytes);
  /// Atomic and volatile accesses synchronise through the address: what the writer did before is ordered for the
  /// reader.
  SharedVerdict synchronising_access(Past& past, const Accessor& who, std::uint64_t address, std::uint32_t bytes,
                                     bool writes);
  /// An asynchronous write by the thread begins; until it is completed nobody may touch the bytes.
  SharedVerdict begin_copy(const VectorClock& now, const Accessor& who, std::uint64_t address, std::uint32_t bytes);
  void complete_copy(const VectorClock& now, const Accessor& who, std::uint64_t address, std::uint32_t bytes);
  /// The earlier access that the last verdict but ok is about.
  const Accessor& other() const { return other_; }
  /// That access was a read.
  bool other_reads() const { return other_reads_; }

  /// Marks bytes written by the present instruction. Returns true when another lane of it wrote some of them already.
  bool touch(std::uint64_t address, std::uint32_t bytes);
  void untouch(std::uint64_t address, std::uint32_t bytes);

  /// Clocks of warps grow by one a release; when one reaches this they all restart, and races across that point are
  /// not seen.
  static constexpr std::uint32_t kClockLimit = (1U << 20) - 1;
  static constexpr Agent kMaxAgents = 1U << 11;
  void forget_order();

 private:
  // 0: never. Else bit 31: in flight, or, of readers, a set; bits 11..30: clock, 0..10: agent.
  using PackedEpoch = std::uint32_t;

  struct Stamp {
    PackedEpoch epoch = 0;
    std::uint32_t code = 0;  // bits 0..26: instruction, 27..31: lane; of readers that are a set: its index
  };
  using ReadSet = std::vector<Stamp>;  // one an agent

  struct Cell {
    Stamp writer;
    Stamp reader;  // the only one since the last write, or the set of them
  };

  static Stamp stamp(const VectorClock& now, const Accessor& who);
  static bool ordered(PackedEpoch epoch, const VectorClock& now);

  template <class Visit>
  SharedVerdict each_cell(std::uint64_t address, std::uint32_t bytes, bool whole_write, Visit&& visit);
  void split(std::size_t word);

  SharedVerdict read_cell(Cell& cell, const VectorClock& now, const VectorClock* fenced, Stamp me);
  SharedVerdict write_cell(Cell& cell, const VectorClock& now, Stamp me);
  SharedVerdict conflict(SharedVerdict verdict, Stamp other, bool reads = false);
  /// This agent at this clock, since the last write.
  bool has_read(const Cell& cell, Stamp me) const;
  void add_reader(Cell& cell, const VectorClock& now, Stamp me);
  void drop_readers(Cell& cell);
  std::uint32_t new_read_set();

  std::vector<std::byte> data_;
  std::vector<Cell> words_;
  std::vector<Cell> bytes_;  // of split words, 4 a word
  std::vector<ReadSet> read_sets_;
  std::vector<std::uint32_t> free_sets_;
  std::vector<std::uint64_t> touched_;  // a bit a byte
  std::unordered_map<std::uint64_t, Past> synchronisers_;
  Accessor other_;
  bool other_reads_ = false;
  std::uint32_t size_ = 0;
  bool check_races_ = true;
  bool check_uninitialised_ = true;
};

}  // namespace tilewright::emulator
