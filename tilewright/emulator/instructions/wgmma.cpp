// wgmma: fence, mma_async, commit_group, wait_group.
// Each warp computes its 16 rows of D when it executes wgmma.mma_async. wait_group returns once all four warps of the
// warpgroup have committed the group, and covers the reads of all four. Until then D, the registers of A and the
// operands in shared memory are in flight: it is a finding to access the registers or to overwrite the operands.
// Numerics are those of tensor_core_sum.hpp; integers are exact.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/block_transpose.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/matrix_element.hpp"
#include "tilewright/emulator/instructions/shared_matrix.hpp"
#include "tilewright/emulator/instructions/sparse_metadata.hpp"
#include "tilewright/emulator/instructions/tensor_core_sum.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kMaxN = 256;
constexpr int kMaxK = 64;      // of B
constexpr int kRowBytes = 32;  // extent of K in bytes of A, for all types; B of sparse products has twice as many
constexpr int kChunkBytes = 16;

/// Converts the elements of `count` chunks of 16 bytes to f32. Those of chunk i go to `to` + i * step.
using ReadElements = void (*)(const std::byte* const* chunks, int count, float* to, int step);

template <class Element>
TILEWRIGHT_TARGET_FMA void read_chunks_with_hardware(const std::byte* const* chunks, int count, float* to, int step) {
  using Stored = typename Element::Stored;
  constexpr int kElements = kChunkBytes / sizeof(Stored);
  for (int i = 0; i < count; ++i) {
    Stored stored[kElements];
    std::memcpy(stored, chunks[i], kChunkBytes);
    read_numbers_with_hardware<Element, kElements>(stored, to + i * step);
  }
}

template <class Element>
void read_chunks(const std::byte* const* chunks, int count, float* to, int step) {
  if (has_hardware_fma()) return read_chunks_with_hardware<Element>(chunks, count, to, step);
  using Stored = typename Element::Stored;
  constexpr int kElements = kChunkBytes / sizeof(Stored);
  for (int i = 0; i < count; ++i) {
    Stored stored[kElements];
    std::memcpy(stored, chunks[i], kChunkBytes);
    read_numbers_inline<Element, kElements>(stored, to + i * step);
  }
}

template <Shuffles kShuffles>
[[gnu::always_inline]] inline void store_chunk_columns_inline(const float* rows, int width, float* to) {
  if (width == 4) return store_columns<kShuffles, 4>(rows, to, kTileRows);
  if (width == 8) return store_columns<kShuffles, 8>(rows, to, kTileRows);
  store_columns<kShuffles, 16>(rows, to, kTileRows);
}

TILEWRIGHT_TARGET_AVX512 void store_chunk_columns_with_avx512(const float* rows, int width, float* to) {
  store_chunk_columns_inline<Shuffles::avx512>(rows, width, to);
}
TILEWRIGHT_TARGET_AVX512 void transpose_rows_with_avx512(const float* rows, float* to, int stride) {
  transpose_eight<Shuffles::avx512>(rows, 8, to, stride);
}

/// Stores eight rows of 4, 8 or 16 numbers as columns of a tile.
void store_chunk_columns(const float* rows, int width, float* to) {
  if (has_avx512()) return store_chunk_columns_with_avx512(rows, width, to);
  store_chunk_columns_inline<Shuffles::none>(rows, width, to);
}

/// Stores eight rows of eight numbers as columns with a stride.
void transpose_rows(const float* rows, float* to, int stride) {
  if (has_avx512()) return transpose_rows_with_avx512(rows, to, stride);
  transpose_eight<Shuffles::none>(rows, 8, to, stride);
}

struct ElementRow {
  std::string_view name;
  int bytes;
  ReadElements read;
  int least_exponent = 0;  // of a normal number; unused for integers
};

constexpr std::array kElements = {
    ElementRow{"f16", 2, read_chunks<F16Element>, F16Element::kLeastExponent},
    ElementRow{"bf16", 2, read_chunks<Bf16Element>, Bf16Element::kLeastExponent},
    ElementRow{"tf32", 4, read_chunks<Tf32Element>, Tf32Element::kLeastExponent},
    ElementRow{"e4m3", 1, read_chunks<E4m3Element>, E4m3Element::kLeastExponent},
    ElementRow{"e5m2", 1, read_chunks<E5m2Element>, E5m2Element::kLeastExponent},
    ElementRow{"s8", 1, read_chunks<S8Element>},
    ElementRow{"u8", 1, read_chunks<U8Element>},
    ElementRow{"b1", 1, nullptr},  // a byte has eight of them
};

bool is_integer(const ElementRow& element) { return element.name == "s8" || element.name == "u8"; }
bool is_bits(const ElementRow& element) { return element.name == "b1"; }

enum class Accumulator : std::uint8_t { f16, f32, s32 };

