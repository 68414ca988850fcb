// The shared memory of one CTA, with shadow memory that records the last accesses to each byte and orders them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tilewright/emulator/footprint.hpp"
#include "tilewright/emulator/program.hpp"
#include "tilewright/emulator/vector_clock.hpp"

namespace tilewright::emulator {

/// The agent, lane and instruction of an access.
struct Accessor {
  Agent agent = 0;
  std::uint32_t lane = 0;
  std::uint32_t code = 0;   // index in Program::code
  std::uint32_t clock = 0;  // of an asynchronous access: the clock that a wait for it reaches; 0: the agent's own clock
};

/// When an access breaks several rules, the last of them in this order is reported.
enum class SharedVerdict : std::uint8_t {
  ok,
  mixed_race,  // a plain read and a strong write are not ordered: programs do that on purpose, as in "test, then CAS"
  unfenced_reuse,  // the async proxy writes what the generic proxy has accessed, with no proxy fence in between
  uninitialised,
  unfenced,  // the async proxy reads what the generic proxy has written, with no proxy fence in between
  narrow_scope,
  race,
  in_flight,
  out_of_bounds
};

/// The scope of a strong access, and the CTA and the cluster of its thread.
struct Reach {
  MemoryScope scope = MemoryScope::gpu;
  std::uint32_t cta = 0;
  std::uint32_t cluster = 0;

  bool includes(const Reach& other) const {
    return scope == MemoryScope::gpu || cta == other.cta || (scope == MemoryScope::cluster && cluster == other.cluster);
  }
};

struct StrongAccess {
  Reach reach;
  bool writes = false;
  bool releases = false;                     // it publishes all of the warp's clocks, else those of its fences
  const ReleasedClocks* released = nullptr;  // the clocks of the warp's fences
  /// Only the clocks of `released` for global memory are published, as those for shared memory.
  bool of_grid = false;
  std::uint64_t warp = kNobody;  // identifies the warp among all that access the memory, if known
  bool of_one_cta = false;       // only one CTA can access the memory, so that all scopes are wide enough

  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
};

/// The shadow has one cell per sector of 32 bytes. A sector whose words are not accessed by consecutive lanes of one
/// instruction is split into one cell per 4-byte word, until such lanes write all of it, and a word that is accessed by
/// narrower instructions into one cell per byte, until a store writes the whole word. Accesses of one warp are ordered
/// by its instructions.
class SharedMemory {
 public:
  /// `check_warps`: the accesses of different lanes of one warp must be ordered, too, by a growth of its clock.
  SharedMemory(bool check_races, bool check_uninitialised, bool check_warps = false);
  SharedMemory() : SharedMemory(false, false) {}
  /// Before a reset.
  void set_checks(bool check_races, bool check_uninitialised, bool check_warps);

  /// For the start of a CTA: fills the contents with ones and clears the shadow.
  void reset(std::uint32_t bytes);
  /// The same for a shadow of other memory, all of whose bytes count as written before every access: this object has no
  /// contents.
  void reset_shadow(std::uint32_t bytes);

  /// Marks bytes that belong to no variable: accesses to them are out_of_bounds. Has an effect only if shadowed().
  void mark_red_zone(std::uint64_t address, std::uint32_t bytes);

  std::uint32_t end() const { return kSharedBase + size_; }
  bool contains(std::uint64_t address, std::uint64_t bytes) const {
    return address >= kSharedBase && address <= end() && bytes <= end() - address;
  }
  /// @pre contains(address, 1)
  std::byte* at(std::uint64_t address) { return data_.data() + (address - kSharedBase); }

  bool shadowed() const { return check_races_ || check_uninitialised_; }
  /// The memory that the shadow uses.
  std::size_t shadow_bytes() const {
    return (sectors_.capacity() + words_.capacity() + bytes_.capacity()) * sizeof(Cell);
  }

