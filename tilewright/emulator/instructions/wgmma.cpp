// wgmma: products of a warpgroup with operands in shared memory, its fence and its groups.
// Each warp computes its 16 rows of D when it comes to the instruction; the wait is over when all four warps came to
// it, and covers what all four read. Until the wait for its group, D, the registers
// of A and the shared tiles are in flight: touching the first two, or writing the last, is a finding.
// Numerics are those of mma.cpp: exact products, added in f64 in the order of k, rounded once an instruction.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/matrix_element.hpp"
#include "tilewright/emulator/instructions/shared_matrix.hpp"

namespace tilewright::emulator {
namespace {

constexpr int kRows = 16;  // of D and A, a warp
constexpr int kMaxN = 256;
constexpr int kMaxK = 32;
constexpr int kRowBytes = 32;  // of K, for every type
constexpr int kChunkBytes = 16;

using ReadElements = void (*)(const std::byte* from, double* to);

/// The 16 bytes of a chunk as numbers.
template <class Element>
void read_chunk(const std::byte* from, double* to) {
  using Stored = typename Element::Stored;
  for (std::size_t i = 0; i < kChunkBytes / sizeof(Stored); ++i) {
    Stored stored;
    std::memcpy(&stored, from + i * sizeof(Stored), sizeof(Stored));
    to[i] = static_cast<double>(Element::number(stored));
  }
}

struct ElementRow {
  std::string_view name;
  int bytes;
  ReadElements read;
};

constexpr std::array kElements = {
    ElementRow{"f16", 2, read_chunk<HalfElement>},  ElementRow{"bf16", 2, read_chunk<BFloatElement>},
    ElementRow{"tf32", 4, read_chunk<Tf32Element>}, ElementRow{"e4m3", 1, read_chunk<E4m3Element>},
    ElementRow{"e5m2", 1, read_chunk<E5m2Element>}, ElementRow{"s8", 1, read_chunk<SignedByteElement>},
    ElementRow{"u8", 1, read_chunk<ByteElement>},
};

enum class Accumulator : std::uint8_t { f16, f32, s32 };

/// Instruction::immediate of wgmma.mma_async.
struct WgmmaMode {
  std::uint8_t a = 0, b = 0;  // rows of kElements
  Accumulator accumulator = Accumulator::f32;
  bool a_in_registers = false;
  bool a_mn_major = false, b_mn_major = false;
  bool negates = false;
  bool saturates = false;
  std::uint8_t n8 = 1;  // N / 8
};

WgmmaMode unpack(std::int64_t bits) {
  const auto u = static_cast<std::uint64_t>(bits);
  const auto at = [&](int shift, std::uint64_t mask) { return static_cast<std::uint8_t>((u >> shift) & mask); };
  return {at(0, 7),       at(3, 7),       static_cast<Accumulator>(at(6, 3)),
          at(8, 1) != 0,  at(9, 1) != 0,  at(10, 1) != 0,
          at(11, 1) != 0, at(12, 1) != 0, at(13, 63)};
}

std::int64_t pack(const WgmmaMode& mode) {
  return mode.a | mode.b << 3 | static_cast<int>(mode.accumulator) << 6 | (mode.a_in_registers ? 1 << 8 : 0) |
         (mode.a_mn_major ? 1 << 9 : 0) | (mode.b_mn_major ? 1 << 10 : 0) | (mode.negates ? 1 << 11 : 0) |
         (mode.saturates ? 1 << 12 : 0) | mode.n8 << 13;
}

/// Reads of one operand's tile by one warp.
class TileReader {
 public:
  TileReader(Warp& warp, const Instruction& in, std::uint64_t descriptor)
      : warp_(warp),
        in_(in),
        matrix_(decode_descriptor(descriptor)),
        shared_(warp.cta().shared()),
        who_{async_of(warp.agent()), 0, warp.code_index(in), warp.wgmma.open()} {}

