// Accesses of bulk copies through the async proxy, and the element operations of cp.reduce.
#include "tilewright/emulator/instructions/async_copy.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tilewright/base/interruption.hpp"
#include "tilewright/emulator/global_shadow.hpp"
#include "tilewright/emulator/instructions/rounding.hpp"
#include "tilewright/emulator/written_tensor_maps.hpp"

namespace tilewright::emulator {

/// Bytes of a copy that are looked up in the shadow of global memory together.
constexpr std::uint32_t kPiece = 64;

AsyncCopy::AsyncCopy(Warp& warp, const Instruction& in, int lane, const Mbarrier* completes_on)
    : warp_(warp), in_(in), lane_(lane), accessor_(warp.accessor(in, lane)) {
  check_interruption();  // one instruction may copy 227 KiB to 16 CTAs, for each of 32 lanes
  if (completes_on != nullptr) {
    accessor_.agent = async_of(completes_on->agent);
    accessor_.clock = completes_on->copies_clock();
    return;
  }
  if (warp.bulk_groups.empty()) warp.bulk_groups.resize(kWarpSize);
  BulkGroups& groups = warp.bulk_groups[static_cast<std::size_t>(lane)];
  groups.open = true;
  groups.code = accessor_.code;
  accessor_.agent = async_of(warp.cta().bulk_agent(warp.index() * kWarpSize + lane));
  accessor_.clock = groups.committed + 1;
}

void AsyncCopy::report(const SharedLocation& location, std::uint32_t bytes, std::string_view verb,
                       SharedVerdict verdict) {
  if (verdict != SharedVerdict::ok) report_shared(warp_, in_, lane_, location, bytes, verb, verdict);
}

void AsyncCopy::check_inside(const SharedLocation& location, std::uint32_t bytes, std::string_view verb) {
  if (location.cta->shared().contains(location.address, bytes)) return;
  warp_.fail(FindingKind::out_of_bounds_shared, in_, lane_, location.address,
             fmt::format("{} of {} bytes at shared address {:#x}{}, which belongs to no shared variable", verb, bytes,
                         location.address, location.cta->describe_shared(location.address)));
}

void AsyncCopy::write_shared(const SharedLocation& to, const std::byte* from, std::uint32_t bytes, Proxy proxy) {
  SharedMemory& shared = to.cta->shared();
  check_inside(to, bytes, "bulk write");
  if (shared.shadowed()) {
    const SharedVerdict verdict = proxy == Proxy::async
                                      ? shared.async_write(warp_.clocks, accessor_, to.address, bytes)
                                      : shared.write(warp_.clocks.ordered, accessor_, to.address, bytes);
    report(to, bytes, "bulk write", verdict);
  }
  std::memcpy(shared.at(to.address), from, bytes);
  if (to.cta != &warp_.cta()) to.cta->note_remote_access(warp_.clocks.ordered, accessor_);
}

void AsyncCopy::follow_undefined(const SharedLocation& to, std::uint64_t from, std::uint32_t bytes) {
  GlobalShadow* const shadow = warp_.cta().launch().global_shadow;
  if (shadow == nullptr || !to.cta->shared().shadowed()) return;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if (i % kPiece == 0 && !shadow->is_any_undefined(warp_, from + i, std::min(kPiece, bytes - i))) {
      i += kPiece - 1;
    } else if (const std::uint8_t bits = shadow->undefined_bits(warp_, from + i); bits != 0) {
      to.cta->shared().mark_undefined_bits(to.address + i, bits);
    }
  }
}

const std::byte* AsyncCopy::read_shared(const SharedLocation& from, std::uint32_t bytes) {
  SharedMemory& shared = from.cta->shared();
  check_inside(from, bytes, "bulk read");
  if (shared.shadowed())
    report(from, bytes, "bulk read", shared.async_read(warp_.clocks, accessor_, from.address, bytes));
  return shared.at(from.address);
}

void AsyncCopy::use_tensor_map(std::uint64_t address) {
  warp_.cta().launch().tensor_maps->note_copy(warp_, address, accessor_);
}

std::byte* AsyncCopy::write_global(std::uint64_t address, std::uint64_t bytes, std::string_view verb,
                                   bool is_reduction) {
  check_global(address, bytes, verb);
  const Launch& launch = warp_.cta().launch();
  if (is_reduction && launch.global_shadow != nullptr)
    launch.global_shadow->check_async_read(warp_, in_, lane_, address, bytes, verb);
  if (launch.global_shadow != nullptr) launch.global_shadow->mark_defined(warp_, address, bytes, !is_reduction);
  if ((launch.footprint != nullptr || launch.early != nullptr) && launch.global_shadow != nullptr)
    launch.global_shadow->note_async(warp_, address, bytes, true);
  return reinterpret_cast<std::byte*>(address);
}

const std::byte* AsyncCopy::read_global(std::uint64_t address, std::uint64_t bytes, std::string_view verb) {
  check_global(address, bytes, verb);
  const Launch& launch = warp_.cta().launch();
  if ((launch.footprint != nullptr || launch.early != nullptr) && launch.global_shadow != nullptr)
    launch.global_shadow->note_async(warp_, address, bytes, false);
  if (launch.global_shadow != nullptr) launch.global_shadow->check_async_read(warp_, in_, lane_, address, bytes, verb);
  return reinterpret_cast<std::byte*>(address);
}

