// The functions of program/instructions.hpp, with the same names and arguments.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/bindings/arguments.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/number.hpp"
#include "python/bindings/program.hpp"
#include "tilewright/program/instructions.hpp"
#include "tilewright/program/roles.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {

using layout::Number;
using program::KernelBuilder;
using program::Value;
using program::ValueCells;
using Values = std::vector<Value>;

namespace {

void bind_operands(nb::module_& module) {
  module.def(
      "output", [](const Text& type, int count) { return program::output(read_register_type(type), count); }, "type"_a,
      "count"_a = 1, "Registers that the instruction defines.");
  module.def(
      "input", [](const Value& value) { return program::input(value); }, "value"_a,
      "Registers that the instruction reads.");
  module.def(
      "input", [](const Values& values) { return program::input(values); }, "values"_a,
      "Several registers, in braces.");
  module.def("update", &program::update, "value"_a, "Registers that the instruction reads and replaces.");
  module.def(
      "number",
      [](const Number& number, const Text& type) { return program::number(number, read_register_type(type)); },
      "number"_a, "type"_a = "b32", "A register with a Number.");
  module.def("immediate", &program::immediate, "number"_a, "A static Number, as a part of the text.");
  module.def("address_of", &program::address_of, "parameter"_a, "The generic address of a parameter, by its index.");
}

void bind_memory(nb::module_& module) {
  module.def("global_address", &program::global_address, "k"_a, "base"_a, "offset"_a, "base + offset, one b64.");
  module.def(
      "load_global",
      [](KernelBuilder& k, const Value& base, const Number& offset, const Text& type, int count) {
        return program::load_global(k, base, offset, read_register_type(type), count);
      },
      "k"_a, "base"_a, "offset"_a, "type"_a, "count"_a = 1,
      "Loads `count` registers (1, 2 or 4) from base + offset, in bytes.");
  module.def("store_global", &program::store_global, "k"_a, "base"_a, "offset"_a, "values"_a,
             "Stores the registers of `values` (1, 2 or 4) at base + offset, in bytes: st.global.");
  module.def(
      "load_global_if",
      [](KernelBuilder& k, const Number& holds, const Value& base, const Number& offset, const Text& type, int count) {
        return program::load_global_if(k, holds, base, offset, read_register_type(type), count);
      },
      "k"_a, "holds"_a, "base"_a, "offset"_a, "type"_a, "count"_a = 1,
      "A load that is skipped if `holds` is 0; the registers are then 0.");
  module.def("store_global_if", &program::store_global_if, "k"_a, "holds"_a, "base"_a, "offset"_a, "values"_a,
             "A store that is skipped if `holds` is 0.");
  module.def(
      "load_shared",
      [](KernelBuilder& k, const Number& address, const Text& type, int count) {
        return program::load_shared(k, address, read_register_type(type), count);
      },
      "k"_a, "address"_a, "type"_a, "count"_a = 1, "Loads `count` registers (1, 2 or 4) from a shared address.");
  module.def("store_shared", &program::store_shared, "k"_a, "address"_a, "values"_a,
             "Stores the registers of `values` (1, 2 or 4) at a shared address: st.shared.");
  module.def("add_global", &program::add_global, "k"_a, "base"_a, "offset"_a, "value"_a,
             "Adds one f32, f64 or b32 (an integer) to memory, atomically: red.global.add.");
  module.def(
      "raise_flag", &program::raise_flag, "k"_a, "base"_a, "offset"_a,
      "Sets a flag, a word of 32 bits at base + offset, when all lanes of the warp have come here. Who then sees it "
      "also sees what they wrote to memory.");
  module.def("wait_for_flag", &program::wait_for_flag, "k"_a, "base"_a, "offset"_a,
             "Waits until a flag is set; by all lanes of the warp.");
  module.def("lower_flag", &program::lower_flag, "k"_a, "base"_a, "offset"_a,
             "Clears a flag when all lanes of the warp have come here.");
  module.def("add_shared", &program::add_shared, "k"_a, "address"_a, "value"_a,
             "add_global() to a shared address: red.shared.add.");
  module.def("atomic_add", &program::atomic_add, "k"_a, "base"_a, "offset"_a, "value"_a,
             "add_global() that returns what the memory had before: atom.global.add.");
  module.def(
      "atomic_max", &program::atomic_max, "k"_a, "base"_a, "offset"_a, "value"_a,
      "The greater of the memory and one b32, as signed integers, atomically; returns what the memory had before.");
  module.def("atomic_cas", &program::atomic_cas, "k"_a, "base"_a, "offset"_a, "expected"_a, "value"_a,
             "Stores the b32 `value` if the memory has the b32 `expected`, atomically; returns what the memory had "
             "before.");
  module.def("atomic_add_shared", &program::atomic_add_shared, "k"_a, "address"_a, "value"_a,
             "atomic_add() at a shared address.");
  module.def("atomic_max_shared", &program::atomic_max_shared, "k"_a, "address"_a, "value"_a,
             "atomic_max() at a shared address.");
  module.def("atomic_cas_shared", &program::atomic_cas_shared, "k"_a, "address"_a, "expected"_a, "value"_a,
             "atomic_cas() at a shared address.");
  module.def("load_global_byte", &program::load_global_byte, "k"_a, "base"_a, "offset"_a, "is_signed"_a = false,
             "Loads one byte from base + offset to a b32, extended with zeros, or with its sign.");
  module.def("store_global_byte", &program::store_global_byte, "k"_a, "base"_a, "offset"_a, "value"_a,
             "Stores the lowest byte of a b32 at base + offset.");
  module.def("load_shared_byte", &program::load_shared_byte, "k"_a, "address"_a, "is_signed"_a = false,
             "load_global_byte() from a shared address.");
  module.def("store_shared_byte", &program::store_shared_byte, "k"_a, "address"_a, "value"_a,
             "store_global_byte() at a shared address.");
  module.def("store_shared_at", &program::store_shared_at, "k"_a, "address"_a, "rank"_a, "values"_a,
             "store_shared() to this address in the CTA of rank `rank` of the cluster.");
  module.def("load_matrices", &program::load_matrices, "k"_a, "row_address"_a, "count"_a, "transposes"_a = false,
             "ldmatrix of 1, 2 or 4 matrices of 8 x 8 elements of 16 bits. Lane l gives the address of row l % 8 of "
             "matrix l / 8.");
  module.def("store_matrices", &program::store_matrices, "k"_a, "row_address"_a, "values"_a, "transposes"_a = false,
             "stmatrix: the inverse of load_matrices.");
}

void bind_synchronisation(nb::module_& module) {
  module.def("synchronize", &program::synchronize, "k"_a, "barrier.sync of all threads of the CTA.");
  module.def("launch_dependents", &program::launch_dependents, "k"_a,
             "Lets the kernels that depend on this launch start, as soon as all CTAs have come here or have ended.");
  module.def("named_barrier", &program::named_barrier, "k"_a, "id"_a, "threads"_a,
             "barrier.sync of named barrier `id`, 1 to 15, with `threads` threads, a multiple of 32.");
  module.def("named_barrier_arrive", &program::named_barrier_arrive, "k"_a, "id"_a, "threads"_a,
             "barrier.arrive of named barrier `id`: arrives without waiting. `threads` are all that arrive or wait.");
  module.def("synchronize_cluster", &program::synchronize_cluster, "k"_a, "Waits for all threads of the cluster.");
  module.def("synchronize_warp", &program::synchronize_warp, "k"_a, "bar.warp.sync of all lanes.");
  module.def(
      "mbarrier_init", &program::mbarrier_init, "k"_a, "barrier"_a, "arrivals"_a,
      "Initialises the mbarrier at the shared address `barrier`, whose phases complete after `arrivals` arrivals. One "
      "thread does it, then fence_mbarrier_init(); a barrier must come before other threads use it.");
  module.def("fence_mbarrier_init", &program::fence_mbarrier_init, "k"_a,
             "Makes the init visible to the cluster and to the async proxy.");
  module.def("mbarrier_arrive", &program::mbarrier_arrive, "k"_a, "barrier"_a,
             "One arrival of each thread that executes it.");
  module.def("mbarrier_arrive_expect", &program::mbarrier_arrive_expect, "k"_a, "barrier"_a, "bytes"_a,
             "Arrives, and adds `bytes` to the expect-tx bytes.");
  module.def("mbarrier_arrive_at", &program::mbarrier_arrive_at, "k"_a, "barrier"_a, "rank"_a,
             "Arrives at the barrier with the same address in the CTA of rank `rank` of the cluster.");
  module.def("mbarrier_wait", &program::mbarrier_wait, "k"_a, "barrier"_a, "parity"_a,
             "Waits until the phase of this parity has completed.");
}

void bind_asynchronous(nb::module_& module) {
  module.def("cp_async", &program::cp_async, "k"_a, "to"_a, "base"_a, "offset"_a, "bytes"_a,
             "source_bytes"_a = nb::none(),
             "cp.async of 4, 8 or 16 bytes from base + offset to a shared address. With `source_bytes`, only the first "
             "of them are read, and the rest are zeros.");
  module.def("cp_async_arrive", &program::cp_async_arrive, "k"_a, "barrier"_a,
             "Lets an arrival at `barrier` follow this thread's earlier cp.async copies.");
  module.def("cp_async_commit", &program::cp_async_commit, "k"_a,
             "Ends the current group of cp.async copies of this thread.");
  module.def("cp_async_wait", &program::cp_async_wait, "k"_a, "pending"_a,
             "Waits until at most the newest `pending` groups of cp.async copies of this thread are not complete.");
  module.def("tma_load", &program::tma_load, "k"_a, "to"_a, "map"_a, "coordinates"_a, "barrier"_a,
             "ctas"_a = nb::none(), "policy"_a = arch::kEvictNormal,
             "Starts the load of a box of the tensor map with index `map`, at `coordinates`, innermost first.");
  module.def("tma_store", &program::tma_store, "k"_a, "map"_a, "coordinates"_a, "source"_a,
             "Starts the store of a box, in this thread's current bulk group.");
  module.def("tma_store_commit", &program::tma_store_commit, "k"_a,
             "Ends the current bulk group of this thread, which has its TMA stores.");
  module.def("tma_store_wait_read", &program::tma_store_wait_read, "k"_a, "pending"_a,
             "Waits until all but `pending` bulk groups of this thread have been read from shared memory.");
  module.def("prefetch_tensor_map", &program::prefetch_tensor_map, "k"_a, "map"_a,
             "Prefetches the tensor map with index `map`, before its first use by TMA.");
  module.def("fence_proxy_async", &program::fence_proxy_async, "k"_a,
             "Orders this thread's accesses to shared memory before later accesses of TMA and wgmma.");
  module.def("wgmma_fence", &program::wgmma_fence, "k"_a,
             "Orders accesses of registers before the wgmma that follow: wgmma.fence.");
  module.def("wgmma_commit", &program::wgmma_commit, "k"_a, "Ends the current group of wgmma.");
  module.def(
      "wait_for_wgmma", &program::wait_for_wgmma, "k"_a, "pending"_a, "accumulators"_a,
      "Waits until at most `pending` groups of wgmma are pending. `accumulators` are the cells that they write.");
  module.def("set_registers", &program::set_registers, "k"_a, "registers"_a, "increases"_a,
             "setmaxnreg: changes the number of registers that each thread of the warpgroup may use.");
  module.def("elect", &program::elect, "k"_a, "1 in one lane of the warp, else 0. All lanes must execute it.");
  module.def("broadcast", &program::broadcast, "k"_a, "number"_a, "The number of the first lane of the warp.");
  module.def("assume", &program::assume, "k"_a, "number"_a, "count"_a, "divisor"_a = 1,
             "`number`, known to be from 0 to count - 1 and a multiple of `divisor` for a reason that its expression "
             "does not say.");
}

/// The operands of an instruction, of which Python numbers are constants of the type of the first Value.
std::vector<Value> read_values(KernelBuilder& k, std::string_view function,
                               const std::vector<std::pair<std::string_view, nb::handle>>& given) {
  const auto is_number = [](nb::handle each) {
    return (nb::isinstance<nb::float_>(each) || nb::isinstance<nb::int_>(each)) && !nb::isinstance<nb::bool_>(each);
  };
  const auto typed =
      std::ranges::find_if(given, [](const auto& argument) { return nb::isinstance<Value>(argument.second); });
  const program::RegisterType type =
      typed == given.end() ? program::RegisterType::f32 : nb::cast<Value>(typed->second).type;
  std::vector<Value> values;
  const bool is_b32 = type == program::RegisterType::b32, is_b64 = type == program::RegisterType::b64;
  for (const auto& [name, each] : given) {
    if (nb::isinstance<Value>(each)) {
      values.push_back(nb::cast<Value>(each));
    } else if ((is_b32 || is_b64) &&
               (nb::isinstance<Number>(each) || (nb::isinstance<nb::int_>(each) && is_number(each)))) {
      const auto number = nb::cast<Number>(each);
      values.push_back(is_b32 ? program::to_b32(k, number) : program::to_b64(k, number));
    } else if ((is_b32 || is_b64) && is_number(each)) {
      throw nb::type_error(fmt::format("{}(): {} must be an integer beside a {}, got {}", function, name,
                                       program::name(type), shown(each))
                               .c_str());
    } else if (is_number(each)) {
      const auto value = nb::cast<double>(each);
      values.push_back(type == program::RegisterType::f64 ? program::constant_f64(k, value)
                                                          : program::constant(k, static_cast<float>(value)));
    } else {
      const char* hint = nb::isinstance<Number>(each) ? "; to_f32(k, number) makes a Value of it" : "";
      throw nb::type_error(
          fmt::format("{}(): {} must be a Value or a Python number, got {}{}", function, name, shown(each), hint)
              .c_str());
    }
  }
  return values;
}

/// An instruction with two operands, a Result of Value or Number.
template <class Result>
void bind_binary(nb::module_& module, const char* name, Result (*function)(KernelBuilder&, const Value&, const Value&),
                 const char* documentation) {
  const std::string signature =
      fmt::format("def {}(k: KernelBuilder, a: Value | float, b: Value | Number | float) -> {}", name,
                  std::is_same_v<Result, Number> ? "Number" : "Value");
  module.def(
      name,
      [name, function](KernelBuilder& k, nb::handle a, nb::handle b) {
        const std::vector<Value> values = read_values(k, name, {{"a", a}, {"b", b}});
        return function(k, values[0], values[1]);
      },
      "k"_a, "a"_a, "b"_a, nb::sig(signature.c_str()), documentation);
}

/// The same, with an argument `is_signed`.
template <class Result>
void bind_signed(nb::module_& module, const char* name,
                 Result (*function)(KernelBuilder&, const Value&, const Value&, bool), const char* documentation) {
  const std::string signature =
      fmt::format("def {}(k: KernelBuilder, a: Value | float, b: Value | Number | float, is_signed: bool = True) -> {}",
                  name, std::is_same_v<Result, Number> ? "Number" : "Value");
  module.def(
      name,
      [name, function](KernelBuilder& k, nb::handle a, nb::handle b, bool is_signed) {
        const std::vector<Value> values = read_values(k, name, {{"a", a}, {"b", b}});
        return function(k, values[0], values[1], is_signed);
      },
      "k"_a, "a"_a, "b"_a, "is_signed"_a = true, nb::sig(signature.c_str()), documentation);
}

/// A shift, whose count is a b32, a Number or an integer.
template <class... Signed>
Value shifted(KernelBuilder& k, const char* name,
              Value (*function)(KernelBuilder&, const Value&, const Value&, Signed...), const Value& a,
              nb::handle count, Signed... is_signed) {
  if (nb::isinstance<Value>(count)) return function(k, a, nb::cast<Value>(count), is_signed...);
  Number number;
  if (!nb::try_cast(count, number)) {
    throw nb::type_error(
        fmt::format("{}(): count must be a Value, a Number or an integer, got {}", name, shown(count)).c_str());
  }
  return function(k, a, program::to_b32(k, number), is_signed...);
}

void bind_bits(nb::module_& module) {
  bind_signed(module, "multiply_high", &program::multiply_high,
              "The upper half of the product of two b32 or b64, which has twice as many bits.");
  bind_binary(module, "bitwise_and", &program::bitwise_and, "a & b of b16, b32 or b64.");
  bind_binary(module, "bitwise_or", &program::bitwise_or, "a | b of b16, b32 or b64.");
  bind_binary(module, "bitwise_xor", &program::bitwise_xor, "a ^ b of b16, b32 or b64.");
  module.def("bitwise_not", &program::bitwise_not, "k"_a, "a"_a, "~a of b16, b32 or b64.");
  module.def(
      "shift_left",
      [](KernelBuilder& k, const Value& a, nb::handle count) {
        return shifted(k, "shift_left", &program::shift_left, a, count);
      },
      "k"_a, "a"_a, "count"_a,
      nb::sig("def shift_left(k: KernelBuilder, a: Value, count: Value | Number | int) -> Value"),
      "a << count of b32 or b64. Counts above the number of bits shift all bits out.");
  module.def(
      "shift_right",
      [](KernelBuilder& k, const Value& a, nb::handle count, bool is_signed) {
        return shifted(k, "shift_right", &program::shift_right, a, count, is_signed);
      },
      "k"_a, "a"_a, "count"_a, "is_signed"_a = true,
      nb::sig("def shift_right(k: KernelBuilder, a: Value, count: Value | Number | int, is_signed: bool = True) -> "
              "Value"),
      "a >> count of b32 or b64, filled with the sign, or with zeros if `is_signed` is False.");
  module.def("population_count", &program::population_count, "k"_a, "a"_a,
             "The number of bits of a b32 or b64 that are 1; a b32.");
  module.def("leading_zeros", &program::leading_zeros, "k"_a, "a"_a,
             "The number of zeros above the highest 1 of a b32 or b64; a b32.");
  module.def("reverse_bits", &program::reverse_bits, "k"_a, "a"_a, "The bits of a b32 or b64 in reverse order.");
  module.def("extract_bits", &program::extract_bits, "k"_a, "a"_a, "first"_a, "count"_a, "is_signed"_a = true,
             "`count` bits of a b32 or b64 from bit `first` on, extended with the highest of them, or with zeros if "
             "`is_signed` is False.");
  module.def(
      "dot_bytes",
      [](KernelBuilder& k, const Value& a, nb::handle b, nb::handle c, bool is_signed) {
        const std::vector<Value> values = read_values(k, "dot_bytes", {{"a", nb::cast(a)}, {"b", b}, {"c", c}});
        return program::dot_bytes(k, values[0], values[1], values[2], is_signed);
      },
      "k"_a, "a"_a, "b"_a, "c"_a, "is_signed"_a = true,
      nb::sig("def dot_bytes(k: KernelBuilder, a: Value, b: Value | int, c: Value | int, is_signed: bool = True) -> "
              "Value"),
      "c + the sum of the products of the four bytes of a and of b, all b32: dp4a.");
  module.def(
      "permute_bytes",
      [](KernelBuilder& k, const Value& a, nb::handle b, nb::handle selectors) {
        const std::vector<Value> values =
            read_values(k, "permute_bytes", {{"a", nb::cast(a)}, {"b", b}, {"selectors", selectors}});
        return program::permute_bytes(k, values[0], values[1], values[2]);
      },
      "k"_a, "a"_a, "b"_a, "selectors"_a,
      nb::sig("def permute_bytes(k: KernelBuilder, a: Value, b: Value | int, selectors: Value | int) -> Value"),
      "Byte i of the result is byte s of a (0 to 3) and b (4 to 7), where s is nibble i of `selectors`: prmt.b32.");
}

void bind_arithmetic(nb::module_& module) {
  module.def("constant", &program::constant, "k"_a, "value"_a, "An f32.");
  module.def("constant_f64", &program::constant_f64, "k"_a, "value"_a, "An f64.");
  bind_binary(
      module, "add", &program::add,
      "a + b of f32 or f64, rounded to nearest; never contracted to fma. A Python number is a constant of the "
      "other operand's type. So are those below. add(), subtract(), multiply(), minimum(), maximum() and comparisons "
      "take b32 and b64, too, as integers, whose results wrap; a Number is then an operand as well.");
  bind_binary(module, "subtract", &program::subtract, "a - b");
  bind_binary(module, "multiply", &program::multiply, "a * b");
  bind_binary(module, "divide", &program::divide, "a / b");
  bind_signed(module, "minimum", &program::minimum,
              "The lesser of a and b. `is_signed` is for integers, as in the functions below.");
  bind_signed(module, "maximum", &program::maximum, "The greater of a and b.");
  module.def(
      "fma",
      [](KernelBuilder& k, nb::handle a, nb::handle b, nb::handle c) {
        const std::vector<Value> values = read_values(k, "fma", {{"a", a}, {"b", b}, {"c", c}});
        return program::fma(k, values[0], values[1], values[2]);
      },
      "k"_a, "a"_a, "b"_a, "c"_a,
      nb::sig("def fma(k: KernelBuilder, a: Value | float, b: Value | float, c: Value | float) -> Value"), "a * b + c");
  bind_signed(module, "less", &program::less, "Whether a < b, a condition as a Number. No comparison holds for NaNs.");
  bind_signed(module, "less_equal", &program::less_equal, "Whether a <= b.");
  bind_binary<Number>(module, "equal", &program::equal, "Whether a == b.");
  module.def("square_root", &program::square_root, "k"_a, "a"_a, "Of f32 or f64, rounded to nearest.");
  module.def("absolute", &program::absolute, "k"_a, "a"_a, "|a| of f32, f64, b32 or b64.");
  module.def("reciprocal", &program::reciprocal, "k"_a, "a"_a,
             "1 / a of f32, by the .approx instruction, as those below.");
  module.def("exp2", &program::exp2, "k"_a, "a"_a, "2^a of f32: ex2.approx.");
  module.def("log2", &program::log2, "k"_a, "a"_a, "The logarithm of base 2 of f32: lg2.approx.");
  module.def("tanh", &program::tanh, "k"_a, "a"_a, "The hyperbolic tangent of f32: tanh.approx.");
  module.def("reciprocal_sqrt", &program::reciprocal_sqrt, "k"_a, "a"_a, "1 / sqrt(a) of f32: rsqrt.approx.");
  module.def("choose", &program::choose, "k"_a, "condition"_a, "a"_a, "b"_a, "`a` if `condition` is not 0, else `b`.");
  module.def("shuffle_xor", &program::shuffle_xor, "k"_a, "a"_a, "mask"_a,
             "The value of lane `lane ^ mask`, of all lanes of the warp.");
  module.def("shuffle", &program::shuffle, "k"_a, "a"_a, "lane"_a,
             "The value of lane `lane % 32`, which each lane of the warp chooses.");
  module.def("shuffle_up", &program::shuffle_up, "k"_a, "a"_a, "delta"_a,
             "The value of the lane that is `delta` before, and the own value where there is none.");
  module.def("shuffle_down", &program::shuffle_down, "k"_a, "a"_a, "delta"_a,
             "The value of the lane that is `delta` after, and the own value where there is none.");
  module.def("ballot", &program::ballot, "k"_a, "condition"_a,
             "A b32 whose bit i tells whether the condition holds in lane i. All lanes of the warp must execute it.");
  module.def("to_b32", &program::to_b32, "k"_a, "number"_a,
             "The low 32 bits of the Number in a register, to store it or select it.");
  module.def("to_b64", &program::to_b64, "k"_a, "number"_a, "The Number in a register of 64 bits.");
  module.def("join_registers", &program::join_registers, "k"_a, "values"_a,
             "One value of all registers of `values`, which have one type.");
  module.def(
      "to_f32", [](KernelBuilder& k, const Number& number) { return program::to_f32(k, number); }, "k"_a, "number"_a,
      "A Number as an f32, rounded to nearest.");
  module.def(
      "to_f32",
      [](KernelBuilder& k, const Value& element, nb::handle dtype) {
        return program::to_f32(k, element, read_dtype(dtype));
      },
      "k"_a, "element"_a, "dtype"_a,
      "One element as an f32: of an f32, of an f64, of a b16 (f16, bf16), of a b32 (s32; s8, u8, e4m3, e5m2 in its low "
      "byte).");
  module.def(
      "pack",
      [](KernelBuilder& k, nb::handle dtype, const Value& low, const Value& high) {
        return program::pack(k, read_dtype(dtype), low, high);
      },
      "k"_a, "dtype"_a, "low"_a, "high"_a,
      "Two f32 as a pair of f16 or bf16 in a b32, or of e4m3 or e5m2 in a b16, rounded to nearest.");
  module.def(
      "unpack",
      [](KernelBuilder& k, nb::handle dtype, const Value& pair) { return program::unpack(k, read_dtype(dtype), pair); },
      "k"_a, "dtype"_a, "pair"_a, "The two f32 of a pair of f16, bf16, e4m3 or e5m2.");
  module.def(
      "from_f32",
      [](KernelBuilder& k, nb::handle dtype, const Value& value) {
        return program::from_f32(k, read_dtype(dtype), value);
      },
      "k"_a, "dtype"_a, "value"_a,
      "One f32 as an element of `dtype`, rounded to nearest, of two the even one: an f32, an f64, a b16 (f16, bf16), a "
      "b32 "
      "(s32; s8, u8, e4m3, e5m2 in its low byte). Integers, e4m3 and e5m2 saturate.");
}

}  // namespace

void bind_instructions(nb::module_& module) {
  bind_operands(module);
  bind_memory(module);
  bind_synchronisation(module);
  bind_asynchronous(module);
  bind_arithmetic(module);
  bind_bits(module);
}

}  // namespace tilewright::python