  // Each checks an access against the accesses before it and records it. `now` has the accesses that happen before it.
  // @pre shadowed() and contains(address, bytes)
  SharedVerdict read(const VectorClock& now, const Accessor& accessor, std::uint64_t address, std::uint32_t bytes);
  SharedVerdict write(const VectorClock& now, const Accessor& accessor, std::uint64_t address, std::uint32_t bytes);
  /// Reads of 16 aligned bytes each as by async_read(), by one accessor at one time.
  class ChunkReads;
  /// A write through the async proxy: accesses of the generic proxy before it must be proxy-fenced. `clocks` are those
  /// of the warp that issues the write.
  SharedVerdict async_write(const Clocks& clocks, const Accessor& accessor, std::uint64_t address, std::uint32_t bytes);
  /// Does read() or write() for all lanes, of which lane l accesses the `bytes` bytes at address + l * bytes, and
  /// returns true, if that finds nothing and if the lanes accessed the bytes in the same way before. Else it records
  /// nothing. `accessor` is that of lane 0. @pre shadowed(); `bytes` is 1, 2, 4, 8 or 16
  bool access_consecutive(const VectorClock& now, const Accessor& accessor, std::uint64_t address, std::uint32_t bytes,
                          bool writes);
  /// Does read() or write() for the lanes of an instruction for which that finds nothing and merges no split word.
  /// Returns the others. `accessor` is that of lane 0; lane l accesses addresses[l] - base, which this memory contains.
  Mask access_lanes(const VectorClock& now, const Accessor& accessor, const std::uint64_t* addresses,
                    std::uint64_t base, Mask lanes, std::uint32_t bytes, bool writes);
  /// A read through the async proxy. Writes of the generic proxy must happen before it and be proxy-fenced; `clocks`
  /// are those of the warp that issues the read.
  SharedVerdict async_read(const Clocks& clocks, const Accessor& accessor, std::uint64_t address, std::uint32_t bytes);
  /// Atomic, volatile, relaxed, acquire and release accesses synchronise through the address: what a strong write
  /// publishes happens before the strong accesses that follow it, as far as scopes include the two threads.
  /// narrow_scope: the access and the last strong write are unordered, and a scope does not include the other thread.
  /// Plain writes that are not ordered with a strong write are races, and plain reads mixed_races.
  SharedVerdict strong_access(Clocks& clocks, const StrongAccess& strong, const Accessor& accessor,
                              std::uint64_t address, std::uint32_t bytes);
  /// A cp.async: nobody may access the bytes between begin_copy() and complete_copy().
  SharedVerdict begin_copy(const VectorClock& now, const Accessor& accessor, std::uint64_t address,
                           std::uint32_t bytes);
  void complete_copy(const VectorClock& now, const Accessor& accessor, std::uint64_t address, std::uint32_t bytes);
  /// Whether no one has written some of the bytes. False when that is not checked.
  bool is_undefined(std::uint64_t address, std::uint32_t bytes) const;
  /// The bits of the byte that no one has written.
  std::uint8_t undefined_bits(std::uint64_t address) const;
  /// The instruction that stored an undefined value to the first byte of these that is undefined; 0 if no one has
  /// written it. @pre is_undefined(address, bytes)
  std::uint32_t store_of_undefined(std::uint64_t address, std::uint32_t bytes) const;
  /// Calls visit(begin, end) for the parts of [address, address + bytes) that someone has written.
  template <class Visit>
  void each_written(std::uint64_t address, std::uint32_t bytes, Visit&& visit) const;
  /// Marks bytes as written by no one. The instruction of their last write stays known, see store_of_undefined().
  void mark_undefined(std::uint64_t address, std::uint32_t bytes);
  /// Marks these bits of a byte, which was written, as written by no one.
  void mark_undefined_bits(std::uint64_t address, std::uint8_t bits);
  /// Marks those bytes that no one has written as written before all accesses.
  void mark_defined(std::uint64_t address, std::uint32_t bytes);
  /// Marks bytes as written before all accesses.
  void mark_overwritten(std::uint64_t address, std::uint32_t bytes);
  /// The first write of the bytes by an instruction, since reset(), that does not happen before `now`; null if there is
  /// none. @pre no access through the async proxy and no cp.async has written the bytes
  std::optional<Accessor> find_write_after(const VectorClock& now, std::uint64_t address, std::uint32_t bytes) const;
  /// Adds the accesses since reset(), as those of global memory that begins at `base`. Strong reads are left out.
  void add_to(Footprint& footprint, std::uint64_t base) const;
  /// The earlier access that conflicts with the last access whose verdict was not ok.
  const Accessor& other() const { return other_; }
  /// Whether other() was a read.
  bool other_reads() const { return other_reads_; }

