// atom and red. CTAs may run on several host threads, so each lane performs one atomic operation on host memory.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "tilewright/emulator/access.hpp"
#include "tilewright/emulator/cluster.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"
#include "tilewright/emulator/instructions/rounding.hpp"

namespace tilewright::emulator {
namespace {

struct Exchange {
  template <class T>
  T operator()(T, T b, T) const {
    return b;
  }
};
struct CompareAndSwap {
  template <class T>
  T operator()(T old, T b, T c) const {
    return old == b ? c : old;
  }
};
struct Add {
  template <class T>
  T operator()(T old, T b, T) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
    } else {
      return canonical(old + b);
    }
  }
};
/// f32 in global memory: subnormal inputs and results become zero (PTX ISA, atom.add.f32).
struct FlushingAdd {
  float operator()(float old, float b, float) const { return canonical(flushed(flushed(old) + flushed(b))); }
};
struct And {
  template <class T>
  T operator()(T old, T b, T) const {
    return old & b;
  }
};
struct Or {
  template <class T>
  T operator()(T old, T b, T) const {
    return old | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T old, T b, T) const {
    return old ^ b;
  }
};
struct Minimum {
  template <class T>
  T operator()(T old, T b, T) const {
    return std::min(old, b);
  }
};
struct Maximum {
  template <class T>
  T operator()(T old, T b, T) const {
    return std::max(old, b);
  }
};
struct Increment {  // wraps to 0 at b
  template <class T>
  T operator()(T old, T b, T) const {
    return old >= b ? T{0} : static_cast<T>(old + 1);
  }
};
struct Decrement {  // wraps to b at 0
  template <class T>
  T operator()(T old, T b, T) const {
    return old == 0 || old > b ? b : static_cast<T>(old - 1);
  }
};

struct AddSmall {
  template <class Small>
  Small operator()(Small a, Small b) const {
    return Small::nearest(a.value() + b.value());
  }
};
/// As the instructions min and max of these types: a NaN operand is ignored if the other one is a number.
template <bool kMaximum>
struct SmallExtremum {
  template <class Small>
  Small operator()(Small a, Small b) const {
    const float x = a.value(), y = b.value();
    if (std::isnan(x) && std::isnan(y)) return {0x7fff};
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? b : a;
    if (x == y) return std::signbit(x) != kMaximum ? a : b;
    return (x < y) != kMaximum ? a : b;
  }
};
/// Combines each of the one or two 16-bit floats of a word.
template <class Small, class Word, class Op>
struct OfHalves {
  Word operator()(Word old, Word b, Word) const {
    Word result = 0;
    for (std::size_t shift = 0; shift < 8 * sizeof(Word); shift += 16) {
      const Small x{static_cast<std::uint16_t>(old >> shift)};
      const Small y{static_cast<std::uint16_t>(b >> shift)};
      result = static_cast<Word>(result | static_cast<Word>(Word{Op()(x, y).bits} << shift));
    }
    return result;
  }
};

/// One lane's atomic operation on host memory. `is_global`: not in shared memory. Returns the old value, and sets
/// `changes` if the new one differs.
template <class T, class Op>
T update(std::byte* at, bool is_global, T operand, T other, bool& changes) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  std::atomic_ref<Bits> memory(*reinterpret_cast<Bits*>(at));
  Bits old = memory.load();
  const auto result = [&] {
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Op, Add>) {
      if (is_global) return FlushingAdd()(std::bit_cast<T>(old), operand, other);
    }
    // f64 in global memory: a NaN is not quieted, and the operand's comes first (measured on an H200 and an H100).
    if constexpr (std::is_same_v<T, double> && std::is_same_v<Op, Add>) {
      if (is_global && std::isnan(operand)) return operand;
      if (is_global && std::isnan(std::bit_cast<T>(old))) return std::bit_cast<T>(old);
    }
    return static_cast<T>(Op()(std::bit_cast<T>(old), operand, other));
  };
  Bits updated;
  do {
    updated = std::bit_cast<Bits>(result());
  } while (!memory.compare_exchange_weak(old, updated));
  changes |= updated != old;
  return std::bit_cast<T>(old);
}

/// An atomic that leaves global memory as it is may be a poll, such as atomicAdd(p, 0) or a compare-and-swap that
/// fails. Others are events that threads may wait for.
void note_atomic(Warp& warp, const Instruction& in, Mask lanes, const LanePointers& at, bool changes) {
  const Mask global = lanes & ~at.shared;
  if (changes || global == 0) {
    warp.cta().cluster().note_event();
  } else {
    warp.note_global_poll(in, global, at.address[std::countr_zero(global)]);
  }
}