/// The modifiers of wgmma.mma_async, packed into Instruction::immediate.
struct WgmmaMode {
  std::uint8_t a = 0, b = 0;  // indices into kElements
  Accumulator accumulator = Accumulator::f32;
  bool a_in_registers = false;
  bool a_mn_major = false, b_mn_major = false;
  bool negates = false;  // imm-scale-a * imm-scale-b is -1
  bool saturates = false;
  std::uint8_t n8 = 1;  // N / 8
  bool sparse = false;
  std::uint8_t selector = 0;  // of the metadata
};

WgmmaMode unpack(std::int64_t bits) {
  const auto u = static_cast<std::uint64_t>(bits);
  const auto at = [&](int shift, std::uint64_t mask) { return static_cast<std::uint8_t>((u >> shift) & mask); };
  return {at(0, 7),       at(3, 7),       static_cast<Accumulator>(at(6, 3)),
          at(8, 1) != 0,  at(9, 1) != 0,  at(10, 1) != 0,
          at(11, 1) != 0, at(12, 1) != 0, at(13, 63),
          at(19, 1) != 0, at(20, 3)};
}

std::int64_t pack(const WgmmaMode& mode) {
  return mode.a | mode.b << 3 | static_cast<int>(mode.accumulator) << 6 | (mode.a_in_registers ? 1 << 8 : 0) |
         (mode.a_mn_major ? 1 << 9 : 0) | (mode.b_mn_major ? 1 << 10 : 0) | (mode.negates ? 1 << 11 : 0) |
         (mode.saturates ? 1 << 12 : 0) | mode.n8 << 13 | (mode.sparse ? 1 << 19 : 0) | mode.selector << 20;
}

/// Reads an operand in shared memory, for one warp, through the async proxy.
class TileReader {
 public:
  TileReader(Warp& warp, const Instruction& in, std::uint64_t descriptor)
      : warp_(warp),
        in_(in),
        matrix_(decode_descriptor(descriptor)),
        shared_(warp.cta().shared()),
        reads_(shared_, warp.clocks, accessor_of(warp, in)) {}

  /// Reports a leading offset to which the rank of the CTA was added: a descriptor has bits 4 to 17 of an address, and
  /// those of the rank fall into the next field. The CTA of rank 0 tells what the offset is without them.
  void check_leading_offset(const Slot* operand, Major major, int extent, int element_bytes) {
    Cluster& cluster = warp_.cta().cluster();
    const auto chunks = static_cast<std::uint32_t>(extent * element_bytes / kChunkBytes);
    if (cluster.size() == 1 || !matrix_.uses_leading(major, chunks)) return;
    const auto rank = static_cast<std::uint32_t>(warp_.cta().rank());
    auto& leading = cluster.leading_offsets();
    if (rank == 0) leading[operand] = matrix_.leading_bytes;
    const auto first = leading.find(operand);
    const std::uint32_t of_rank = rank << (kClusterRankShift - 16);
    if (rank == 0 || first == leading.end() || matrix_.leading_bytes != first->second + of_rank) return;
    warp_.report(Severity::error, FindingKind::bad_descriptor, in_, 0, matrix_.start, [&] {
      return fmt::format(
          "the leading offset of the matrix descriptor is {} bytes, but {} in the CTA of rank 0: bits 24 and up of a "
          "shared address are the rank of the CTA, {} here; clear all but the low 18 bits of the address",
          matrix_.leading_bytes, first->second, rank);
    });
  }

  /// Reads K-major rows of bits.
  void read_bits(int first, int count, std::array<std::uint64_t, kRowBytes / 8>* rows) {
    for (int row = 0; row < count; ++row) {
      for (std::uint32_t c = 0; c < kRowBytes / kChunkBytes; ++c) {
        std::memcpy(reinterpret_cast<std::byte*>(rows[row].data()) + c * kChunkBytes,
                    chunk(matrix_.address(Major::k, static_cast<std::uint32_t>(first + row), c)), kChunkBytes);
      }
    }
  }

