// tilewright.arch: atoms, fragments, layouts in shared memory, matrix descriptors and TMA copies, as numbers.
#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "python/bindings/arch.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/int_tuple.hpp"
#include "python/bindings/program.hpp"
#include "tilewright/arch/fragment.hpp"
#include "tilewright/arch/smem_descriptor.hpp"
#include "tilewright/arch/tma_copy.hpp"
#include "tilewright/arch/wgmma_tile.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {

using arch::Major;
using arch::MmaAtom;
using arch::SmemDescriptor;
using arch::SwizzleMode;
using arch::TmaCopy;
using arch::WgmmaAtom;
using arch::WgmmaTile;
using layout::ComposedLayout;
using layout::Layout;

Major read_major(const Text& text) {
  const std::string given = text.read("major");
  if (given == "k") return Major::k;
  if (given == "mn") return Major::mn;
  throw InvalidArgument(fmt::format("major is \"k\" or \"mn\", got '{}'", printable(given)));
}

namespace {

SwizzleMode read_swizzle(std::int64_t bytes) {
  for (const SwizzleMode mode :
       {SwizzleMode::none, SwizzleMode::bytes_32, SwizzleMode::bytes_64, SwizzleMode::bytes_128}) {
    if (bytes == (mode == SwizzleMode::none ? 0 : arch::width_bytes(mode))) return mode;
  }
  throw InvalidArgument(fmt::format("swizzle is 0, 32, 64 or 128 bytes, got {}", bytes));
}
int swizzle_bytes(SwizzleMode mode) { return mode == SwizzleMode::none ? 0 : arch::width_bytes(mode); }

nb::tuple tuple_of(const auto& values, std::size_t count) {
  nb::list list;
  for (std::size_t i = 0; i < count; ++i) list.append(values[i]);
  return nb::tuple(list);
}

std::string_view name_of(arch::OperandSource source) {
  return source == arch::OperandSource::registers ? "registers" : "shared_memory";
}

void bind_mma_atom(nb::module_& module) {
  nb::class_<MmaAtom>(
      module, "MmaAtom",
      "One instruction, C[m,n] += A[m,k] * B[n,k]: its shape, types, registers, and thread-value layouts. mma_atom(), "
      "mma_atoms() and WgmmaAtom.instruction() return it.")
      .def_ro("name", &MmaAtom::name)
      .def_ro("m", &MmaAtom::m)
      .def_ro("n", &MmaAtom::n)
      .def_ro("k", &MmaAtom::k)
      .def_prop_ro("shape_mnk", [](const MmaAtom& self) { return std::tuple(self.m, self.n, self.k); })
      .def_ro("a", &MmaAtom::a, "The element type of A.")
      .def_ro("b", &MmaAtom::b)
      .def_ro("c", &MmaAtom::c, "The type of the accumulators.")
      .def_ro("ptx", &MmaAtom::ptx, "The mnemonic; its operands are d, a, b, c.")
      .def_prop_ro("min_target", [](const MmaAtom& self) { return self.min_target.name(); })
      .def_ro("a_registers", &MmaAtom::a_registers, "Of a thread; 0 for an operand in shared memory.")
      .def_ro("b_registers", &MmaAtom::b_registers)
      .def_ro("c_registers", &MmaAtom::c_registers)
      .def_prop_ro("threads", [](const MmaAtom& self) { return arch::threads(self); })
      .def_ro("layout_a_tv", &MmaAtom::a_tv, "(thread, value) -> offset in the column-major tile (m, k).")
      .def_ro("layout_b_tv", &MmaAtom::b_tv, "(thread, value) -> offset in the column-major tile (n, k).")
      .def_ro("layout_c_tv", &MmaAtom::c_tv, "(thread, value) -> offset in the column-major tile (m, n).")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const MmaAtom& self) { return std::hash<std::string>()(self.name); })
      .def("__repr__", [](const MmaAtom& self) { return "MmaAtom(" + self.name + ")"; });
  module.def(
      "mma_atom",
      [](int m, int n, int k, nb::handle a, nb::handle b, nb::handle c) {
        const DType of_a = read_dtype(a), of_b = read_dtype(b), of_c = read_dtype(c);
        const MmaAtom* const atom = arch::find_mma_atom(m, n, k, of_a, of_b, of_c);
        if (atom == nullptr) {
          throw InvalidArgument(fmt::format("mma.sync has no m{}n{}k{} of {} and {} with {} accumulators; it has {}", m,
                                            n, k, name(of_a), name(of_b), name(of_c),
                                            arch::known_instructions(of_a, of_b)));
        }
        return atom;
      },
      "m"_a, "n"_a, "k"_a, "a"_a, "b"_a, "c"_a, nb::rv_policy::reference,
      "The atom of mma.sync with that shape and those types.");
  module.def("mma_atoms", &arch::mma_atoms, "All atoms of mma.sync.");
  nb::class_<WgmmaAtom>(
      module, "WgmmaAtom",
      "wgmma.mma_async of a warpgroup, C[64,n] += A[64,k] * B[n,k], for every n that it has. wgmma_atom() "
      "and wgmma_atoms() return it.")
      .def_ro("name", &WgmmaAtom::name)
      .def_ro("m", &WgmmaAtom::m)
      .def_ro("k", &WgmmaAtom::k)
      .def_ro("a", &WgmmaAtom::a)
      .def_ro("b", &WgmmaAtom::b)
      .def_ro("c", &WgmmaAtom::c)
      .def_prop_ro(
          "a_source", [](const WgmmaAtom& self) { return name_of(self.a_source); },
          "\"shared_memory\" or \"registers\".")
      .def_ro("a_may_be_mn_major", &WgmmaAtom::a_may_be_mn_major)
      .def_ro("b_may_be_mn_major", &WgmmaAtom::b_may_be_mn_major)
      .def_prop_ro("n_values", [](const WgmmaAtom& self) { return arch::n_values(self); })
      .def(
          "instruction", [](const WgmmaAtom& self, int n) { return arch::instruction(self, n).value_or_throw(); },
          "n"_a, "The atom of one n.")
      .def("__repr__", [](const WgmmaAtom& self) { return "WgmmaAtom(" + self.name + ")"; });
  module.def(
      "wgmma_atom",
      [](nb::handle a, nb::handle b, nb::handle c, const Text& a_source) {
        const std::string source = a_source.read("a_source");
        const DType of_a = read_dtype(a), of_b = read_dtype(b), of_c = read_dtype(c);
        for (const arch::OperandSource each : {arch::OperandSource::shared_memory, arch::OperandSource::registers}) {
          if (name_of(each) != source) continue;
          if (const WgmmaAtom* const atom = arch::find_wgmma_atom(of_a, of_b, of_c, each)) return atom;
          throw InvalidArgument(fmt::format("wgmma does not multiply {} and {} with {} accumulators; it has {}",
                                            name(of_a), name(of_b), name(of_c), arch::known_wgmma(of_a, of_b)));
        }
        throw InvalidArgument(
            fmt::format("a_source is \"shared_memory\" or \"registers\", got '{}'", printable(source)));
      },
      "a"_a, "b"_a, "c"_a, "a_source"_a = "shared_memory", nb::rv_policy::reference,
      "The atom of wgmma with those types.");
  module.def("wgmma_atoms", &arch::wgmma_atoms, "All atoms of wgmma.");
  module.def("fragment", &arch::fragment, "rows"_a, "columns"_a, "packed"_a,
             "(lane, value) -> offset in the column-major tile: the register fragments of mma.sync and wgmma, whose "
             "registers hold `packed` adjacent elements of a row.");
}