/// Operands: d, address, b, c; c is b for operations with one source. element_bytes: bit 0
/// whether it has .release or .acq_rel, above it the MemoryScope. Of a vector (in.elements), the elements of d, the
/// address, those of b; each element is updated by itself.
template <class T, class Op>
void execute_atomic(Warp& warp, const Instruction& in, Mask lanes) {
  LanePointers at;
  constexpr bool kReads = !std::is_same_v<Op, Exchange>;
  at.releases = (in.element_bytes & 1) != 0;
  at.scope = static_cast<MemoryScope>(in.element_bytes >> 1);
  const std::size_t elements = in.elements;
  resolve(warp, in, lanes, static_cast<Space>(in.mode), 0, sizeof(T) * elements,
          kReads ? AccessKind::strong_update : AccessKind::strong_write, at);
  bool changes = false;
  for (std::size_t i = 0; i < elements; ++i) {
    T* const d = warp.reg<T>(in.op[i]);
    const T* const b = warp.reg<T>(in.op[elements + 1 + i]);
    const T* const c = elements == 1 ? warp.reg<T>(in.op[3]) : b;
    for (Mask left = lanes; left != 0; left &= left - 1) {
      const int l = std::countr_zero(left);
      // Addresses in shared memory, without the window of the generic space, have at most 32 bits.
      d[l] = update<T, Op>(at.at[l] + i * sizeof(T), at.address[l] >> 32 != 0, b[l], c[l], changes);
    }
  }
  note_atomic(warp, in, lanes, at, changes);
}

/// atom.b128: cas and exch. Operands: d, address, b, c; c is b for exch.
/// One mutex serialises all of them, as not all hosts have such an instruction.
template <bool kCompares>
void execute_atomic_quadword(Warp& warp, const Instruction& in, Mask lanes) {
  static std::mutex mutex;
  LanePointers at;
  at.releases = (in.element_bytes & 1) != 0;
  at.scope = static_cast<MemoryScope>(in.element_bytes >> 1);
  resolve(warp, in, lanes, static_cast<Space>(in.mode), 0, sizeof(Quadword),
          kCompares ? AccessKind::strong_update : AccessKind::strong_write, at);
  bool changes = false;
  auto* const d = warp.reg<Quadword>(in.op[0]);
  const auto* const b = warp.reg<Quadword>(in.op[2]);
  const auto* const c = warp.reg<Quadword>(in.op[3]);
  const std::lock_guard lock(mutex);
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const Quadword expected = b[l], desired = c[l];
    Quadword old;
    std::memcpy(&old, at.at[l], sizeof(old));
    if (!kCompares || (old.low == expected.low && old.high == expected.high)) {
      std::memcpy(at.at[l], &desired, sizeof(desired));
      changes |= old.low != desired.low || old.high != desired.high;
    }
    d[l] = old;
  }
  note_atomic(warp, in, lanes, at, changes);
}

enum class Operation : std::uint8_t { bitwise_and, bitwise_or, bitwise_xor, exch, cas, add, inc, dec, min, max };

template <class T>
Handler integer_handler(Operation operation) {
  switch (operation) {
    case Operation::bitwise_and:
      return &execute_atomic<T, And>;
    case Operation::bitwise_or:
      return &execute_atomic<T, Or>;
    case Operation::bitwise_xor:
      return &execute_atomic<T, Xor>;
    case Operation::exch:
      return &execute_atomic<T, Exchange>;
    case Operation::cas:
      return &execute_atomic<T, CompareAndSwap>;
    case Operation::add:
      return &execute_atomic<T, Add>;
    case Operation::inc:
      return &execute_atomic<T, Increment>;
    case Operation::dec:
      return &execute_atomic<T, Decrement>;
    case Operation::min:
      return &execute_atomic<T, Minimum>;
    case Operation::max:
      return &execute_atomic<T, Maximum>;
  }
  return nullptr;
}

template <class Small, class Word>
Handler small_handler(Operation operation) {
  switch (operation) {
    case Operation::add:
      return &execute_atomic<Word, OfHalves<Small, Word, AddSmall>>;
    case Operation::min:
      return &execute_atomic<Word, OfHalves<Small, Word, SmallExtremum<false>>>;
    case Operation::max:
      return &execute_atomic<Word, OfHalves<Small, Word, SmallExtremum<true>>>;
    default:
      return nullptr;
  }
}