  /// Marks bytes as written by the current instruction. True when another lane of it has already written some of them.
  bool mark_written(std::uint64_t address, std::uint32_t bytes);
  void clear_written(std::uint64_t address, std::uint32_t bytes);

  /// A warp's clock grows by one at each release. When one reaches this limit all clocks restart: accesses before the
  /// restart count as ordered before all later ones, so that races across it are missed.
  static constexpr std::uint32_t kClockLimit = (1U << 20) - 1;
  static constexpr Agent kMaxAgents = 1U << 11;
  void restart_clocks();

 private:
  // 0: no access. Else bits 0..10: agent, 11..30: clock, bit 31: the write is in flight, or the reader is a set.
  using PackedEpoch = std::uint32_t;
  /// A value of Cell::writer.epoch: the words of the sector, or the bytes of the word, have their own cells.
  static constexpr PackedEpoch kSplit = ~std::uint32_t{0};
  static constexpr PackedEpoch kSet = 1U << 31;  // a bit of Cell::reader.epoch
  static constexpr int kCodeBits = 27;
  static constexpr int kWidthShift = 25;
  static constexpr std::uint32_t kWordsPerSector = 8;
  static constexpr std::uint32_t kSectorBytes = 4 * kWordsPerSector;

  struct Stamp {
    PackedEpoch epoch = 0;
    /// Bits 0..24: the instruction; 25..26, of a sector: how many words each lane accessed, 1: one, 2: two, 3: four, 0:
    /// all of them; 27..31: the lane, of a sector that of its first word. Of a set of readers: see Cell.
    std::uint32_t code = 0;
  };

  struct Cell {
    Stamp writer;
    /// The only reader since the last write, or a set of readers: then bits 0..24 of the code are its index in
    /// read_sets_, and bits 27..31 the position of the cell among those that share the set.
    Stamp reader;
  };

  /// The last read of each agent, by agent. Cells that the lanes of warps have read alike share one set, so that one
  /// update is enough for all of them: a reader's lane is that in the set plus the position of the cell, modulo 32.
  struct ReadSet {
    std::vector<Stamp> readers;
    std::uint32_t cells = 0;  // that refer to the set; a sector counts as its words
  };

  static Stamp stamp(const VectorClock& now, const Accessor& accessor);
  /// Whether the access of this epoch happens before an access with the clocks `now`.
  static bool ordered(PackedEpoch epoch, const VectorClock& now);

  /// Calls visit(cell) for each cell of a word or byte, and returns the greatest of its verdicts.
  /// With `whole_write`, a split word of which all bytes are visited becomes one cell again.
  template <class Visit>
  SharedVerdict each_cell(std::uint64_t address, std::uint32_t bytes, bool whole_write, Visit&& visit);
  /// Calls visit(cell) for each cell of the bytes. Sectors that lie within the bytes are not split.
  template <class Visit>
  void each_cell_or_sector(std::uint64_t address, std::uint32_t bytes, Visit&& visit);
  void split_word(std::size_t word);
  void split_sector(std::size_t sector);
  /// The cell of a word, whose sector is split if it is not. Those of the rest of the sector follow.
  Cell* word_cell(std::size_t word) {
    if (sectors_[word / kWordsPerSector].writer.epoch != kSplit) split_sector(word / kWordsPerSector);
    return &words_[word];
  }
  /// The cells of words, whose sectors are split if they are not.
  Cell* word_cells(std::size_t first, std::size_t count) {
    for (std::size_t word = first; word < first + count; word = (word / kWordsPerSector + 1) * kWordsPerSector)
      word_cell(word);
    return &words_[first];
  }
  void clear_shadow(std::uint32_t bytes, const Cell& cell);