  /// Reads rows [first, first + count) along M or N, of `row_bytes` bytes along K, to tile[mn * k_elements + k], or
  /// with `columns` to tile[k * kTileRows + mn].
  void read(Major major, const ElementRow& element, int first, int count, int row_bytes, float* tile, bool columns) {
    const int per_chunk = kChunkBytes / element.bytes;
    const int k_elements = row_bytes / element.bytes;
    if (major == Major::k && matrix_.swizzle_bytes > kChunkBytes &&
        matrix_.swizzle_bytes < static_cast<std::uint32_t>(row_bytes)) {
      warp_.report(Severity::error, FindingKind::bad_descriptor, in_, 0, matrix_.start, [&] {
        return fmt::format("a swizzle of {} bytes, and {} bytes along K in one instruction", matrix_.swizzle_bytes,
                           row_bytes);
      });
    }
    constexpr int kRows = SharedMatrix::kCoreRows;
    alignas(64) float rows[kRows * kChunkBytes];
    const std::byte* chunks[kRows];
    const int last_mn = first + count - 1, last_k = k_elements - 1;
    inside_ = major == Major::k ? is_inside(major, last_mn, last_k / per_chunk)
                                : is_inside(major, last_mn / per_chunk, last_k);
    if (major == Major::k) {
      for (int mn = 0; mn < count; mn += kRows) {
        for (int c = 0; c < row_bytes / kChunkBytes; ++c) {
          find_chunks(major, static_cast<std::uint32_t>(first + mn), static_cast<std::uint32_t>(c), chunks);
          if (columns) {
            element.read(chunks, kRows, rows, per_chunk);
            store_chunk_columns(rows, per_chunk, tile + c * per_chunk * kTileRows + mn);
          } else {
            element.read(chunks, kRows, tile + mn * k_elements + c * per_chunk, k_elements);
          }
        }
      }
      return;
    }
    for (int k = 0; k < k_elements; k += kRows) {
      for (int c = 0; c < count / per_chunk; ++c) {
        find_chunks(major, static_cast<std::uint32_t>(first / per_chunk + c), static_cast<std::uint32_t>(k), chunks);
        if (columns) {
          element.read(chunks, kRows, tile + k * kTileRows + c * per_chunk, kTileRows);
        } else {
          element.read(chunks, kRows, rows, per_chunk);
          transpose_rows(rows, tile + c * per_chunk * k_elements + k, k_elements);
        }
      }
    }
  }

 private:
  /// The four warps of a warpgroup read as its first warp: who waits for the reads of one waits for those of all.
  static Accessor accessor_of(Warp& warp, const Instruction& in) {
    const Agent first = warp.cta().warpgroup(warp.index()).front()->agent();
    return {async_of(first), 0, warp.code_index(in), warp.wgmma.open()};
  }

  /// Whether the shared memory contains all chunks up to one.
  bool is_inside(Major major, int mn, int k) const {
    const std::uint64_t end =
        matrix_.end_of_lines(major, static_cast<std::uint32_t>(mn), static_cast<std::uint32_t>(k));
    return shared_.contains(matrix_.start, 1) && end <= shared_.end() && end <= SharedMatrix::kAddresses;
  }

  /// The chunks of the rows of a core matrix, which begins at a row that is a multiple of kCoreRows.
  void find_chunks(Major major, std::uint32_t mn, std::uint32_t k,
                   const std::byte* (&chunks)[SharedMatrix::kCoreRows]) {
    std::uint32_t addresses[SharedMatrix::kCoreRows];
    matrix_.core_addresses(major, mn, k, addresses);
    if (inside_ && (!shared_.shadowed() || reads_.read_alike(addresses))) {
      const std::byte* const memory = shared_.at(kSharedBase);
      for (std::size_t i = 0; i < SharedMatrix::kCoreRows; ++i) chunks[i] = memory + (addresses[i] - kSharedBase);
    } else {
      for (std::size_t i = 0; i < SharedMatrix::kCoreRows; ++i) chunks[i] = chunk(addresses[i]);
    }
  }

  const std::byte* chunk(std::uint32_t address) {
    if (!shared_.contains(address, kChunkBytes)) {
      warp_.report(Severity::error, FindingKind::out_of_bounds_shared, in_, 0, address, [&] {
        return fmt::format(
            "read of {} bytes at shared address {:#x}{} through a matrix descriptor with start address {:#x}: the "
            "CTA's "
            "shared memory is [{:#x}, {:#x})",
            kChunkBytes, address, warp_.cta().describe_shared(address), matrix_.start, kSharedBase, shared_.end());
      });
      static const std::vector<std::byte> ones(kChunkBytes, std::byte{0xff});
      return ones.data();
    }
    if (shared_.shadowed()) {
      const SharedVerdict verdict = reads_.read(address);
      if (verdict != SharedVerdict::ok) {
        report_shared(warp_, in_, 0, {&warp_.cta(), address}, kChunkBytes, "wgmma read", verdict);
      }
    }
    return shared_.at(address);
  }

  Warp& warp_;
  const Instruction& in_;
  SharedMatrix matrix_;
  SharedMemory& shared_;
  SharedMemory::ChunkReads reads_;
  bool inside_ = false;  // the shared memory contains all chunks that are read
};

// Fragments. Lane l has rows l / 4 and l / 4 + 8 of its warp's 16.

/// Reads the fragment of A. Register r of lane l has the 4 bytes at byte 16 * (r / 2) + 4 * (l % 4) of K, of row
/// l / 4 + 8 * (r % 2).
void read_registers(Warp& warp, const Slot* registers, const ElementRow& element, float* tile, int k_elements) {
  const int per_half = k_elements / 2;
  alignas(64) float rows[8 * kChunkBytes];
  for (int r = 0; r < 4; ++r) {
    const std::byte* const words = warp.reg<std::byte>(registers[r]);
    const std::byte* chunks[8];
    for (int row = 0; row < 8; ++row) chunks[row] = words + row * kChunkBytes;
    element.read(chunks, 8, rows, per_half);
    store_chunk_columns(rows, per_half, tile + r / 2 * per_half * kTileRows + 8 * (r % 2));
  }
}