void bind_shared_memory(nb::module_& module) {
  module.def(
      "sizeof_bits", [](nb::handle dtype) { return bits(read_dtype(dtype)); }, "dtype"_a, "The width of an element.");
  module.def(
      "smem_atom",
      [](const Text& major, std::int64_t swizzle, nb::handle dtype) {
        return arch::smem_atom(read_major(major), read_swizzle(swizzle), bits(read_dtype(dtype))).value_or_throw();
      },
      "major"_a, "swizzle"_a, "dtype"_a,
      "The swizzle atom, eight rows of `swizzle` bytes (16 for 0): (mn, k) -> offset in elements.");
  module.def(
      "widest_swizzle",
      [](const Text& major, nb::handle dtype, std::int64_t mn, std::int64_t k) {
        return swizzle_bytes(arch::widest_swizzle(read_major(major), bits(read_dtype(dtype)), mn, k).value_or_throw());
      },
      "major"_a, "dtype"_a, "mn"_a, "k"_a, "The widest swizzle in bytes whose rows divide the tile.");
  module.def("smem_tile", &make_smem_tile, "major"_a, "dtype"_a, "mn"_a, "k"_a, "swizzle"_a = nb::none(),
             "order"_a = nb::none(),
             "The layout of an operand tile in shared memory: (mn, k) -> offset in elements. `major` is \"k\" or "
             "\"mn\". `swizzle` is 0, 32, 64 or 128 bytes, by default the widest. `order` of the swizzle atoms is "
             "\"mn_first\" or \"k_first\", by default that with the fewest TMA boxes.");
  module.def("smem_stages", &arch::smem_stages, "tile"_a, "stages"_a, "(mn, k, stage) -> offset in elements.");
  nb::class_<SmemDescriptor>(
      module, "SmemDescriptor",
      "The 64-bit matrix descriptor of wgmma. Address and offsets are in bytes. int() is its bits. make_descriptor() "
      "and SmemDescriptor.decode() return it.")
      .def_ro("start_address", &SmemDescriptor::start_address)
      .def_ro("leading_byte_offset", &SmemDescriptor::leading_byte_offset, "LBO")
      .def_ro("stride_byte_offset", &SmemDescriptor::stride_byte_offset, "SBO")
      .def_ro("base_offset", &SmemDescriptor::base_offset)
      .def_prop_ro(
          "swizzle", [](const SmemDescriptor& self) { return swizzle_bytes(self.mode); }, "In bytes.")
      .def_prop_ro(
          "swizzle_mode", [](const SmemDescriptor& self) { return arch::descriptor_swizzle(self.mode); },
          "Bits 63:62: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes.")
      .def_prop_ro("bits", [](const SmemDescriptor& self) { return arch::encode(self); })
      .def("__int__", [](const SmemDescriptor& self) { return arch::encode(self); })
      .def_static(
          "decode", [](std::uint64_t bits) { return arch::decode(bits).value_or_throw(); }, "bits"_a,
          "The descriptor that has these 64 bits. Raises InvalidArgument if none has them.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const SmemDescriptor& self) { return std::hash<std::uint64_t>()(arch::encode(self)); })
      .def("__repr__", [](const SmemDescriptor& self) { return "SmemDescriptor(" + to_string(self) + ")"; });
  module.def(
      "make_descriptor",
      [](const Text& major, const ComposedLayout& operand, nb::handle dtype, std::int64_t address) {
        return arch::make_descriptor(read_major(major), operand, bits(read_dtype(dtype)), address).value_or_throw();
      },
      "major"_a, "operand"_a, "dtype"_a, "address"_a = 0,
      "The descriptor of the operand of one wgmma: `operand` maps (mn, k) to offsets in elements, where k is 32 bytes "
      "wide.");
}

/// nvcute's TiledMma: the instructions of a CTA tile, with both operands in shared memory.
struct TiledMma {
  const WgmmaAtom* atom;
  int n;
  Major a_major, b_major;
  WgmmaTile tile;
};

/// What to add to the address in bytes for one step along a mode: an integer if the steps are even, else the offset of
/// each instruction.
nb::object advance_bytes(const arch::WgmmaOperand& operand, std::int64_t count, bool along_k) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t mn = along_k ? 0 : i, k = along_k ? i : 0;
    offsets.push_back(
        static_cast<std::int64_t>((arch::descriptor_bits(operand, mn, k) - arch::descriptor_bits(operand, 0, 0)) * 16));
  }
  const std::int64_t step = offsets.size() > 1 ? offsets[1] : 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] != step * static_cast<std::int64_t>(i)) return tuple_of(offsets, offsets.size());
  }
  return nb::int_(step);
}