  /// Rows [first, first + count) of the operand, to tile[mn * mn_stride + k * k_stride].
  void read(Major major, const ElementRow& element, int first, int count, double* tile, int mn_stride, int k_stride) {
    const int per_chunk = kChunkBytes / element.bytes;
    const int k_elements = kRowBytes / element.bytes;
    double numbers[kChunkBytes];
    const auto visit = [&](int mn_chunk, int k_chunk, double* to, int step) {
      element.read(chunk(major, static_cast<std::uint32_t>(mn_chunk), static_cast<std::uint32_t>(k_chunk)), numbers);
      for (int i = 0; i < per_chunk; ++i) to[i * step] = numbers[i];
    };
    if (major == Major::k) {
      for (int mn = 0; mn < count; ++mn) {
        for (int c = 0; c < kRowBytes / kChunkBytes; ++c) {
          visit(first + mn, c, tile + mn * mn_stride + c * per_chunk * k_stride, k_stride);
        }
      }
      return;
    }
    for (int k = 0; k < k_elements; ++k) {
      for (int c = 0; c < count / per_chunk; ++c) {
        visit(first / per_chunk + c, k, tile + c * per_chunk * mn_stride + k * k_stride, mn_stride);
      }
    }
  }

 private:
  const std::byte* chunk(Major major, std::uint32_t mn, std::uint32_t k) {
    const std::uint32_t address = matrix_.address(major, mn, k);
    if (!shared_.contains(address, kChunkBytes)) {
      warp_.fail(FindingKind::out_of_bounds_shared, in_, 0, address,
                 fmt::format("read of {} bytes at shared address {:#x}{} by a descriptor that starts at {:#x}: the "
                             "CTA's are {:#x} to {:#x}",
                             kChunkBytes, address, warp_.cta().describe_shared(address), matrix_.start, kSharedBase,
                             shared_.end()));
    }
    if (shared_.shadowed()) {
      const SharedVerdict verdict = shared_.async_read(warp_.past, who_, address, kChunkBytes);
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
  Accessor who_;
};

// Fragments. Lane l of a warp has rows l/4 and l/4 + 8 of its 16.

/// A from registers: each has 4 bytes of K at 4 * (l % 4) of a 16-byte half; then the other row, then the other half.
void read_registers(Warp& warp, const Slot* registers, const ElementRow& element, double* tile, int k_elements) {
  const int per_register = 4 / element.bytes;
  const int per_half = k_elements / 2;
  std::byte chunk[kChunkBytes] = {};
  double numbers[kChunkBytes];
  for (int r = 0; r < 4; ++r) {
    const std::byte* const words = warp.reg<std::byte>(registers[r]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      std::memcpy(chunk, words + 4 * lane, 4);
      element.read(chunk, numbers);
      const int row = lane / 4 + 8 * (r % 2);
      const int k = r / 2 * per_half + lane % 4 * per_register;
      for (int i = 0; i < per_register; ++i) tile[row * kMaxK + k + i] = numbers[i];
    }
  }
}

/// Calls f(value's index of the lane, lane, its place in a tile of kRows x n): columns 2 * (l % 4) and the next, row
/// l / 4, row l / 4 + 8, then 8 columns on.
template <class F>
void each_accumulator(int n, F&& f) {
  for (int value = 0; value < n / 2; ++value) {
    const int column = value / 4 * 8 + value % 2;
    const int row = value / 2 % 2 * 8;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      f(value, lane, (row + lane / 4) * n + column + lane % 4 * 2);
    }
  }
}

template <class Kind>
void read_accumulators(Warp& warp, const Slot* registers, int n, double* tile) {
  using Stored = typename Kind::Stored;
  constexpr int kPerRegister = 4 / sizeof(Stored);
  each_accumulator(n, [&](int value, int lane, int place) {
    const Stored* const packed = warp.reg<Stored>(registers[value / kPerRegister]);
    tile[place] = static_cast<double>(Kind::number(packed[lane * kPerRegister + value % kPerRegister]));
  });
}

template <class Kind>
void write_accumulators(Warp& warp, const Slot* registers, int n, const double* tile, bool saturates) {
  using Stored = typename Kind::Stored;
  using Number = decltype(Kind::number(Stored()));
  constexpr int kPerRegister = 4 / sizeof(Stored);
  each_accumulator(n, [&](int value, int lane, int place) {
    Stored* const packed = warp.reg<Stored>(registers[value / kPerRegister]);
    packed[lane * kPerRegister + value % kPerRegister] = Kind::stored(static_cast<Number>(tile[place]), saturates);
  });
}

int register_count(const WgmmaMode& mode) { return mode.n8 * (mode.accumulator == Accumulator::f16 ? 2 : 4); }

/// What RegisterHazards asks of a wgmma's own registers.
void check_registers(Warp& warp, const Instruction& in, const Slot* d, int d_count, const Slot* a, int a_count) {
  RegisterHazards* const hazards = warp.hazards();
  if (hazards == nullptr) return;
  const auto check_fence = [&](Slot slot, std::string_view what) {
    if (!hazards->unfenced(slot)) return;
    warp.fail(FindingKind::unfenced_wgmma, in, 0, 0,
              fmt::format("{} of a wgmma that no wgmma.fence separates from the instruction that wrote it,", what));
  };
  for (int i = 0; i < d_count; ++i) {
    if (!hazards->in_flight_as_accumulator(d[i])) check_fence(d[i], "an accumulator");
    hazards->begin(d[i], warp.wgmma.open(), warp.code_index(in), true);
  }
  for (int i = 0; i < a_count; ++i) {
    if (hazards->in_flight_as_accumulator(a[i])) {
      warp.fail(FindingKind::accumulator_in_flight, in, 0, 0,
                "read of a register of A that an earlier wgmma still accumulates in,");
    }
    check_fence(a[i], "a register of A");
    hazards->begin(a[i], warp.wgmma.open(), warp.code_index(in), false);
  }
}

void multiply_add(const double* a, const double* b, double* c, int n, int k_elements, bool negates) {
  for (int m = 0; m < kRows; ++m) {
    for (int k = 0; k < k_elements; ++k) {
      const double x = negates ? -a[m * kMaxK + k] : a[m * kMaxK + k];
      double* const row = c + m * n;
      const double* const of_b = b + k * n;
      for (int i = 0; i < n; ++i) row[i] += x * of_b[i];
    }
  }
}

/// Operands: the registers of D, A (4 registers, or a descriptor), B's descriptor, scale-d and its flip.
void execute_mma_async(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.gather(in, lanes, kAllLanes)) return;
  const WgmmaMode mode = unpack(in.immediate);
  const ElementRow& a_element = kElements[mode.a];
  const ElementRow& b_element = kElements[mode.b];
  const int n = mode.n8 * 8;
  const int k_elements = kRowBytes / a_element.bytes;
  const int d_count = register_count(mode);
  const Slot* const d = in.op;
  const Slot* const a = d + d_count;
  const int a_count = mode.a_in_registers ? 4 : 1;
  const Slot* const rest = a + a_count;
  check_registers(warp, in, d, d_count, a, mode.a_in_registers ? a_count : 0);
  // Not zeroed: each is written before it is read.
  thread_local std::array<double, kRows * kMaxK> a_tile;
  thread_local std::array<double, kMaxK * kMaxN> b_tile;
  thread_local std::array<double, kRows * kMaxN> c_tile;
  if (mode.a_in_registers) {
    read_registers(warp, a, a_element, a_tile.data(), k_elements);
  } else {
    TileReader(warp, in, *warp.reg<std::uint64_t>(a[0]))
        .read(mode.a_mn_major ? Major::mn : Major::k, a_element, warp.index() % 4 * kRows, kRows, a_tile.data(), kMaxK,
              1);
  }
  TileReader(warp, in, *warp.reg<std::uint64_t>(rest[0]))
      .read(mode.b_mn_major ? Major::mn : Major::k, b_element, 0, n, b_tile.data(), 1, n);
  const bool adds = ((warp.predicate(rest[1]) ^ warp.predicate(rest[2])) & 1) != 0;
  const auto update = [&]<class Kind>(Kind) {
    if (adds) {
      read_accumulators<Kind>(warp, d, n, c_tile.data());
    } else {
      std::ranges::fill(c_tile, 0.0);
    }
    multiply_add(a_tile.data(), b_tile.data(), c_tile.data(), n, k_elements, mode.negates);
    write_accumulators<Kind>(warp, d, n, c_tile.data(), mode.saturates);
  };
  if (mode.accumulator == Accumulator::f16) update(HalfAccumulator());
  if (mode.accumulator == Accumulator::f32) update(FloatAccumulator());
  if (mode.accumulator == Accumulator::s32) update(IntegerAccumulator());
  ++warp.wgmma.multiplies;
}

void execute_fence(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.gather(in, lanes, kAllLanes)) return;
  if (warp.hazards() != nullptr) warp.hazards()->fence(warp.steps());
}

void execute_commit_group(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.gather(in, lanes, kAllLanes)) return;
  ++warp.wgmma.committed;
  warp.cta().release_warpgroup(warp.index());
}