/// Calls f(register, index of the value in it, index in a tile of n columns) for each accumulator. A lane's values are
/// in columns 2 * (l % 4) and the next of row l / 4, then of row l / 4 + 8, then the same 8 columns further. A register
/// has one value.
template <class F>
[[gnu::always_inline]] inline void each_accumulator(int n, F&& f) {
  for (int r = 0; r < n / 2; ++r) {
    const int first = (r / 4 * 8 + r % 2) * kTileRows + r / 2 % 2 * 8;
    for (int lane = 0; lane < kWarpSize; ++lane) f(r, lane, first + lane % 4 * 2 * kTileRows + lane / 4);
  }
}

/// The accumulators of a register of all lanes are eight rows of kWidth columns of the tile, which are `stride` apart.
template <class Kind>
struct AccumulatorBlock {
  static constexpr int kPerRegister = 4 / sizeof(typename Kind::Stored);
  static constexpr int kWidth = 4 * kPerRegister, kValues = 8 * kWidth;
  static constexpr int kStride = 8 / kWidth * kTileRows;
  static constexpr int kRegistersOfRows = 2 / kPerRegister;  // that hold the same eight rows

  static int first(int r) {
    const int of_rows = r / kRegistersOfRows;
    return (of_rows / 2 * 8 + r % kRegistersOfRows) * kTileRows + of_rows % 2 * 8;
  }
  static int registers(int n) { return n / 2 / kPerRegister; }
  /// Whether a register has rows 0 to 7; the one kRegistersOfRows further has the others of the same columns.
  static bool has_low_rows(int r) { return r / kRegistersOfRows % 2 == 0; }
};

template <Shuffles kShuffles, class Kind>
[[gnu::always_inline]] inline void read_accumulators_inline(Warp& warp, const Slot* registers, int n, float* tile) {
  using Block = AccumulatorBlock<Kind>;
  for (int r = 0; r < Block::registers(n); ++r) {
    if constexpr (kShuffles == Shuffles::avx512) {
      if (!Block::has_low_rows(r)) continue;
      RowBlock<Block::kWidth> low, high;
      read_block<Kind, Block::kWidth>(warp.reg<typename Kind::Stored>(registers[r]), low);
      read_block<Kind, Block::kWidth>(warp.reg<typename Kind::Stored>(registers[r + Block::kRegistersOfRows]), high);
      store_whole_columns<Block::kWidth>(low, high, tile + Block::first(r), Block::kStride);
      continue;
    }
    alignas(64) float room[Block::kValues];
    const float* const rows = numbers_in<Kind, Block::kValues>(warp.reg<typename Kind::Stored>(registers[r]), room);
    store_columns<kShuffles, Block::kWidth>(rows, tile + Block::first(r), Block::kStride);
  }
}

template <Shuffles kShuffles, class Kind>
[[gnu::always_inline]] inline void write_accumulators_inline(Warp& warp, const Slot* registers, int n,
                                                             const float* tile) {
  using Block = AccumulatorBlock<Kind>;
  for (int r = 0; r < Block::registers(n); ++r) {
    if constexpr (kShuffles == Shuffles::avx512) {
      if (!Block::has_low_rows(r)) continue;
      RowBlock<Block::kWidth> low, high;
      load_whole_columns<Block::kWidth>(tile + Block::first(r), Block::kStride, low, high);
      store_block<Kind, Block::kWidth>(low, warp.reg<typename Kind::Stored>(registers[r]));
      store_block<Kind, Block::kWidth>(high, warp.reg<typename Kind::Stored>(registers[r + Block::kRegistersOfRows]));
      continue;
    }
    alignas(64) float rows[Block::kValues];
    load_columns<kShuffles, Block::kWidth>(tile + Block::first(r), Block::kStride, rows);
    store_numbers<Kind, Block::kValues>(rows, warp.reg<typename Kind::Stored>(registers[r]), false);
  }
}

template <class Kind>
TILEWRIGHT_TARGET_AVX512 void read_accumulators_with_avx512(Warp& warp, const Slot* registers, int n, float* tile) {
  read_accumulators_inline<Shuffles::avx512, Kind>(warp, registers, n, tile);
}

template <class Kind>
TILEWRIGHT_TARGET_AVX512 void write_accumulators_with_avx512(Warp& warp, const Slot* registers, int n,
                                                             const float* tile) {
  write_accumulators_inline<Shuffles::avx512, Kind>(warp, registers, n, tile);
}

template <class Kind>
void read_accumulators(Warp& warp, const Slot* registers, int n, float* tile) {
  if (has_avx512()) return read_accumulators_with_avx512<Kind>(warp, registers, n, tile);
  read_accumulators_inline<Shuffles::none, Kind>(warp, registers, n, tile);
}