  /// `through_async` has the clocks of an access through the async proxy; null for the generic proxy.
  SharedVerdict read_cell(Cell& cell, const VectorClock& now, const Clocks* through_async, Stamp access);
  SharedVerdict write_cell(Cell& cell, const VectorClock& now, const Clocks* through_async, Stamp access);
  /// Whether the access went through the generic proxy and no proxy fence has followed it.
  static bool unfenced(PackedEpoch epoch, const VectorClock& proxy_fenced);
  /// access_consecutive() of `kWords` cells for each lane. `first` is the stamp of lane 0.
  template <std::uint32_t kWords>
  bool access_words(const VectorClock& now, Stamp first, Cell* cells, bool writes);
  /// The same for the sectors that lanes access whole, none of which is split. `first` is the stamp of the first lane,
  /// with its number of words; `lanes` is how many access a sector.
  bool access_sectors(const VectorClock& now, Stamp first, Cell* sectors, std::uint32_t count, std::uint32_t lanes,
                      bool writes);
  /// The same for one sector, which may be split.
  bool access_sector(const VectorClock& now, Stamp first, std::size_t sector, std::uint32_t lanes, bool writes);
  /// access_lanes() for the lanes that together access a whole sector, one after the other. Returns the others.
  Mask access_whole_sectors(const VectorClock& now, Stamp first, const std::uint64_t* addresses, std::uint64_t base,
                            Mask lanes, std::size_t words, bool writes);
  /// access_consecutive() of bytes from `begin` on that are not all in sectors which are accessed whole and not split.
  bool access_consecutive_cells(const VectorClock& now, Stamp first, std::size_t begin, std::uint32_t bytes,
                                bool writes);
  /// Whether check_warps forbids the access as the sector's `earlier` one was by the same warp at the same time, but by
  /// other lanes.
  bool is_of_other_lanes(Stamp earlier, Stamp access) const {
    return check_warps_ && earlier.epoch == access.epoch && (earlier.code ^ access.code) >> kWidthShift != 0;
  }
  /// Whether there is nothing to report of a write to a sector whose readers are a set because of these.
  bool has_plain_readers(const Cell& sector, const VectorClock& now, Stamp access) const;
  /// Whether there is nothing to report of an access to a sector.
  bool is_plain_sector(const Cell& sector, const VectorClock& now, Stamp access, bool writes) const;
  /// How many lanes access a sector of which each accesses 4, 8 or 16 bytes.
  static std::uint32_t lanes_per_sector(std::uint32_t bytes) { return kSectorBytes >> std::countr_zero(bytes); }
  /// The stamp of a sector of which each lane accesses 1, 2 or 4 words.
  static Stamp with_width(Stamp stamp, std::uint32_t words) {
    const std::uint32_t width = words == 4 ? 3 : words;
    return {stamp.epoch, stamp.code | width << kWidthShift};
  }
  /// How many words of a sector a lane has accessed.
  static std::uint32_t words_per_lane(std::uint32_t code) {
    const std::uint32_t width = code >> kWidthShift & 3;
    return width == 0 ? kWordsPerSector : 1U << (width - 1);
  }
  /// Does access_lanes() and returns true if all cells of the lanes have been read by one warp each, or by none, and
  /// there is nothing to report. Else it does nothing. The cells of a lane are those of its words or bytes.
  bool access_scattered(const VectorClock& now, Stamp first, const std::uint64_t* addresses, std::uint64_t base,
                        Mask lanes, std::uint32_t bytes, bool writes);
  class LaneAccess;
  /// Whether there is nothing to report of an access.
  bool is_plain(const Cell& cell, const VectorClock& now, Stamp access, bool writes) const;
  /// Records the conflicting access for other(); returns ok instead of the verdict when its check is switched off.
  SharedVerdict conflict(SharedVerdict verdict, Stamp other, bool reads = false);
  /// Whether the agent has read the cell at this clock since the last write.
  bool has_read(const Cell& cell, Stamp access) const;
  bool has_read(const ReadSet& set, Stamp access) const;
  /// Whether an access conflicts with an earlier one, if one of them writes.
  bool unordered(Stamp earlier, const VectorClock& now, Stamp access) const;
  /// Calls visit(stamp) for each reader of the cell.
  template <class Visit>
  void each_reader(const Cell& cell, Visit&& visit) const;
  void add_reader(Cell& cell, const VectorClock& now, Stamp access);
  /// Whether the cell's only reader need not be known any longer once this access has read the cell, or it has none.
  bool replaces_reader(const Cell& cell, const VectorClock& now, Stamp access) const;
  /// The same for a set. The lanes of its readers and that of the access are relative.
  void add_reader(ReadSet& set, Stamp access);
  /// The same for `count` cells whose words the lanes from that of `access` on read, `words` each. The cells are all
  /// of one set, at positions that follow the lanes; or have one reader each whose lanes follow, which is kept. With
  /// `lanes`, the cells are sectors, which that many lanes each have read.
  void add_reader(Cell* cells, std::size_t count, std::size_t words, Stamp access, std::uint32_t lanes = 0);
  /// Whether add_reader() can take the cell `i` together with the first one.
  static bool follows(const Cell& first, const Cell& cell, std::size_t i, std::size_t words);
  void drop_readers(Cell& cell) {
    if ((cell.reader.epoch & kSet) != 0) drop_set(cell, 1);
    cell.reader = {};
  }
  /// Some cells of a set do not refer to it any longer.
  void drop_set(const Cell& cell, std::uint32_t cells);
  ReadSet& set_of(const Cell& cell) { return read_sets_[set_index(cell)]; }
  const ReadSet& set_of(const Cell& cell) const { return read_sets_[set_index(cell)]; }
  static std::size_t set_index(const Cell& cell) { return cell.reader.code & ((1U << kWidthShift) - 1); }
  std::uint32_t new_read_set(std::uint32_t cells);
  /// Keeps the memory of the sets.
  void free_all_sets();