Handler handler_of(PtxType type, Operation operation) {
  const bool adds = operation == Operation::add;
  switch (type) {
    case PtxType::b16:
      return operation == Operation::cas || operation == Operation::exch ? integer_handler<std::uint16_t>(operation)
                                                                         : nullptr;
    case PtxType::b32:
    case PtxType::u32:
      return integer_handler<std::uint32_t>(operation);
    case PtxType::s32:
      return integer_handler<std::int32_t>(operation);
    case PtxType::b64:
    case PtxType::u64:
      return integer_handler<std::uint64_t>(operation);
    case PtxType::s64:
      return integer_handler<std::int64_t>(operation);
    case PtxType::b128:
      if (operation == Operation::cas) return &execute_atomic_quadword<true>;
      return operation == Operation::exch ? &execute_atomic_quadword<false> : nullptr;
    case PtxType::f32:
      return adds ? &execute_atomic<float, Add> : nullptr;
    case PtxType::f64:
      return adds ? &execute_atomic<double, Add> : nullptr;
    case PtxType::f16:
      return small_handler<F16, std::uint16_t>(operation);
    case PtxType::bf16:
      return small_handler<BF16, std::uint16_t>(operation);
    case PtxType::f16x2:
      return small_handler<F16, std::uint32_t>(operation);
    case PtxType::bf16x2:
      return small_handler<BF16, std::uint32_t>(operation);
    default:
      return nullptr;
  }
}

/// Whether there are vectors of this many elements: of f32 and of 16-bit floats, up to 16 bytes.
bool is_vector_type(PtxType type, std::size_t elements) {
  const bool is_float = type == PtxType::f32 || type_class(type) == TypeClass::small_float;
  return elements == 1 || (is_float && elements * static_cast<std::size_t>(bytes(type)) <= 16);
}

void decode(InstructionReader& reader, bool returns) {
  const bool releases = reader.take_one_of({"relaxed", "acquire", "release", "acq_rel"}) >= 2;
  const MemoryScope scope = reader.memory_scope();
  Space space = Space::generic;
  if (reader.take("global")) {
    space = Space::global;
  } else if (reader.take("shared") || reader.take("shared::cta") || reader.take("shared::cluster")) {
    space = Space::shared;
  }
  const int operation = reader.take_one_of({"and", "or", "xor", "exch", "cas", "add", "inc", "dec", "min", "max"});
  if (operation < 0) reader.refuse("this atomic operation");
  reader.take("noftz");
  const bool hint = reader.take("L2::cache_hint");
  const std::size_t elements = std::size_t{1} << (reader.take_one_of({"v2", "v4", "v8"}) + 1);
  const PtxType type = reader.type();
  reader.finish();
  const Handler handler = handler_of(type, static_cast<Operation>(operation));
  if (handler == nullptr || !is_vector_type(type, elements))
    reader.refuse(fmt::format("this atomic operation on .{}", name(type)));
  const bool two_sources = static_cast<Operation>(operation) == Operation::cas;
  const std::size_t first = returns ? 1 : 0;
  reader.expect_operands(first + (two_sources ? 3U : 2U) + (hint ? 1U : 0U));
  const std::vector<Operand> destinations =
      returns ? reader.elements(reader.operand(0)) : std::vector<Operand>(elements);
  const std::vector<Operand> sources = reader.elements(reader.operand(first + 1));
  if (destinations.size() != elements || sources.size() != elements)
    reader.refuse("a vector operand whose length differs from the instruction's");
  for (const Operand& each : destinations) reader.destination(each, type);
  reader.address(reader.operand(first), space);
  reader.out().is_atomic = true;
  for (const Operand& each : sources) reader.source(each, type);
  if (elements == 1) reader.source(reader.operand(first + (two_sources ? 2 : 1)), type);
  reader.out().mode = static_cast<std::uint8_t>(space);
  reader.out().elements = static_cast<std::uint8_t>(elements);
  reader.out().element_bytes = static_cast<std::uint8_t>((releases ? 1 : 0) | static_cast<int>(scope) << 1);
  reader.out().execute = handler;
}

void decode_atom(InstructionReader& reader) { decode(reader, true); }
void decode_red(InstructionReader& reader) { decode(reader, false); }

constexpr std::array kOpcodes = {
    OpcodeRow{"atom", OperandClass::any, decode_atom},
    OpcodeRow{"red", OperandClass::any, decode_red},
};

}  // namespace

std::span<const OpcodeRow> atomic_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