template <class Kind>
void write_accumulators(Warp& warp, const Slot* registers, int n, const float* tile) {
  if (has_avx512()) return write_accumulators_with_avx512<Kind>(warp, registers, n, tile);
  write_accumulators_inline<Shuffles::none, Kind>(warp, registers, n, tile);
}

/// Adds sums of products of integers to the accumulators, or replaces these.
void add_to_accumulators(Warp& warp, const Slot* registers, int n, const float* sums, bool adds, bool saturates) {
  each_accumulator(n, [&](int r, int i, int index) {
    std::int32_t& value = warp.reg<std::int32_t>(registers[r])[i];
    value = S32Accumulator::stored((adds ? value : 0) + static_cast<std::int64_t>(sums[index]), saturates);
  });
}

int register_count(const WgmmaMode& mode) { return mode.n8 * (mode.accumulator == Accumulator::f16 ? 2 : 4); }

/// Checks the registers of a wgmma for a missing wgmma.fence and for conflicts with earlier wgmmas, then marks them as
/// in flight.
void check_registers(Warp& warp, const Instruction& in, const Slot* d, int d_count, const Slot* a, int a_count) {
  RegisterHazards* const hazards = warp.hazards();
  if (hazards == nullptr) return;
  const auto check_fence = [&](Slot slot, std::string_view fragment, int i) {
    if (!hazards->unfenced(slot)) return;
    warp.report(Severity::error, FindingKind::missing_wgmma_fence, in, 0, 0, [&] {
      return fmt::format("no wgmma.fence between the last write to register {} of {} and this wgmma", i, fragment);
    });
  };
  const std::uint32_t group = warp.wgmma.open(), code = warp.code_index(in);
  for (int i = 0; i < d_count; ++i) {
    if (!hazards->in_flight_as_accumulator(d[i])) check_fence(d[i], "the accumulator", i);
    hazards->issue(d[i], group, code, true);
  }
  for (int i = 0; i < a_count; ++i) {
    if (hazards->in_flight_as_accumulator(a[i])) {
      warp.report(Severity::error, FindingKind::wgmma_register_in_flight, in, 0, 0, [&] {
        return fmt::format("read of register {} of A, in which an earlier wgmma still accumulates", i);
      });
    }
    check_fence(a[i], "A", i);
    hazards->issue(a[i], group, code, false);
  }
}

/// The bits of a row of A or a column of B.
using BitRow = std::array<std::uint64_t, kRowBytes / 8>;

/// wgmma of .b1: the accumulators count the places where both rows have ones.
void count_common_bits(Warp& warp, const Slot* registers, int n, const BitRow* a, const BitRow* b, bool adds) {
  each_accumulator(n, [&](int r, int i, int index) {
    const BitRow& of_a = a[index % kTileRows];
    const BitRow& of_b = b[index / kTileRows];
    int count = 0;
    for (std::size_t word = 0; word < of_a.size(); ++word) count += std::popcount(of_a[word] & of_b[word]);
    auto& value = warp.reg<std::uint32_t>(registers[r])[i];
    value = (adds ? value : 0) + static_cast<std::uint32_t>(count);
  });
}

void read_bits_of_registers(Warp& warp, const Slot* registers, BitRow* rows) {
  for (int r = 0; r < 4; ++r) {
    const auto* const words = warp.reg<std::uint32_t>(registers[r]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      std::byte* const row = reinterpret_cast<std::byte*>(rows[lane / 4 + 8 * (r % 2)].data());
      std::memcpy(row + 16 * (r / 2) + 4 * (lane % 4), &words[lane], sizeof(words[lane]));
    }
  }
}

/// Multiplies each row of A with the rows of B that the metadata names, for eight columns at a time. B has 2 * k rows.
void multiply_add_sparse(Warp& warp, const Instruction& in, const WgmmaMode& mode, const ProductTiles& tiles,
                         const std::uint32_t* words, const TensorCoreSum* how) {
  constexpr int kColumns = 8;
  const SparseMetadata metadata{tiles.element_bytes, 2 * tiles.k, false};
  std::array<int, kMaxStored> places[kTileRows] = {};
  for (int row = 0; row < kTileRows; ++row) find_stored(warp, in, metadata, words, mode.selector, row, places[row]);
  alignas(64) float rows_of_b[kColumns * kMaxStored * kTileRows];
  ProductTiles part = tiles;
  part.n = kColumns;
  part.b = rows_of_b;
  part.b_has_rows = true;
  for (int first = 0; first < tiles.n; first += kColumns) {
    for (int n = 0; n < kColumns; ++n) {
      const float* const column = tiles.b + (first + n) * 2 * tiles.k;
      for (int k = 0; k < tiles.k; ++k) {
        float* const to = rows_of_b + (n * tiles.k + k) * kTileRows;
        for (int row = 0; row < kTileRows; ++row) to[row] = column[places[row][static_cast<std::size_t>(k)]];
      }
    }
    part.c = tiles.c + first * kTileRows;
    if (how == nullptr) {
      multiply_add_integers(part);
    } else {
      multiply_add(part, *how);
    }
  }
}