void bind_tiled_mma(nb::module_& module) {
  const auto at = [](arch::WgmmaOperand WgmmaTile::*operand) {
    return [operand](const TiledMma& self, std::int64_t mn, std::int64_t k, std::int64_t address) {
      return arch::descriptor_bits(self.tile.*operand, mn, k, 0, address);
    };
  };
  nb::class_<TiledMma>(module, "TiledMma",
                       "The product of a CTA tile by wgmma with both operands in shared memory: how many instructions, "
                       "and their descriptors. The names are nvcute's.")
      .def(
          "__init__",
          [](TiledMma* self, const WgmmaAtom& atom, int n, const ComposedLayout& a, const ComposedLayout& b,
             const Text& a_major, const Text& b_major) {
            const Major of_a = read_major(a_major), of_b = read_major(b_major);
            const WgmmaTile tile = arch::wgmma_tile(atom, n, {of_a, a}, {of_b, b}).value_or_throw();
            new (self) TiledMma{arch::find_wgmma_atom(atom.a, atom.b, atom.c, atom.a_source), n, of_a, of_b, tile};
          },
          "atom"_a, "n"_a, "a"_a, "b"_a, "a_major"_a = "k", "b_major"_a = "k",
          "`n` is that of one instruction. `a` (m, k) and `b` (n, k) are the layouts of the tiles in shared memory, as "
          "smem_tile() returns them.")
      .def_prop_ro(
          "atom", [](const TiledMma& self) { return self.atom; }, nb::rv_policy::reference)
      .def_ro("n", &TiledMma::n)
      .def_prop_ro(
          "mma_count",
          [](const TiledMma& self) { return std::tuple(self.tile.m_count, self.tile.n_count, self.tile.k_count); },
          "The number of instructions along m, n and k.")
      .def_prop_ro(
          "desc_a", [](const TiledMma& self) { return self.tile.a.descriptor; },
          "The descriptor of A of instruction (0, 0), for a tile at address 0.")
      .def_prop_ro("desc_b", [](const TiledMma& self) { return self.tile.b.descriptor; })
      .def_prop_ro(
          "trans_a", [](const TiledMma& self) { return self.a_major == Major::mn; }, "Whether A is MN-major.")
      .def_prop_ro("trans_b", [](const TiledMma& self) { return self.b_major == Major::mn; })
      .def_prop_ro(
          "offset_a", [](const TiledMma& self) { return self.tile.a.offset; },
          "(m, k) of an instruction -> the number to add to the low word of the descriptor, in 16 bytes.")
      .def_prop_ro("offset_b", [](const TiledMma& self) { return self.tile.b.offset; })
      .def_prop_ro(
          "advance_k_byte_a", [](const TiledMma& self) { return advance_bytes(self.tile.a, self.tile.k_count, true); },
          nb::sig("def advance_k_byte_a(self) -> int | tuple[int, ...]"),
          "Bytes from one instruction along k to the next; if k spans several swizzle atoms, where steps differ, a "
          "tuple of the offsets of all instructions.")
      .def_prop_ro(
          "advance_k_byte_b", [](const TiledMma& self) { return advance_bytes(self.tile.b, self.tile.k_count, true); },
          nb::sig("def advance_k_byte_b(self) -> int | tuple[int, ...]"))
      .def_prop_ro(
          "advance_m_byte_a", [](const TiledMma& self) { return advance_bytes(self.tile.a, self.tile.m_count, false); },
          nb::sig("def advance_m_byte_a(self) -> int | tuple[int, ...]"))
      .def_prop_ro(
          "advance_n_byte_b", [](const TiledMma& self) { return advance_bytes(self.tile.b, self.tile.n_count, false); },
          nb::sig("def advance_n_byte_b(self) -> int | tuple[int, ...]"))
      .def("descriptor_a", at(&WgmmaTile::a), "m"_a, "k"_a, "address"_a = 0,
           "The bits of the descriptor of A of instruction (m, k), for a tile at a shared address.")
      .def("descriptor_b", at(&WgmmaTile::b), "n"_a, "k"_a, "address"_a = 0,
           "The bits of the descriptor of B of instruction (n, k), for a tile at a shared address.")
      .def("__repr__", [](const TiledMma& self) {
        return fmt::format("TiledMma({}, n={}, {}x{}x{} instructions)", self.atom->name, self.n, self.tile.m_count,
                           self.tile.n_count, self.tile.k_count);
      });
}

