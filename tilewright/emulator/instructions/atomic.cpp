// atom and red. CTAs may run on several host threads, so each lane performs one atomic operation on host memory.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>

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

/// Adds the one or two 16-bit floats of a word.
template <class Small, class Word>
struct AddSmall {
  Word operator()(Word old, Word b, Word) const {
    Word sum = 0;
    for (std::size_t shift = 0; shift < 8 * sizeof(Word); shift += 16) {
      const Small x{static_cast<std::uint16_t>(old >> shift)};
      const Small y{static_cast<std::uint16_t>(b >> shift)};
      sum = static_cast<Word>(sum | static_cast<Word>(Word{Small::nearest(x.value() + y.value()).bits} << shift));
    }
    return sum;
  }
};

/// Operands: d, address, b, c; c is b for operations with one source. elements: whether it has .release or .acq_rel.
template <class T, class Op>
void execute_atomic(Warp& warp, const Instruction& in, Mask lanes) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  LanePointers at;
  constexpr bool kReads = !std::is_same_v<Op, Exchange>;
  at.releases = in.elements != 0;
  resolve(warp, in, lanes, static_cast<Space>(in.mode), 0, sizeof(T),
          kReads ? AccessKind::strong_update : AccessKind::strong_write, at);
  warp.cta().cluster().note_event();
  T* const d = warp.reg<T>(in.op[0]);
  const T* const b = warp.reg<T>(in.op[2]);
  const T* const c = warp.reg<T>(in.op[3]);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    std::atomic_ref<Bits> memory(*reinterpret_cast<Bits*>(at.at[l]));
    const T operand = b[l];
    // Addresses in shared memory, without the window of the generic space, have at most 32 bits.
    constexpr bool kFlushes = std::is_same_v<T, float> && std::is_same_v<Op, Add>;
    const bool flushes = kFlushes && at.address[l] >> 32 != 0;
    const T other = c[l];
    Bits old = memory.load();
    const auto result = [&] {
      if constexpr (kFlushes) {
        if (flushes) return FlushingAdd()(std::bit_cast<T>(old), operand, other);
      }
      // f64 in global memory: a NaN is not quieted (measured on an H200).
      if constexpr (std::is_same_v<T, double> && std::is_same_v<Op, Add>) {
        if (at.address[l] >> 32 != 0 && std::isnan(std::bit_cast<T>(old))) return std::bit_cast<T>(old);
        if (at.address[l] >> 32 != 0 && std::isnan(operand)) return operand;
      }
      return static_cast<T>(Op()(std::bit_cast<T>(old), operand, other));
    };
    while (!memory.compare_exchange_weak(old, std::bit_cast<Bits>(result()))) {
    }
    d[l] = std::bit_cast<T>(old);
  }
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

Handler float_handler(PtxType type) {
  switch (type) {
    case PtxType::f32:
      return &execute_atomic<float, Add>;
    case PtxType::f64:
      return &execute_atomic<double, Add>;
    case PtxType::f16:
      return &execute_atomic<std::uint16_t, AddSmall<F16, std::uint16_t>>;
    case PtxType::bf16:
      return &execute_atomic<std::uint16_t, AddSmall<BF16, std::uint16_t>>;
    case PtxType::f16x2:
      return &execute_atomic<std::uint32_t, AddSmall<F16, std::uint32_t>>;
    case PtxType::bf16x2:
      return &execute_atomic<std::uint32_t, AddSmall<BF16, std::uint32_t>>;
    default:
      return nullptr;
  }
}

Handler handler_of(PtxType type, Operation operation) {
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
    default:
      return operation == Operation::add ? float_handler(type) : nullptr;
  }
}

void decode(InstructionReader& reader, bool returns) {
  const bool releases = reader.take_one_of({"relaxed", "acquire", "release", "acq_rel"}) >= 2;
  reader.take_one_of({"cta", "cluster", "gpu", "sys"});
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
  const PtxType type = reader.type();
  reader.finish();
  const Handler handler = handler_of(type, static_cast<Operation>(operation));
  if (handler == nullptr) reader.refuse(fmt::format("this atomic operation on .{}", name(type)));
  const bool two_sources = static_cast<Operation>(operation) == Operation::cas;
  const std::size_t first = returns ? 1 : 0;
  reader.expect_operands(first + (two_sources ? 3U : 2U) + (hint ? 1U : 0U));
  reader.destination(returns ? reader.operand(0) : Operand(), type);
  reader.address(reader.operand(first), space);
  reader.source(reader.operand(first + 1), type);
  reader.source(reader.operand(first + (two_sources ? 2 : 1)), type);
  reader.out().mode = static_cast<std::uint8_t>(space);
  reader.out().elements = releases ? 1 : 0;
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