/// A product is the warpgroup's: it is complete when all four warps came to it, and then for all four.
bool warpgroup_has_committed(Warp& warp, const Instruction& in, std::uint32_t groups) {
  bool all = true;
  for (const auto& other : warp.cta().warpgroup(warp.index())) {
    if (other->wgmma.committed >= groups) continue;
    all = false;
    if (other->exited() != other->present()) continue;
    warp.fail(FindingKind::barrier_divergence, in, 0, 0,
              fmt::format("warp {} of the warpgroup exited after {} of the {} groups of wgmma.mma_async that warp {} "
                          "waits for,",
                          other->index(), other->wgmma.committed, groups, warp.index()));
  }
  return all;
}

/// immediate: how many of the latest groups may stay in flight.
void execute_wait_group(Warp& warp, const Instruction& in, Mask lanes) {
  if (!warp.gather(in, lanes, kAllLanes)) return;
  WgmmaGroups& groups = warp.wgmma;
  const auto staying = static_cast<std::uint32_t>(in.immediate);
  if (groups.committed <= staying) return;
  const std::uint32_t awaited = groups.committed - staying;
  if (!warpgroup_has_committed(warp, in, awaited)) return warp.wait_at_warpgroup(in, lanes);
  groups.retired = std::max(groups.retired, awaited);
  for (const auto& each : warp.cta().warpgroup(warp.index())) {
    warp.past.happened.raise(async_of(each->agent()), awaited);
  }
  if (warp.hazards() != nullptr) warp.hazards()->retire(groups.retired);
}

