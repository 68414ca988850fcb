// st.async and red.async: stores to the shared memory of a CTA of the cluster that complete on an mbarrier there.
#include <array>
#include <bit>

#include "tilewright/emulator/instructions/async_copy.hpp"
#include "tilewright/emulator/instructions/instruction_set.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

/// Operands: the address, the sources, the mbarrier. element_bytes: of a source. immediate: the ReduceElement of
/// red.async, else 0.
void execute_async_store(Warp& warp, const Instruction& in, Mask lanes) {
  const std::uint32_t width = in.element_bytes, size = width * in.elements;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const SharedLocation to = resolve_shared_location(warp, in, lane, 0, {size, size}, "asynchronous write");
    const MbarrierObject at = find_mbarrier(warp, in, lane, 1);
    if (at.location.cta != to.cta) {
      warp.fail(FindingKind::mbarrier_misuse, in, lane, to.address,
                fmt::format("asynchronous write to CTA {} that completes on an mbarrier of CTA {}",
                            to_string(to.cta->index()), to_string(at.location.cta->index())));
    }
    std::byte values[16];
    for (std::uint32_t i = 0; i < in.elements; ++i) {
      std::memcpy(values + std::size_t{i} * width,
                  warp.reg<std::byte>(in.op[1 + i]) + static_cast<std::size_t>(lane) * width, width);
    }
    if (const auto reduce = reinterpret_cast<ReduceElement>(in.immediate)) {
      alignas(8) std::byte reduced[8];
      std::memcpy(reduced, to.cta->shared().at(to.address), size);
      reduce(reduced, values);
      std::memcpy(values, reduced, size);
    }
    AsyncCopy(warp, in, lane, at.barrier).write_shared(to, values, size, Proxy::generic);
    complete_on(warp, in, lane, at, size, Proxy::generic);
  }
}

void decode_operands(InstructionReader& reader, PtxType type, std::size_t elements) {
  reader.finish();
  reader.expect_operands(3);
  if (bytes(type) < 4 || bytes(type) * static_cast<int>(elements) > 16) {
    reader.refuse(fmt::format("{} values of .{}", elements, name(type)));
  }
  const std::vector<Operand> sources = reader.elements(reader.operand(1));
  if (sources.size() != elements) reader.refuse("a vector operand whose length differs from the instruction's");
  reader.address(reader.operand(0), Space::generic);
  for (const Operand& source : sources) reader.source(source, type);
  reader.address(reader.operand(2), Space::generic);
  reader.out().elements = static_cast<std::uint8_t>(elements);
  reader.out().element_bytes = static_cast<std::uint8_t>(bytes(type));
  reader.out().execute = &execute_async_store;
}

/// Takes the modifiers that both instructions must have.
void take_completion(InstructionReader& reader) {
  reader.take("shared::cluster");
  if (!reader.take("mbarrier::complete_tx::bytes")) reader.refuse("this completion mechanism");
}

void decode_store(InstructionReader& reader) {
  reader.take("weak");
  take_completion(reader);
  const std::size_t elements = std::size_t{1} << (reader.take_one_of({"v2", "v4"}) + 1);
  decode_operands(reader, reader.type(), elements);
}

void decode_reduce(InstructionReader& reader) {
  reader.take("relaxed");
  reader.take("cluster");
  take_completion(reader);
  const Reduction reduction = take_reduction(reader);
  const PtxType type = reader.type();
  const ReduceElement reduce = is_integer(type) ? find_reduction(type, reduction) : nullptr;
  if (reduce == nullptr) reader.refuse(fmt::format("this reduction of .{}", name(type)));
  decode_operands(reader, type, 1);
  reader.out().immediate = reinterpret_cast<std::int64_t>(reduce);
}

constexpr std::array kOpcodes = {
    OpcodeRow{"st.async", OperandClass::any, decode_store},
    OpcodeRow{"red.async", OperandClass::any, decode_reduce},
};

}  // namespace

std::span<const OpcodeRow> async_store_opcodes() { return kOpcodes; }

}  // namespace tilewright::emulator
