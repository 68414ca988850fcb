// PTX instructions for programs, one function each. Addresses are in bytes: shared addresses are Numbers, global
// addresses are a register with a base and a Number to add. Functions throw InvalidArgument for registers of another
// type, and for instructions that the kernel's target does not have.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.hpp"
#include "tilewright/program/kernel_builder.hpp"

namespace tilewright::program {

// Operands of KernelBuilder::instruction().

Operand output(RegisterType type, int count = 1);
Operand input(const Value& value);
/// Several registers, in braces.
Operand input(std::vector<Value> values);
Operand update(const Value& value);
Operand number(const Number& number, RegisterType type = RegisterType::b32);
/// @throws InvalidArgument unless the number is static
Operand immediate(const Number& number);
Operand address_of(int parameter);

// Global memory.

/// base + offset, one b64.
Value global_address(KernelBuilder& k, const Value& base, const Number& offset);
/// Loads `count` registers: ld.global, with .v2 or .v4 if count is 2 or 4. The address is base + offset.
Value load_global(KernelBuilder& k, const Value& base, const Number& offset, RegisterType type, int count = 1);
void store_global(KernelBuilder& k, const Value& base, const Number& offset, std::vector<Value> values);
/// Loads that are skipped if `holds` is 0; the registers are then 0.
Value load_global_if(KernelBuilder& k, const Number& holds, const Value& base, const Number& offset, RegisterType type,
                     int count = 1);
void store_global_if(KernelBuilder& k, const Number& holds, const Value& base, const Number& offset,
                     std::vector<Value> values);

/// red.global.add of one f32, f64 or b32 (as an integer): adds it to memory, atomically.
void add_global(KernelBuilder& k, const Value& base, const Number& offset, const Value& value);

/// atom.global: the same, and returns what the memory had before. atomic_max() takes one b32, as a signed integer;
/// atomic_cas() stores `value` if the memory has `expected`, both b32.
Value atomic_add(KernelBuilder& k, const Value& base, const Number& offset, const Value& value);
Value atomic_max(KernelBuilder& k, const Value& base, const Number& offset, const Value& value);
Value atomic_cas(KernelBuilder& k, const Value& base, const Number& offset, const Value& expected, const Value& value);

/// Loads one byte to a b32, extended with zeros, or with its sign. Stores the lowest byte of a b32.
Value load_global_byte(KernelBuilder& k, const Value& base, const Number& offset, bool is_signed = false);
void store_global_byte(KernelBuilder& k, const Value& base, const Number& offset, const Value& value);

// Flags among warps of different CTAs: words of 32 bits in global memory, such as those of a workspace, which are 0
// before and after each launch. All lanes of a warp call these functions together.

/// Sets the flag at base + offset when all lanes have come here. Who then sees it also sees what they wrote to memory.
void raise_flag(KernelBuilder& k, const Value& base, const Number& offset);
/// Waits until the flag is set. A warp that raises it must not wait for this one.
void wait_for_flag(KernelBuilder& k, const Value& base, const Number& offset);
/// Clears the flag when all lanes have come here.
void lower_flag(KernelBuilder& k, const Value& base, const Number& offset);

// Shared memory.

/// red.shared.add, as add_global().
void add_shared(KernelBuilder& k, const Number& address, const Value& value);
/// atom.shared, as atomic_add() and the others.
Value atomic_add_shared(KernelBuilder& k, const Number& address, const Value& value);
Value atomic_max_shared(KernelBuilder& k, const Number& address, const Value& value);
Value atomic_cas_shared(KernelBuilder& k, const Number& address, const Value& expected, const Value& value);
Value load_shared_byte(KernelBuilder& k, const Number& address, bool is_signed = false);
void store_shared_byte(KernelBuilder& k, const Number& address, const Value& value);
Value load_shared(KernelBuilder& k, const Number& address, RegisterType type, int count = 1);
void store_shared(KernelBuilder& k, const Number& address, std::vector<Value> values);
/// The same to this address in the CTA of rank `rank` of the cluster: distributed shared memory.
void store_shared_at(KernelBuilder& k, const Number& address, const Number& rank, std::vector<Value> values);
/// ldmatrix of `count` (1, 2, 4) matrices of 8 x 8 elements of 16 bits. Lane l gives the address of row l % 8 of matrix
/// l / 8. `transposes` adds .trans.
Value load_matrices(KernelBuilder& k, const Number& row_address, int count, bool transposes);
/// stmatrix: the inverse of load_matrices. `values` are as many b32 registers as there are matrices.
void store_matrices(KernelBuilder& k, const Number& row_address, std::vector<Value> values, bool transposes);

/// The arrivals that an mbarrier counts at most.
constexpr std::int64_t kMaxArrivals = (1 << 20) - 1;

// Barriers of threads.

/// barrier.sync of all threads of the CTA.
void synchronize(KernelBuilder& k);
/// Lets the kernels that depend on this launch start, as soon as all CTAs have come here or have ended.
void launch_dependents(KernelBuilder& k);
/// barrier.sync and barrier.arrive of named barrier `id`, 1 to 15, with `threads` threads, a multiple of 32. An `id`
/// that is not static is the same in all lanes of a warp.
void named_barrier(KernelBuilder& k, const Number& id, int threads);
void named_barrier_arrive(KernelBuilder& k, int id, int threads);
/// Waits for all threads of the cluster.
void synchronize_cluster(KernelBuilder& k);
/// bar.warp.sync of all lanes.
void synchronize_warp(KernelBuilder& k);

// mbarriers. `barrier` is a shared address, a multiple of 8.

void mbarrier_init(KernelBuilder& k, const Number& barrier, const Number& arrivals);
/// Makes the init visible to the cluster and to the async proxy.
void fence_mbarrier_init(KernelBuilder& k);
void mbarrier_arrive(KernelBuilder& k, const Number& barrier);
/// Arrives, and adds `bytes` to the expect-tx bytes.
void mbarrier_arrive_expect(KernelBuilder& k, const Number& barrier, const Number& bytes);
/// Arrives at the barrier with the same address in the CTA of rank `rank` of the cluster.
void mbarrier_arrive_at(KernelBuilder& k, const Number& barrier, const Number& rank);
/// Waits until the phase of this parity has completed.
void mbarrier_wait(KernelBuilder& k, const Number& barrier, const Number& parity);

// Asynchronous copies.

/// cp.async of 4, 8 or 16 bytes from base + offset to a shared address. With `source_bytes`, only the first of them are
/// read, and the rest are zeros.
void cp_async(KernelBuilder& k, const Number& to, const Value& base, const Number& offset, int bytes,
              const std::optional<Number>& source_bytes = std::nullopt);
/// Lets an arrival at `barrier` follow this thread's earlier cp.async copies: cp.async.mbarrier.arrive.noinc. The
/// barrier counts it as one of its arrivals.
void cp_async_arrive(KernelBuilder& k, const Number& barrier);
void cp_async_commit(KernelBuilder& k);
void cp_async_wait(KernelBuilder& k, int pending);

/// How L2 keeps the lines of a TMA load: a cache policy as createpolicy encodes it, see arch/tma_copy.hpp.
using CachePolicy = std::uint64_t;

/// Starts the load of a box of the tensor map with index `map`, at `coordinates`, innermost first. `barrier` counts its
/// bytes. `ctas`: the box goes to these CTAs of the cluster, as a mask.
void tma_load(KernelBuilder& k, const Number& to, int map, const std::vector<Number>& coordinates,
              const Number& barrier, const std::optional<Number>& ctas = std::nullopt,
              CachePolicy policy = arch::kEvictNormal);
/// Starts the store of a box, in this thread's current bulk group.
void tma_store(KernelBuilder& k, int map, const std::vector<Number>& coordinates, const Number& from);
void tma_store_commit(KernelBuilder& k);
/// Waits until all but `pending` bulk groups of this thread have been read from shared memory.
void tma_store_wait_read(KernelBuilder& k, int pending);
/// prefetch.tensormap
void prefetch_tensor_map(KernelBuilder& k, int map);
/// Orders this thread's accesses to shared memory before later accesses of the async proxy (TMA, wgmma).
void fence_proxy_async(KernelBuilder& k);

// Warpgroups.

void wgmma_fence(KernelBuilder& k);
void wgmma_commit(KernelBuilder& k);
/// Waits until at most `pending` groups of wgmma are pending. `accumulators` are those that the groups write: what
/// reads the cells afterwards reads them after the wait.
void wait_for_wgmma(KernelBuilder& k, int pending, const ValueCells& accumulators);
/// setmaxnreg: `registers` per thread, a multiple of 8 from 24 to 256.
void set_registers(KernelBuilder& k, int registers, bool increases);
/// 1 in one lane of the warp, else 0. All lanes must execute it.
Number elect(KernelBuilder& k);
/// The number of the first lane of the warp, in all lanes. The result is the same in all lanes, which ptxas can see.
Number broadcast(KernelBuilder& k, const Number& number);

// Arithmetic of f32 or f64, rounded to nearest. multiply() and add() are never contracted to fma. add(), subtract(),
// multiply(), minimum(), maximum(), absolute() and comparisons take b32 and b64, too, as integers, whose results wrap.
// Integers are signed unless `is_signed` is false.

Value constant(KernelBuilder& k, float value);
Value constant_f64(KernelBuilder& k, double value);
Value add(KernelBuilder& k, const Value& a, const Value& b);
Value subtract(KernelBuilder& k, const Value& a, const Value& b);
Value multiply(KernelBuilder& k, const Value& a, const Value& b);
/// a * b + c
Value fma(KernelBuilder& k, const Value& a, const Value& b, const Value& c);
Value minimum(KernelBuilder& k, const Value& a, const Value& b, bool is_signed = true);
Value maximum(KernelBuilder& k, const Value& a, const Value& b, bool is_signed = true);
Value divide(KernelBuilder& k, const Value& a, const Value& b);
Value square_root(KernelBuilder& k, const Value& a);
Value absolute(KernelBuilder& k, const Value& a);
/// Comparisons: Numbers that are 1 if they hold and 0 if not. They do not hold for NaNs.
Number less(KernelBuilder& k, const Value& a, const Value& b, bool is_signed = true);
Number less_equal(KernelBuilder& k, const Value& a, const Value& b, bool is_signed = true);
Number equal(KernelBuilder& k, const Value& a, const Value& b);

// Integers and bits of b32 and b64. Results have the type of `a`, unless it says otherwise.

/// The upper half of the product of twice as many bits.
Value multiply_high(KernelBuilder& k, const Value& a, const Value& b, bool is_signed = true);
/// Operate on b16, b32 or b64.
Value bitwise_and(KernelBuilder& k, const Value& a, const Value& b);
Value bitwise_or(KernelBuilder& k, const Value& a, const Value& b);
Value bitwise_xor(KernelBuilder& k, const Value& a, const Value& b);
Value bitwise_not(KernelBuilder& k, const Value& a);
/// Shifts by `count` bits, a b32 that is unsigned; counts above the number of bits shift all bits out. shift_right()
/// fills with the sign, or with zeros if `is_signed` is false.
Value shift_left(KernelBuilder& k, const Value& a, const Value& count);
Value shift_right(KernelBuilder& k, const Value& a, const Value& count, bool is_signed = true);
/// The number of bits that are 1, and of zeros above the highest of them; a b32.
Value population_count(KernelBuilder& k, const Value& a);
Value leading_zeros(KernelBuilder& k, const Value& a);
Value reverse_bits(KernelBuilder& k, const Value& a);
/// `count` bits from bit `first` on, in the low bits, extended with the highest of them, or with zeros if `is_signed`
/// is false. @throws InvalidArgument for bits that `a` does not have
Value extract_bits(KernelBuilder& k, const Value& a, int first, int count, bool is_signed = true);
/// prmt of b32: byte i of the result is byte `s` of a (0 to 3) and b (4 to 7), where s is nibble i of `selectors`.
Value permute_bytes(KernelBuilder& k, const Value& a, const Value& b, const Value& selectors);
/// dp4a of b32: c + the sum of the products of the four bytes of a and of b.
Value dot_bytes(KernelBuilder& k, const Value& a, const Value& b, const Value& c, bool is_signed = true);

// Arithmetic of f32.

/// 1 / a, 2^a, log2(a), tanh(a), 1 / sqrt(a): the .approx instructions.
Value reciprocal(KernelBuilder& k, const Value& a);
Value exp2(KernelBuilder& k, const Value& a);
Value log2(KernelBuilder& k, const Value& a);
Value tanh(KernelBuilder& k, const Value& a);
Value reciprocal_sqrt(KernelBuilder& k, const Value& a);
/// `a` if `condition` is not 0, else `b`.
Value choose(KernelBuilder& k, const Number& condition, const Value& a, const Value& b);
/// Shuffles move one register of any type among all lanes of the warp. The value of lane `lane ^ mask`; `mask` is from
/// 0 to 31.
Value shuffle_xor(KernelBuilder& k, const Value& a, int mask);
/// The value of lane `lane - delta` (up) or `lane + delta` (down), and the own value where there is no such lane.
/// `delta` is from 0 to 31.
Value shuffle_up(KernelBuilder& k, const Value& a, int delta);
Value shuffle_down(KernelBuilder& k, const Value& a, int delta);
/// A b32 whose bit i tells whether the condition holds in lane i; of all lanes of the warp.
Value ballot(KernelBuilder& k, const Number& condition);
/// The value of lane `lane % 32`, which each lane chooses.
Value shuffle(KernelBuilder& k, const Value& a, const Number& lane);

// Registers.

/// The Number in a register: its low 32 or 64 bits.
Value to_b32(KernelBuilder& k, const Number& number);
Value to_b64(KernelBuilder& k, const Number& number);
/// One value of all registers of `values`, which have one type.
Value join_registers(KernelBuilder& k, std::vector<Value> values);

// Conversions, rounded to nearest, of two the even one. Two elements of 16 bits are packed in a b32, two of e4m3 or
// e5m2 in a b16, the first in the low half. One element of 8 bits is in the low byte of a b32. e4m3 and e5m2 need
// sm_89.

Value to_f32(KernelBuilder& k, const Number& number);
/// One element of `type` as an f32: of an f32, of an f64, of a b16 (f16, bf16), of a b32 (s32, s8, u8, e4m3, e5m2).
Value to_f32(KernelBuilder& k, const Value& element, DType type);
/// Two f32 as a pair of f16, bf16, e4m3 or e5m2; values too large for the latter two become the largest one.
Value pack(KernelBuilder& k, DType type, const Value& low, const Value& high);
/// The two f32 of a pair of f16, bf16, e4m3 or e5m2.
std::vector<Value> unpack(KernelBuilder& k, DType type, const Value& pair);
/// One f32 as an element of `type`: an f32, an f64, a b16 (f16, bf16), a b32 (s32, s8, u8, e4m3, e5m2). Integers, e4m3
/// and e5m2 saturate.
Value from_f32(KernelBuilder& k, DType type, const Value& value);

}  // namespace tilewright::program