// Decoders ---------------------------------------------------------------------------------------------------------

/// "m64n128k16" -> 128; refuses other forms.
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

bool is_integer(const ElementRow& element) { return element.name == "s8" || element.name == "u8"; }

/// ".d.a.b", in the order they are written.
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

/// The combinations of PTX ISA, wgmma.mma_async.
void check_types(InstructionReader& reader, const WgmmaMode& mode) {
  const ElementRow& a = kElements[mode.a];
  const ElementRow& b = kElements[mode.b];
  const bool mixes = a.bytes == 1 && b.bytes == 1 && is_integer(a) == is_integer(b);
  const bool same = mode.a == mode.b || mixes;
  bool accumulates = mode.accumulator == Accumulator::f32;
  if (a.name == "f16" || (a.bytes == 1 && !is_integer(a))) accumulates |= mode.accumulator == Accumulator::f16;
  if (is_integer(a)) accumulates = mode.accumulator == Accumulator::s32;
  if (!same || !accumulates || (mode.saturates && !is_integer(a))) {
    reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  }
}

/// 1 or -1.
bool is_negative(InstructionReader& reader, const Operand& scale) {
  const auto value = static_cast<std::int64_t>(reader.number(scale));
  if (value != 1 && value != -1) reader.refuse(fmt::format("a scale of {}", value));
  return value == -1;
}