/// Operands: the registers of D, A (4 registers, or a descriptor), B's descriptor, the metadata of sparse products,
/// scale-d and the mask to xor it with.
void execute_mma_async(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  const WgmmaMode mode = unpack(in.immediate);
  const ElementRow& a_element = kElements[mode.a];
  const ElementRow& b_element = kElements[mode.b];
  const int n = mode.n8 * 8;
  const int k_elements = kRowBytes / a_element.bytes;
  const int d_count = register_count(mode);
  const Slot* const d = in.op;
  const Slot* const a = d + d_count;
  const int a_count = mode.a_in_registers ? 4 : 1;
  const Slot* const b = a + a_count;
  check_registers(warp, in, d, d_count, a, mode.a_in_registers ? a_count : 0);
  // thread_local, to avoid zeroing them: all elements are written before they are read.
  alignas(64) thread_local std::array<float, kTileRows * kRowBytes> a_tile;
  alignas(64) thread_local std::array<float, kMaxK * kMaxN> b_tile;
  alignas(64) thread_local std::array<float, kTileRows * kMaxN> c_tile;
  const auto finish = [&](int k) {
    if (Profile* const profile = warp.cta().launch().profile)
      profile->count_product(warp.code_index(in), kTileRows, n, k);
    ++warp.wgmma.mma_count;
  };
  if (is_bits(a_element)) {
    thread_local std::array<BitRow, kTileRows> rows;
    thread_local std::array<BitRow, kMaxN> columns;
    if (mode.a_in_registers) {
      read_bits_of_registers(warp, a, rows.data());
    } else {
      TileReader(warp, in, *warp.reg<std::uint64_t>(a[0]))
          .read_bits(warp.index() % 4 * kTileRows, kTileRows, rows.data());
    }
    TileReader(warp, in, *warp.reg<std::uint64_t>(b[0])).read_bits(0, n, columns.data());
    const bool adds = ((warp.predicate(b[1]) ^ warp.predicate(b[2])) & 1) != 0;
    count_common_bits(warp, d, n, rows.data(), columns.data(), adds);
    return finish(8 * kRowBytes);
  }
  if (mode.a_in_registers) {
    read_registers(warp, a, a_element, a_tile.data(), k_elements);
  } else {
    const Major major = mode.a_mn_major ? Major::mn : Major::k;
    TileReader reader(warp, in, *warp.reg<std::uint64_t>(a[0]));
    reader.check_leading_offset(a, major, 4 * kTileRows, a_element.bytes);
    reader.read(major, a_element, warp.index() % 4 * kTileRows, kTileRows, kRowBytes, a_tile.data(), true);
  }
  const Major b_major = mode.b_mn_major ? Major::mn : Major::k;
  TileReader b_reader(warp, in, *warp.reg<std::uint64_t>(b[0]));
  b_reader.check_leading_offset(b, b_major, n, b_element.bytes);
  b_reader.read(b_major, b_element, 0, n, mode.sparse ? 2 * kRowBytes : kRowBytes, b_tile.data(), false);
  const Slot* const metadata = b + 1;
  const Slot* const scale_d = metadata + (mode.sparse ? 1 : 0);
  const bool adds = ((warp.predicate(scale_d[0]) ^ warp.predicate(scale_d[1])) & 1) != 0;
  const ProductTiles tiles{
      n,
      k_elements,
      a_tile.data(),
      b_tile.data(),
      c_tile.data(),
      a_element.bytes,
      a_element.least_exponent,
      b_element.least_exponent,
      mode.accumulator == Accumulator::f16 ? F16Accumulator::kLeastExponent : F32Accumulator::kLeastExponent};
  const auto update = [&]<class Kind>(Kind) {
    if (adds) {
      read_accumulators<Kind>(warp, d, n, c_tile.data());
    } else {
      std::fill_n(c_tile.data(), kTileRows * n, 0.0F);
    }
    if (mode.negates) {
      for (float& value : a_tile) value = -value;
    }
    const TensorCoreSum how = sum_of_wgmma(a_element.bytes, mode.accumulator == Accumulator::f16);
    if (mode.sparse) {
      multiply_add_sparse(warp, in, mode, tiles, warp.reg<std::uint32_t>(*metadata), &how);
    } else {
      multiply_add(tiles, how);
    }
    write_accumulators<Kind>(warp, d, n, c_tile.data());
  };
  if (mode.accumulator == Accumulator::f16) update(F16Accumulator());
  if (mode.accumulator == Accumulator::f32) update(F32Accumulator());
  if (mode.accumulator == Accumulator::s32) {
    std::fill_n(c_tile.data(), kTileRows * n, 0.0F);
    if (mode.sparse) {
      multiply_add_sparse(warp, in, mode, tiles, warp.reg<std::uint32_t>(*metadata), nullptr);
    } else {
      multiply_add_integers(tiles);
    }
    add_to_accumulators(warp, d, n, c_tile.data(), adds, mode.saturates);
  }
  finish(mode.sparse ? 2 * k_elements : k_elements);
}