  friend class ChunkReads;

  std::vector<std::byte> data_;
  std::vector<Cell> sectors_;
  std::vector<Cell> words_;  // of split sectors, 8 per sector; empty before the first split
  std::vector<Cell> bytes_;  // of split words, 4 per word; empty before the first split
  std::vector<ReadSet> read_sets_;
  std::vector<std::uint32_t> free_sets_;
  std::vector<std::uint64_t> written_now_;  // one bit per byte, see mark_written()
  /// The clocks that strong writes to an address have published, and the last of these writes.
  struct Published {
    Clocks everyone;
    std::map<std::uint32_t, Clocks> clusters, ctas;  // more than `everyone`, for the threads of one cluster or CTA
    Reach reach;
    Accessor writer;  // clock 0: none
    std::uint64_t joined_by =
        StrongAccess::kNobody;  // the warp of the last access: it knows all clocks that it may know
    std::uint64_t publisher = StrongAccess::kNobody;  // the warp of the last write, which was not a release,
    std::uint32_t published_version = 0;              // and the version of its fences' clocks
  };
  static void publish(Published& to, const StrongAccess& strong, const Clocks& clocks);
  /// What is published at an address; null if there is nothing and it is not `added`.
  Published* find_published(std::uint64_t address, bool added);
  void clear_published();

  /// The last strong write of a word, if Cell::writer says that there is one: it covers `bytes` from `begin` on.
  struct StrongWrite {
    Accessor accessor;
    std::uint64_t begin = 0;
    std::uint32_t bytes = 0;
  };
  std::vector<StrongWrite> strong_writes_;
  std::vector<std::uint32_t> strong_write_at_word_;  // index in strong_writes_ plus 1, or 0; empty before the first
  const Cell& cell_at(std::uint64_t address) const { return *span_at(address).cell; }
  /// The cell of the byte, and the number of bytes from it to the end of those that the cell stands for.
  struct CellSpan {
    const Cell* cell;
    std::uint64_t bytes;
  };
  CellSpan span_at(std::uint64_t address) const {
    const std::size_t byte = address - kSharedBase;
    const Cell& sector = sectors_[byte / kSectorBytes];
    if (sector.writer.epoch != kSplit) return {&sector, kSectorBytes - byte % kSectorBytes};
    const Cell& word = words_[byte / 4];
    if (word.writer.epoch != kSplit) return {&word, 4 - byte % 4};
    return {&bytes_[byte], 1};
  }
  void note_strong_write(const StrongWrite& write);
  /// `verdict`, or `unordered` if that is worse and the bytes have a strong write that does not happen before `now`.
  SharedVerdict follow_strong_writes(const VectorClock& now, std::uint64_t address, std::uint32_t bytes,
                                     SharedVerdict unordered, SharedVerdict verdict);