void take_scales(InstructionReader& reader, WgmmaMode& mode) {
  const ElementRow& a = kElements[mode.a];
  if (is_integer(a)) return reader.expect_operands(4);
  const std::size_t transposes = a.bytes != 2 ? 0 : mode.a_in_registers ? 1 : 2;
  reader.expect_operands(6 + transposes);
  mode.negates = is_negative(reader, reader.operand(4)) != is_negative(reader, reader.operand(5));
  if (transposes == 0) return;
  if (transposes == 2) mode.a_mn_major = reader.number(reader.operand(6)) != 0;
  mode.b_mn_major = reader.number(reader.operand(5 + transposes)) != 0;
}

void decode_mma_async(InstructionReader& reader) {
  reader.take("sync");
  reader.take("aligned");
  WgmmaMode mode;
  take_types(reader, mode);
  check_types(reader, mode);
  const int n = take_n(reader, kRowBytes / kElements[mode.a].bytes);
  reader.finish();
  if (is_integer(kElements[mode.a]) && n > 24 && n % 16 != 0) {
    reader.refuse(fmt::format("instruction {}", reader.parsed().opcode));
  }
  mode.n8 = static_cast<std::uint8_t>(n / 8);
  reader.expect_operands(4, 8);
  mode.a_in_registers = reader.operand(1).kind == Operand::Kind::vector;
  const std::vector<Operand> d = reader.elements(reader.operand(0));
  if (static_cast<int>(d.size()) != register_count(mode)) {
    reader.refuse(fmt::format("a fragment of {} registers where {} belong", d.size(), register_count(mode)));
  }
  for (const Operand& one : d) reader.destination(one, PtxType::b32);
  const std::vector<Operand> a = reader.elements(reader.operand(1));
  if (mode.a_in_registers && a.size() != 4) {
    reader.refuse(fmt::format("a fragment of {} registers where 4 belong", a.size()));
  }
  for (const Operand& one : a) reader.source(one, mode.a_in_registers ? PtxType::b32 : PtxType::b64);
  reader.source(reader.operand(2), PtxType::b64);
  reader.predicate_source(reader.operand(3));
  take_scales(reader, mode);
  reader.out().immediate = pack(mode);
  reader.out().registers = RegisterUse::wgmma;
  reader.out().execute = &execute_mma_async;
}

void take_aligned(InstructionReader& reader) {
  reader.take("sync");
  if (!reader.take("aligned")) reader.refuse(fmt::format("{} without .aligned", reader.parsed().opcode));
  reader.finish();
  reader.out().registers = RegisterUse::wgmma;
}

void decode_fence(InstructionReader& reader) {
  take_aligned(reader);
  reader.expect_operands(0);
  reader.out().execute = &execute_fence;
}

void decode_commit_group(InstructionReader& reader) {
  take_aligned(reader);
  reader.expect_operands(0);
  reader.out().execute = &execute_commit_group;
}

void decode_wait_group(InstructionReader& reader) {
  take_aligned(reader);
  reader.expect_operands(1);
  reader.out().immediate = static_cast<std::int64_t>(reader.number(reader.operand(0)) & 7);
  reader.out().execute = &execute_wait_group;
}

constexpr std::array kRowsOfOpcodes = {
    OpcodeRow{"wgmma.mma_async", OperandClass::any, decode_mma_async},
    OpcodeRow{"wgmma.fence", OperandClass::any, decode_fence},
    OpcodeRow{"wgmma.commit_group", OperandClass::any, decode_commit_group},
    OpcodeRow{"wgmma.wait_group", OperandClass::any, decode_wait_group},
};

}  // namespace

std::span<const OpcodeRow> wgmma_opcodes() { return kRowsOfOpcodes; }

}  // namespace tilewright::emulator