void execute_fence(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  if (warp.hazards() != nullptr) warp.hazards()->fence(warp.steps());
}

void execute_commit_group(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  ++warp.wgmma.committed;
  warp.cta().release_warpgroup(warp.index());
}

/// Whether all four warps of the warpgroup have committed this many groups: a wgmma is complete only then.
bool warpgroup_has_committed(Warp& warp, const Instruction& in, std::uint32_t groups) {
  bool all = true;
  for (const auto& other : warp.cta().warpgroup(warp.index())) {
    if (other->wgmma.committed >= groups) continue;
    all = false;
    if (other->exited() != other->present()) continue;
    warp.fail(
        FindingKind::barrier_divergence, in, 0, 0,
        fmt::format("warp {} of the warpgroup exited after committing {} of the {} groups of wgmma.mma_async that "
                    "warp {} waits for",
                    other->index(), other->wgmma.committed, groups, warp.index()));
  }
  return all;
}

/// immediate: how many of the latest groups may remain pending.
void execute_wait_group(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.converge(in, lanes, kAllLanes)) return;
  WgmmaGroups& groups = warp.wgmma;
  const auto max_pending = static_cast<std::uint32_t>(in.immediate);
  if (groups.committed <= max_pending) return;
  const std::uint32_t awaited = groups.committed - max_pending;
  if (!warpgroup_has_committed(warp, in, awaited)) return warp.wait_for_warpgroup(in, lanes);
  groups.retired = std::max(groups.retired, awaited);
  for (const auto& each : warp.cta().warpgroup(warp.index())) {
    warp.clocks.ordered.raise(async_of(each->agent()), awaited);
  }
  if (warp.hazards() != nullptr) warp.hazards()->retire(groups.retired);
}

// Decoders ---------------------------------------------------------------------------------------------------------

/// Takes the shape "m64n128k16" and returns N; refuses other shapes.
int take_n(InstructionReader& reader, int k_elements) {
  for (int n = 8; n <= kMaxN; n += 8) {
    if (reader.take(fmt::format("m64n{}k{}", n, k_elements))) return n;
  }
  reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
}

std::optional<std::uint8_t> element_named(std::string_view name) {
  const auto* const row = std::ranges::find(kElements, name, &ElementRow::name);
  if (row == kElements.end()) return std::nullopt;
  return static_cast<std::uint8_t>(row - kElements.begin());
}