void bind_tma_copy(nb::module_& module) {
  nb::class_<TmaCopy>(module, "TmaCopy", "A tile as TMA instructions: the tensor map, and the boxes.")
      .def(
          "__init__",
          [](TmaCopy* self, const Layout& global, nb::handle dtype, const ComposedLayout& smem,
             const layout::IntTuple& tile, std::int64_t multicast, std::uint64_t address) {
            new (self) TmaCopy(arch::make_tma_copy({.global = global,
                                                    .element = read_dtype(dtype),
                                                    .global_address = address,
                                                    .smem = smem,
                                                    .tile = tile,
                                                    .multicast = multicast})
                                   .value_or_throw());
          },
          "global_layout"_a, "dtype"_a, "smem"_a, "tile"_a, "multicast"_a = 1, "address"_a = 0,
          "`global_layout` is that of the whole tensor in elements, `smem` that of the tile in shared memory, `tile` "
          "its "
          "extents.")
      .def_prop_ro(
          "box_shape",
          [](const TmaCopy& self) { return tuple_of(self.map.box, static_cast<std::size_t>(self.map.rank)); },
          nb::sig("def box_shape(self) -> tuple[int, ...]"),
          "The extents of what one instruction copies, innermost first.")
      .def_prop_ro(
          "num_boxes", [](const TmaCopy& self) { return arch::box_count(self); },
          "The number of instructions for a tile.")
      .def_prop_ro("box_bytes", [](const TmaCopy& self) { return self.transaction_bytes / arch::box_count(self); })
      .def_ro("transaction_bytes", &TmaCopy::transaction_bytes, "The bytes of a tile that the mbarrier expects.")
      .def_prop_ro(
          "swizzle", [](const TmaCopy& self) { return width(self.map.swizzle); }, "In bytes.")
      .def_prop_ro(
          "extents",
          [](const TmaCopy& self) { return tuple_of(self.map.extents, static_cast<std::size_t>(self.map.rank)); },
          nb::sig("def extents(self) -> tuple[int, ...]"), "Of the tensor, by mode of the map.")
      .def_prop_ro(
          "strides",
          [](const TmaCopy& self) { return tuple_of(self.map.strides, static_cast<std::size_t>(self.map.rank)); },
          nb::sig("def strides(self) -> tuple[int, ...]"), "In bytes, by mode of the map.")
      .def_ro("coordinates", &TmaCopy::coordinates, "Coordinate of the tensor -> coordinate of the map.")
      .def_ro("box_coordinate", &TmaCopy::box_coordinate, "box -> coordinate of the map, relative to the tile.")
      .def_ro("box_offset", &TmaCopy::box_offset, "box -> offset in shared memory, in elements.")
      .def(
          "coordinate",
          [](const TmaCopy& self, const layout::IntTuple& tile_at, std::int64_t box, std::int64_t slice) {
            return arch::tma_coordinate(self, tile_at, box, slice);
          },
          "tile_at"_a, "box"_a = 0, "slice"_a = 0,
          "The coordinate of one instruction, innermost mode first, for the tile at `tile_at`.")
      .def("smem_bytes", &arch::tma_smem_bytes, "box"_a = 0, "slice"_a = 0,
           "The byte offset of that instruction in the tile in shared memory.")
      .def("__repr__", [](const TmaCopy& self) {
        return fmt::format("TmaCopy({} boxes, {} bytes)", arch::box_count(self), self.transaction_bytes);
      });
  module.def("multicast_mask", &arch::multicast_mask, "cluster"_a, "mode"_a, "cta_rank"_a,
             "The mask of the CTAs that differ from CTA `cta_rank` along `mode` only; `cluster` maps (m, n) to ranks.");
}

}  // namespace

ComposedLayout make_smem_tile(const Text& major_text, nb::handle dtype, std::int64_t mn, std::int64_t k,
                              std::optional<std::int64_t> swizzle, const std::optional<Text>& order) {
  const Major major = read_major(major_text);
  const int element_bits = bits(read_dtype(dtype));
  arch::SmemTile tile{
      .major = major,
      .mode = swizzle ? read_swizzle(*swizzle) : arch::widest_swizzle(major, element_bits, mn, k).value_or_throw(),
      .element_bits = element_bits,
      .mn = mn,
      .k = k};
  if (order) {
    const std::string given = order->read("order");
    if (given != "mn_first" && given != "k_first")
      throw InvalidArgument(fmt::format("order is \"mn_first\" or \"k_first\", got '{}'", printable(given)));
    tile.order = given == "mn_first" ? arch::AtomOrder::mn_first : arch::AtomOrder::k_first;
  }
  return arch::smem_tile(tile).value_or_throw();
}

void bind_arch(nb::module_& module) {
  bind_mma_atom(module);
  bind_shared_memory(module);
  bind_tiled_mma(module);
  bind_tma_copy(module);
}

}  // namespace tilewright::python