void AsyncCopy::check_global(std::uint64_t address, std::uint64_t bytes, std::string_view verb) const {
  const RegionMap& regions = warp_.cta().launch().regions;
  if (regions.find(address, bytes) == nullptr) {
    warp_.fail(
        FindingKind::out_of_bounds_global, in_, lane_, address,
        fmt::format("{} of {} bytes at global address {:#x} ({})", verb, bytes, address, regions.describe(address)));
  }
}

void complete_on(Warp& warp, const Instruction& in, int lane, const MbarrierObject& at, std::uint64_t bytes,
                 Proxy proxy) {
  if (proxy == Proxy::async) check_init_is_fenced(warp, in, lane, at);
  finish_mbarrier(warp, in, lane, at, complete_tx(*at.barrier, bytes));
}

void check_multicast(Warp& warp, const Instruction& in, int lane, std::uint32_t mask) {
  const auto size = static_cast<std::uint32_t>(warp.cta().cluster().size());
  if (mask != 0 && mask >> size == 0) return;
  warp.fail(FindingKind::bad_descriptor, in, lane, 0,
            fmt::format("a multicast CTA mask of {:#x} in a cluster of {} CTAs", mask, size));
}

// Reductions -------------------------------------------------------------------------------------------------------

namespace {

template <class T, class Op>
void reduce_element(std::byte* memory, const std::byte* operand) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  T b;
  std::memcpy(&b, operand, sizeof(b));
  // Atomic on the host, as CTAs may run on several host threads.
  std::atomic_ref<Bits> at(*reinterpret_cast<Bits*>(memory));
  Bits old = at.load();
  while (!at.compare_exchange_weak(old, std::bit_cast<Bits>(Op()(std::bit_cast<T>(old), b)))) {
  }
}

/// f(a, b); 16-bit floats are computed in f32 and rounded.
template <class T, class F>
T apply(T a, T b, F&& f) {
  if constexpr (kIsSmallFloat<T>) {
    return T::nearest(f(a.value(), b.value()));
  } else {
    return static_cast<T>(f(a, b));
  }
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return apply(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    return apply(a, b, [](auto x, auto y) { return std::isnan(static_cast<double>(x)) || y < x ? y : x; });
  }
};
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    return apply(a, b, [](auto x, auto y) { return std::isnan(static_cast<double>(x)) || x < y ? y : x; });
  }
};
struct Increment {  // wraps to 0 at b
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a >= b ? 0 : a + 1; }
};
struct Decrement {  // wraps to b at 0
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a == 0 || a > b ? b : a - 1; }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

template <class T>
ReduceElement min_max_reduction(Reduction reduction) {
  switch (reduction) {
    case Reduction::min:
      return &reduce_element<T, Minimum>;
    case Reduction::max:
      return &reduce_element<T, Maximum>;
    default:
      return nullptr;
  }
}

template <class T>
ReduceElement bitwise_reduction(Reduction reduction) {
  switch (reduction) {
    case Reduction::bitwise_and:
      return &reduce_element<T, And>;
    case Reduction::bitwise_or:
      return &reduce_element<T, Or>;
    case Reduction::bitwise_xor:
      return &reduce_element<T, Xor>;
    default:
      return nullptr;
  }
}

template <class T>
ReduceElement arithmetic_reduction(Reduction reduction) {
  if (reduction == Reduction::add) return &reduce_element<T, Add>;
  if constexpr (std::is_integral_v<T>) {
    if (ReduceElement bits = bitwise_reduction<T>(reduction)) return bits;
  }
  return min_max_reduction<T>(reduction);
}

}  // namespace

ReduceElement find_reduction(PtxType type, Reduction reduction) {
  switch (type) {
    case PtxType::u32:
      if (reduction == Reduction::inc) return &reduce_element<std::uint32_t, Increment>;
      if (reduction == Reduction::dec) return &reduce_element<std::uint32_t, Decrement>;
      return arithmetic_reduction<std::uint32_t>(reduction);
    case PtxType::b32:
      return bitwise_reduction<std::uint32_t>(reduction);
    case PtxType::s32:
      return arithmetic_reduction<std::int32_t>(reduction);
    case PtxType::u64:
      return arithmetic_reduction<std::uint64_t>(reduction);
    case PtxType::b64:
      return bitwise_reduction<std::uint64_t>(reduction);
    case PtxType::s64:
      return arithmetic_reduction<std::int64_t>(reduction);
    case PtxType::f16:
      return arithmetic_reduction<F16>(reduction);
    case PtxType::bf16:
      return arithmetic_reduction<BF16>(reduction);
    case PtxType::f32:
      return reduction == Reduction::add ? &reduce_element<float, Add> : nullptr;
    case PtxType::f64:
      return reduction == Reduction::add ? &reduce_element<double, Add> : nullptr;
    default:
      return nullptr;
  }
}

Reduction take_reduction(InstructionReader& reader) {
  const int reduction = reader.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  if (reduction < 0) reader.refuse("this reduction operation");
  return static_cast<Reduction>(reduction);
}

}  // namespace tilewright::emulator