/// Takes the types ".d.a.b", which must be in this order, and .satfinite.
void take_types(InstructionReader& reader, WgmmaMode& mode) {
  static constexpr std::string_view kAccumulators[] = {"f16", "f32", "s32"};
  std::vector<std::string_view> types;
  for (std::string_view rest = reader.parsed().opcode; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    const std::string_view word = rest.substr(0, dot);
    if (element_named(word) || std::ranges::find(kAccumulators, word) != std::end(kAccumulators)) types.push_back(word);
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  const auto* const d = types.empty() ? std::end(kAccumulators) : std::ranges::find(kAccumulators, types[0]);
  const auto a = types.size() == 3 ? element_named(types[1]) : std::nullopt;
  const auto b = types.size() == 3 ? element_named(types[2]) : std::nullopt;
  if (d == std::end(kAccumulators) || !a || !b) reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  for (const std::string_view type : types) reader.take(type);
  mode.accumulator = static_cast<Accumulator>(d - std::begin(kAccumulators));
  mode.a = *a;
  mode.b = *b;
  mode.saturates = reader.take("satfinite");
}

/// Refuses combinations of types that the PTX ISA does not list for wgmma.mma_async.
void check_types(InstructionReader& reader, const WgmmaMode& mode) {
  const ElementRow& a = kElements[mode.a];
  const ElementRow& b = kElements[mode.b];
  const bool mixes = a.bytes == 1 && b.bytes == 1 && is_integer(a) == is_integer(b) && !is_bits(a) && !is_bits(b);
  const bool same = mode.a == mode.b || mixes;
  bool accumulates = mode.accumulator == Accumulator::f32;
  if (a.name == "f16" || (a.bytes == 1 && !is_integer(a) && !is_bits(a)))
    accumulates |= mode.accumulator == Accumulator::f16;
  if (is_integer(a) || is_bits(a)) accumulates = mode.accumulator == Accumulator::s32;
  if (!same || !accumulates || (mode.saturates && !is_integer(a))) {
    reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  }
}

/// Reads an imm-scale operand, which must be 1 or -1.
bool is_negative(InstructionReader& reader, const Operand& scale) {
  const auto value = static_cast<std::int64_t>(reader.number(scale));
  if (value != 1 && value != -1) reader.refuse(fmt::format("an imm-scale of {}, which must be 1 or -1", value));
  return value == -1;
}

void take_scales(InstructionReader& reader, WgmmaMode& mode) {
  const ElementRow& a = kElements[mode.a];
  const std::size_t first = mode.sparse ? 6 : 4;  // after scale-d
  if (is_integer(a) || is_bits(a)) return reader.expect_operands(first);
  const std::size_t transposes = a.bytes != 2 ? 0 : mode.a_in_registers ? 1 : 2;
  reader.expect_operands(first + 2 + transposes);
  mode.negates = is_negative(reader, reader.operand(first)) != is_negative(reader, reader.operand(first + 1));
  if (transposes == 0) return;
  if (transposes == 2) mode.a_mn_major = reader.number(reader.operand(first + 2)) != 0;
  mode.b_mn_major = reader.number(reader.operand(first + 1 + transposes)) != 0;
}

void decode_product(InstructionReader& reader, bool sparse) {
  reader.take("sync");
  reader.take("aligned");
  WgmmaMode mode;
  mode.sparse = sparse;
  take_types(reader, mode);
  check_types(reader, mode);
  const bool bits = is_bits(kElements[mode.a]);
  if (bits && (sparse || !reader.take("and") || !reader.take("popc")))
    reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  const int k_elements = bits ? 8 * kRowBytes : kRowBytes / kElements[mode.a].bytes;
  const int n = take_n(reader, sparse ? 2 * k_elements : k_elements);
  reader.finish();
  if ((is_integer(kElements[mode.a]) || bits) && n > 24 && n % 16 != 0) {
    reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  }
  mode.n8 = static_cast<std::uint8_t>(n / 8);
  reader.expect_operands(sparse ? 6 : 4, sparse ? 10 : 8);
  mode.a_in_registers = reader.operand(1).kind == Operand::Kind::vector;
  const std::vector<Operand> d = reader.elements(reader.operand(0));
  if (static_cast<int>(d.size()) != register_count(mode)) {
    reader.refuse(fmt::format("a fragment of {} registers, which must have {}", d.size(), register_count(mode)));
  }
  for (const Operand& one : d) reader.destination(one, PtxType::b32);
  const std::vector<Operand> a = reader.elements(reader.operand(1));
  if (mode.a_in_registers && a.size() != 4) {
    reader.refuse(fmt::format("a fragment of {} registers, which must have 4", a.size()));
  }
  for (const Operand& one : a) reader.source(one, mode.a_in_registers ? PtxType::b32 : PtxType::b64);
  reader.source(reader.operand(2), PtxType::b64);
  if (sparse) {
    reader.source(reader.operand(3), PtxType::b32);
    const std::uint64_t selector = reader.number(reader.operand(4));
    const int selectors = SparseMetadata{kElements[mode.a].bytes, 2 * k_elements, false}.selectors();
    if (selector >= static_cast<std::uint64_t>(selectors))
      reader.refuse(fmt::format("a sparsity selector of {}, which must be less than {}", selector, selectors));
    mode.selector = static_cast<std::uint8_t>(selector);
  }
  reader.predicate_source(reader.operand(sparse ? 5 : 3));
  take_scales(reader, mode);
  reader.out().immediate = pack(mode);
  reader.out().registers = RegisterUse::wgmma;
  reader.out().execute = &execute_mma_async;
}

void decode_mma_async(InstructionReader& reader) { decode_product(reader, false); }
void decode_sparse(InstructionReader& reader) { decode_product(reader, true); }

void take_sync_aligned(InstructionReader& reader) {
  reader.take("sync");
  if (!reader.take("aligned")) reader.refuse(fmt::format("{} without .aligned", reader.parsed().opcode));
  reader.finish();
  reader.out().registers = RegisterUse::wgmma;
}

void decode_fence(InstructionReader& reader) {
  take_sync_aligned(reader);
  reader.expect_operands(0);
  reader.out().execute = &execute_fence;
}

void decode_commit_group(InstructionReader& reader) {
  take_sync_aligned(reader);
  reader.expect_operands(0);
  reader.out().execute = &execute_commit_group;
}

void decode_wait_group(InstructionReader& reader) {
  take_sync_aligned(reader);
  reader.expect_operands(1);
  reader.out().immediate = static_cast<std::int64_t>(reader.number(reader.operand(0)) & 7);
  reader.out().execute = &execute_wait_group;
}

constexpr std::array kOpcodes = {
    OpcodeRow{"wgmma.mma_async", OperandClass::any, decode_mma_async},
    OpcodeRow{"wgmma.mma_async.sp", OperandClass::any, decode_sparse},
    OpcodeRow{"wgmma.fence", OperandClass::any, decode_fence},
    OpcodeRow{"wgmma.commit_group", OperandClass::any, decode_commit_group},
    OpcodeRow{"wgmma.wait_group", OperandClass::any, decode_wait_group},
};

}  // namespace

std::span<const OpcodeRow> wgmma_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