  std::vector<Published> published_;
  std::vector<std::uint32_t> published_at_word_;  // by word: index in published_ plus 1, or 0; empty before the first
  std::unordered_map<std::uint64_t, std::uint32_t> published_at_;  // the same for addresses inside of words
  bool has_undefined_bits(std::uint64_t address, std::uint32_t bytes) const;
  /// `verdict`, or uninitialised if that is worse and some bits are undefined.
  SharedVerdict with_undefined_bits(std::uint64_t address, std::uint32_t bytes, SharedVerdict verdict) const;
  /// The bytes are written.
  void forget_undefined_bits(std::uint64_t address, std::uint32_t bytes);

  /// By address: the undefined bits of bytes that are defined in part. Their cells have the write of the defined bits.
  std::unordered_map<std::uint64_t, std::uint8_t> undefined_bits_;
  Accessor other_;
  bool other_reads_ = false;
  std::uint32_t size_ = 0;
  bool check_races_ = true;
  bool check_uninitialised_ = true;
  bool check_warps_ = false;
};

template <class Visit>
void SharedMemory::each_written(std::uint64_t address, std::uint32_t bytes, Visit&& visit) const {
  const std::uint64_t end = address + bytes;
  std::uint64_t begin = address;  // of the run of written bytes that ends at `at`
  for (std::uint64_t at = address; at < end;) {
    const auto [cell, length] = span_at(at);
    const std::uint64_t next = std::min(end, at + length);
    if (cell->writer.epoch == 0) {
      if (begin < at) visit(begin, at);
      begin = next;
    }
    at = next;
  }
  if (begin < end) visit(begin, end);
}

class SharedMemory::ChunkReads {
 public:
  static constexpr std::uint32_t kBytes = 16;

  /// @pre memory.shadowed(); the clocks do not change while the object is in use
  ChunkReads(SharedMemory& memory, const Clocks& clocks, const Accessor& accessor)
      : memory_(memory), clocks_(clocks), accessor_(accessor), stamp_(stamp(clocks.ordered, accessor)) {}

  /// @pre the memory contains the bytes
  SharedVerdict read(std::uint64_t address) {
    Cell* const cells = memory_.word_cell((address - kSharedBase) / 4);
    const PackedEpoch reader = cells[0].reader.epoch;
    PackedEpoch difference = 0;
    for (std::size_t i = 0; i < kCells; ++i)
      difference |= (cells[i].writer.epoch ^ writer_) | (cells[i].reader.epoch ^ reader);
    const bool same = has_last_ && difference == 0 && (reader == reader_ || reader == stamp_.epoch) &&
                      memory_.undefined_bits_.empty();
    if (!same) return read_other(address, cells);
    for (std::size_t i = 0; i < kCells; ++i) cells[i].reader = stamp_;
    return SharedVerdict::ok;
  }

  static constexpr int kAlike = 8;
  /// Does read() for several chunks and returns true if all of them were accessed alike and there is nothing to find.
  /// Else it does nothing.
  bool read_alike(const std::uint32_t (&addresses)[kAlike]);

 private:
  static constexpr std::size_t kCells = kBytes / 4;

  SharedVerdict read_other(std::uint64_t address, const Cell* cells);
  /// Whether the cell was accessed as the last one about which nothing was found.
  bool is_like_last(const Cell& cell) const {
    return has_last_ && cell.writer.epoch == writer_ &&
           (cell.reader.epoch == reader_ || cell.reader.epoch == stamp_.epoch);
  }
  /// Whether there is nothing to find in a read of the cell, and stamp_ becomes its only reader.
  bool is_plain(const Cell& cell) const;

  SharedMemory& memory_;
  const Clocks& clocks_;
  const Accessor accessor_;
  const Stamp stamp_;
  // The writer and the reader of the last cell about which nothing was found: there is nothing to find where they are
  // the same.
  bool has_last_ = false;
  PackedEpoch writer_ = 0;
  PackedEpoch reader_ = 0;
};

}  // namespace tilewright::emulator
