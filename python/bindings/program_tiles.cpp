// Rings, roles, persistent tiles, and the builders of copies and products of tilewright/program/.
#include <fmt/format.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings/arch.hpp"
#include "python/bindings/arguments.hpp"
#include "python/bindings/dtype.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/int_tuple.hpp"
#include "python/bindings/number.hpp"
#include "python/bindings/program.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/program/gemm.hpp"
#include "tilewright/program/ring.hpp"
#include "tilewright/program/roles.hpp"
#include "tilewright/program/tiled_copy.hpp"
#include "tilewright/program/tiled_mma.hpp"
#include "tilewright/program/tiles.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::python {

using layout::Number;
using program::Accumulators;
using program::KernelBuilder;
using program::PersistentTiles;
using program::Ring;
using program::RingReader;
using program::RingWriter;
using program::Roles;
using program::SharedTile;
using program::StreamedTiles;
using program::TiledCopyBuilder;
using program::TiledMmaBuilder;
using program::Value;

namespace {

using Release = std::function<void(const Number&)>;
using ConvertA = std::function<std::vector<Value>(const std::vector<Value>&, const Number&, int)>;

plan::Raster read_raster(int width, const Text& along) {
  const std::string mode = along.read("raster_along");
  if (mode != "m" && mode != "n")
    throw InvalidArgument(fmt::format("raster_along must be \"m\" or \"n\", got \"{}\"", printable(mode)));
  return {.width = width, .along_n = mode == "n"};
}

void bind_ring(nb::module_& module) {
  nb::class_<Ring>(
      module, "Ring",
      "A ring of stages in shared memory between the threads that fill them and those that read them, with "
      "a full and an empty mbarrier for each stage.")
      .def(
          "__init__",
          [](Ring* self, KernelBuilder& k, int stages, std::int64_t stage_bytes, std::int64_t transaction_bytes,
             int writer_arrivals, int reader_arrivals) {
            new (self) Ring(k, {stages, stage_bytes, transaction_bytes, writer_arrivals, reader_arrivals});
          },
          "k"_a, "stages"_a, "stage_bytes"_a, nb::kw_only(), "transaction_bytes"_a = 0, "writer_arrivals"_a = 1,
          "reader_arrivals"_a = 1, nb::keep_alive<1, 2>(),
          "`transaction_bytes` are those that TMA loads to a stage; 0: TMA loads nothing. Arrivals are counted for "
          "each "
          "stage; those of writers besides the bytes of TMA.")
      .def("initialise", &Ring::initialise,
           "Appends the initialisation of the mbarriers, and the fence that shows it to TMA. One thread executes it; "
           "the "
           "others wait for it before they use the ring.")
      .def("stage", &Ring::stage, "index"_a, "The shared address of a stage.")
      .def("full", &Ring::full, "index"_a, "The shared address of the mbarrier that is full.")
      .def("empty", &Ring::empty, "index"_a, "The shared address of the mbarrier of a stage that has been read.");
  nb::class_<RingWriter>(module, "RingWriterRecorder", "The part of a thread that writes.")
      .def(nb::init<KernelBuilder&, const Ring&>(), "k"_a, "ring"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("begin_write", &RingWriter::begin_write, "Called by write().")
      .def("end_write", &RingWriter::end_write, "Called by write().")
      .def(
          "wait_for_readers", &RingWriter::wait_for_readers,
          "Waits until all stages have been read. Needed at the end if other CTAs of a cluster read this CTA's loads.");
  nb::class_<RingReader>(module, "RingReaderRecorder", "The part of threads that read.")
      .def(
          "__init__",
          [](RingReader* self, KernelBuilder& k, const Ring& ring, std::optional<Release> release) {
            new (self) RingReader(k, ring, release ? std::move(*release) : Release());
          },
          "k"_a, "ring"_a, "release"_a = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("begin_read", &RingReader::begin_read, "Called by read().")
      .def("begin_read_by_wgmma", &RingReader::begin_read_by_wgmma, "Called by read_by_wgmma().")
      .def("end_read", &RingReader::end_read, "stage"_a, "Called by read().")
      .def("end_read_by_wgmma", &RingReader::end_read_by_wgmma, "stage"_a, "accumulators"_a,
           "Called by read_by_wgmma().")
      .def("drain_cells", &RingReader::drain, "accumulators"_a, "Called by drain().");
}

void bind_roles(nb::module_& module) {
  nb::class_<program::RoleThread>(module, "RoleThread",
                                  "A thread in its role. `with roles.play(name) as me:` gives it.")
      .def_prop_ro(
          "warpgroup", [](const program::RoleThread& self) { return self.warpgroup; },
          "Its warpgroup, among those of the role.")
      .def_prop_ro(
          "thread", [](const program::RoleThread& self) { return self.thread; },
          "Its number in the warpgroup, 0 to 127.");
  nb::class_<Roles>(module, "RolesRecorder", "Warpgroups of a CTA with different tasks.")
      .def(
          "__init__",
          [](Roles* self, KernelBuilder& k, const std::vector<std::tuple<std::string, int, int>>& given) {
            std::vector<program::Role> roles;
            for (const auto& [name, warpgroups, registers] : given) roles.push_back({name, warpgroups, registers});
            new (self) Roles(k, std::move(roles));
          },
          "k"_a, "roles"_a, nb::keep_alive<1, 2>())
      .def("begin", &Roles::begin, "name"_a, "Called by play().")
      .def("end", &Roles::end, "Called by play().");
  nb::class_<program::TileIndex>(module, "TileIndex",
                                 "A tile by its number along each mode. `with tiles.for_each() as tile:` gives it.")
      .def_prop_ro("m", [](const program::TileIndex& self) { return self.m; })
      .def_prop_ro("n", [](const program::TileIndex& self) { return self.n; })
      .def_prop_ro("batch", [](const program::TileIndex& self) { return self.batch; });
  nb::class_<PersistentTiles>(module, "PersistentTilesRecorder")
      .def(
          "__init__",
          [](PersistentTiles* self, KernelBuilder& k, const Number& m, const Number& n, const Number& batch,
             int raster_width, const Text& raster_along, int max_groups) {
            new (self) PersistentTiles(k, m, n, batch, read_raster(raster_width, raster_along), max_groups);
          },
          "k"_a, "m"_a, "n"_a, "batch"_a = 1, nb::kw_only(), "raster_width"_a = 8, "raster_along"_a = "m",
          "max_groups"_a = 132, nb::keep_alive<1, 2>())
      .def("begin", &PersistentTiles::begin, "Called by for_each().")
      .def("end", &PersistentTiles::end, "Called by for_each().");
  nb::class_<program::TilePart>(module, "TilePart",
                                "The steps of a tile along k from `first_step` to before `end_step`. `with "
                                "tiles.for_each(cta) as part:` gives it.")
      .def_prop_ro("tile", [](const program::TilePart& self) { return self.tile; })
      .def_prop_ro("first_step", [](const program::TilePart& self) { return self.first_step; })
      .def_prop_ro("end_step", [](const program::TilePart& self) { return self.end_step; });
  nb::class_<StreamedTiles>(module, "StreamedTilesRecorder")
      .def(
          "__init__",
          [](StreamedTiles* self, KernelBuilder& k, const Number& m, const Number& n, const Number& steps,
             const Number& batch, int raster_width, const Text& raster_along, int max_ctas) {
            const program::TileOrder order(k, m, n, batch, read_raster(raster_width, raster_along));
            new (self) StreamedTiles(k, order, steps, max_ctas);
          },
          "k"_a, "m"_a, "n"_a, "steps"_a, "batch"_a = 1, nb::kw_only(), "raster_width"_a = 8, "raster_along"_a = "m",
          "max_ctas"_a = 132, nb::keep_alive<1, 2>())
      .def_prop_ro(
          "ctas", [](const StreamedTiles& self) { return self.ctas(); },
          "The number of CTAs of a launch, of launch arguments.")
      .def("cta", &StreamedTiles::cta, "The number of this CTA.")
      .def("is_continued", &StreamedTiles::is_continued, "part"_a,
           "Whether the CTA after this one has the other steps of a part's tile.")
      .def("begin", &StreamedTiles::begin, "cta"_a, "Called by for_each().")
      .def("end", &StreamedTiles::end, "Called by for_each().");
}

void bind_copies(nb::module_& module) {
  nb::class_<program::Tensor>(module, "Tensor",
                              "A tensor in global memory whose extents and strides may depend on launch arguments.")
      .def(
          "__init__",
          [](program::Tensor* self, const Text& name, nb::handle dtype, std::vector<Number> extents,
             std::vector<Number> strides) {
            new (self) program::Tensor{name.read("name"), read_dtype(dtype), std::move(extents), std::move(strides)};
          },
          "name"_a, "dtype"_a, "extents"_a, "strides"_a,
          "`name` is that of the launch's argument. Strides are in elements; one of them is 1.")
      .def_ro("name", &program::Tensor::name);
  nb::class_<SharedTile>(module, "SharedTile", "A tile of an operand in shared memory, as wgmma and ldmatrix read it.")
      .def(
          "__init__",
          [](SharedTile* self, const layout::ComposedLayout& layout, nb::handle dtype) {
            new (self) SharedTile{layout, read_dtype(dtype)};
          },
          "layout"_a, "dtype"_a, "`layout` maps the coordinates of the tile to offsets in elements.")
      .def_ro("layout", &SharedTile::layout)
      .def_prop_ro("bytes", &SharedTile::bytes);
  module.def(
      "smem_tile",
      [](const Text& major, nb::handle dtype, std::int64_t mn, std::int64_t k, std::optional<std::int64_t> swizzle) {
        return SharedTile{make_smem_tile(major, dtype, mn, k, swizzle, std::nullopt), read_dtype(dtype)};
      },
      "major"_a, "dtype"_a, "mn"_a, "k"_a, "swizzle"_a = nb::none(),
      "The tile (mn, k) of an operand, which is contiguous along `major`, \"k\" or \"mn\". `swizzle` is 0, 32, 64 or "
      "128 bytes, by default the widest.");
  nb::class_<TiledCopyBuilder>(module, "TiledCopyBuilder",
                               "Copies of tiles from global to shared memory. The atom decides which instructions are "
                               "appended; the calls are the same.")
      .def(
          "__init__",
          [](TiledCopyBuilder* self, KernelBuilder& k, const Text& atom, const program::Tensor& tensor,
             const SharedTile& tile, int threads, int multicast) {
            const std::string given = atom.read("atom");
            if (given != "tma" && given != "cp_async")
              throw InvalidArgument(fmt::format("the atom of a copy is tma or cp_async, got '{}'", printable(given)));
            new (self) TiledCopyBuilder(k, given == "tma" ? program::CopyAtom::tma : program::CopyAtom::cp_async,
                                        tensor, tile, threads, multicast);
          },
          "k"_a, "atom"_a, "tensor"_a, "tile"_a, "threads"_a = 1, "multicast"_a = 1, nb::keep_alive<1, 2>(),
          "`atom` is \"tma\" (one thread copies the tile) or \"cp_async\" (`threads` threads copy it). Elements "
          "outside "
          "the tensor are zeros in the tile.")
      .def_prop_ro("transaction_bytes", &TiledCopyBuilder::transaction_bytes,
                   "What the mbarrier of a stage counts for one tile; 0 for cp_async.")
      .def_prop_ro("tensor_map", &TiledCopyBuilder::tensor_map, "The index of the parameter; -1 for cp_async.")
      .def(
          "copy",
          [](const TiledCopyBuilder& self, const std::vector<Number>& coordinates, const Number& to,
             const Number& thread, const Number& barrier, const Number& slice, const std::optional<Number>& ctas,
             std::uint64_t policy) {
            self.copy(coordinates, to,
                      {.thread = thread, .barrier = barrier, .slice = slice, .ctas = ctas, .policy = policy});
          },
          "coordinates"_a, "to"_a, nb::kw_only(), "thread"_a = 0, "barrier"_a = 0, "slice"_a = 0, "ctas"_a = nb::none(),
          "policy"_a = arch::kEvictNormal,
          "Appends the copy of the tile at `coordinates` of the tensor to the shared address `to`. `thread` is that of "
          "those that take part, for cp_async; `barrier` an mbarrier that counts the bytes, for tma. With multicast, "
          "`slice` is the number of this CTA among those that share the tile, and `ctas` their mask.")
      .def("store", &TiledCopyBuilder::store, "coordinates"_a, "from_address"_a,
           "Appends the TMA stores of the tile at the shared address `from_address` to `coordinates`, in the thread's "
           "current bulk group: fence_proxy_async() and a barrier precede them, tma_store_commit() follows. Elements "
           "outside the tensor are not stored.");
  module.def(
      "offset_of",
      [](const layout::Layout& layout, const std::vector<Number>& coordinates) {
        return layout.at(
            layout::IntTuple::tuple(std::vector<layout::IntTuple>(coordinates.begin(), coordinates.end())));
      },
      "layout"_a, "coordinates"_a, "The offset of a layout at coordinates that are Numbers, one for each mode.");
  module.def(
      "offset_of",
      [](const layout::ComposedLayout& layout, const std::vector<Number>& coordinates) {
        return layout.at(
            layout::IntTuple::tuple(std::vector<layout::IntTuple>(coordinates.begin(), coordinates.end())));
      },
      "layout"_a, "coordinates"_a);
}

void make_mma_builder(TiledMmaBuilder* self, KernelBuilder& k, nb::handle atom, const SharedTile& a,
                      const SharedTile& b, int n, std::pair<int, int> warps, const Text& a_major, const Text& b_major,
                      std::optional<ConvertA> convert_a) {
  program::TiledMma mma{.a = {read_major(a_major), a}, .b = {read_major(b_major), b}};
  if (nb::isinstance<arch::WgmmaAtom>(atom)) {
    mma.atom = program::WgmmaChoice{nb::cast<const arch::WgmmaAtom*>(atom), n};
  } else if (nb::isinstance<arch::MmaAtom>(atom)) {
    mma.atom = program::MmaChoice{nb::cast<const arch::MmaAtom*>(atom)};
  } else {
    throw nb::type_error(fmt::format("atom must be a WgmmaAtom or an MmaAtom, got {}", shown(atom)).c_str());
  }
  mma.warps_m = warps.first;
  mma.warps_n = warps.second;
  if (convert_a) mma.convert_a = std::move(*convert_a);
  new (self) TiledMmaBuilder(k, std::move(mma));
}

/// All cells of Accumulators, which keep these alive.
nb::list cells_of(nb::handle accumulators) {
  nb::list cells;
  const std::size_t count = nb::cast<const Accumulators&>(accumulators).cells.size();
  for (std::size_t i = 0; i < count; ++i) cells.append(accumulators.attr("cell")(i));
  return cells;
}

void bind_products(nb::module_& module) {
  nb::class_<Accumulators>(module, "Accumulators", "The accumulators of a thread. TiledMmaBuilder.zeros() makes them.")
      .def(
          "cell", [](const Accumulators& self, std::size_t i) { return self.cells.at(i); }, "i"_a,
          nb::keep_alive<0, 1>(), "The cell with index `i` of `cells`.")
      .def_prop_ro("cells", &cells_of, nb::sig("def cells(self) -> list[ValueCell]"),
                   "One cell for each instruction along m and n of the warp or warpgroup, n fastest.");
  nb::class_<program::AccumulatorPair>(module, "AccumulatorPair",
                                       "Two accumulators of a thread in adjacent columns, and their place in the tile. "
                                       "TiledMmaBuilder.pairs() returns them.")
      .def_ro("low", &program::AccumulatorPair::low)
      .def_ro("high", &program::AccumulatorPair::high)
      .def_prop_ro("row", [](const program::AccumulatorPair& self) { return self.row; })
      .def_prop_ro("column", [](const program::AccumulatorPair& self) { return self.column; });
  nb::class_<TiledMmaBuilder>(
      module, "TiledMmaBuilder",
      "The product of one stage on the tensor cores, C[m, n] += A[m, k] * B[n, k]. The atom decides which instructions "
      "are appended; the calls are the same.")
      .def("__init__", &make_mma_builder, "k"_a, "atom"_a, "a"_a, "b"_a, nb::kw_only(), "n"_a = 0,
           "warps"_a = nb::make_tuple(4, 1), "a_major"_a = "k", "b_major"_a = "k", "convert_a"_a = nb::none(),
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
           nb::sig("def __init__(self, k: KernelBuilder, atom: tilewright._tilewright.arch.WgmmaAtom | "
                   "tilewright._tilewright.arch.MmaAtom, a: SharedTile, b: SharedTile, *, n: int = 0, warps: "
                   "tuple[int, int] = (4, 1), a_major: str = 'k', b_major: str = 'k', convert_a: "
                   "collections.abc.Callable[[list[Value], Number, int], list[Value]] | None = None) -> None"),
           "`atom` is a WgmmaAtom, with the `n` of one instruction, or an MmaAtom. `a` and `b` are the tiles of one "
           "stage. `warps` multiply, along m and n; warpgroups of wgmma lie along m. `convert_a(loaded, row, k)` "
           "converts the registers of an A fragment to those of the atom.")
      .def_prop_ro("uses_wgmma", &TiledMmaBuilder::uses_wgmma)
      .def_prop_ro("threads", &TiledMmaBuilder::threads, "Threads that multiply.")
      .def_prop_ro("tile_m", &TiledMmaBuilder::tile_m)
      .def_prop_ro("tile_n", &TiledMmaBuilder::tile_n)
      .def("zeros", &TiledMmaBuilder::zeros, nb::keep_alive<0, 1>(),
           "Accumulators that are zero, which costs no instruction with wgmma: pairs() and transform() append the "
           "zeros if "
           "no product may have been added. The cells themselves are undefined until then.")
      .def("fma", &TiledMmaBuilder::fma, "accumulators"_a, "a"_a, "b"_a, "warp"_a,
           "Appends the product of the stages at the shared addresses `a` and `b`. `warp`, of those that multiply, is "
           "the same in all lanes. With wgmma the product is one group, which is committed. It is not waited for, "
           "unless "
           "the atom has A in registers.")
      .def(
          "pairs",
          [](const TiledMmaBuilder& self, const Accumulators& accumulators, const Number& warp) {
            std::vector<program::AccumulatorPair> pairs;
            self.for_each_pair(accumulators, warp,
                               [&](const program::AccumulatorPair& pair) { pairs.push_back(pair); });
            return pairs;
          },
          "accumulators"_a, "warp"_a,
          "All pairs of accumulators of a thread. wgmma must have been waited for (Ring readers: drain()).")
      .def("load_fragments", &TiledMmaBuilder::load_fragments, "a"_a, "warp"_a,
           "Loads the fragments of A of a stage, for wgmma with A in registers: one Value of 4 registers for each "
           "instruction along k and m, those of one step together.")
      .def("fma_fragments", &TiledMmaBuilder::fma_fragments, "accumulators"_a, "fragments"_a, "b"_a, "first_step"_a = 0,
           "fma() with fragments of A that the caller has, each as Values of 4 b32 registers, for the instructions "
           "along "
           "k from `first_step` on. The registers are read until wgmma has been waited for.")
      .def(
          "transform",
          [](const TiledMmaBuilder& self, const Accumulators& accumulators, const Number& warp,
             const std::function<std::pair<Value, Value>(const program::AccumulatorPair&)>& change) {
            self.transform(accumulators, warp, [&](const program::AccumulatorPair& pair) {
              const auto [low, high] = change(pair);
              return std::array<Value, 2>{low, high};
            });
          },
          "accumulators"_a, "warp"_a, "change"_a,
          "Replaces each pair of accumulators of a thread by what change(pair) returns, (low, high). wgmma must have "
          "been "
          "waited for.");
}

/// The library's own GEMM.
program::Program make_gemm(const Text& symbol, const GemmArguments& arguments, const plan::FlatDesign& design) {
  const op::GemmSignature signature = op::describe(arguments.gemm());
  plan::FlatDesign complete = design;
  complete.target = kSm90a;
  const plan::ProgramGemmDesign chosen = plan::program_gemm_design(complete, signature).value_or_throw();
  return program::gemm(symbol.read("symbol"), plan::plan_program_gemm(signature, chosen).value_or_throw());
}

}  // namespace

void bind_program_tiles(nb::module_& module) {
  bind_ring(module);
  bind_roles(module);
  bind_copies(module);
  bind_products(module);
  module.def(
      "gemm", &make_gemm, "symbol"_a, "args"_a, "design"_a,
      "The library's own GEMM for sm_90a as a program, for operands with the types and layouts of `args`, a "
      "GemmArguments, and a design with a mix of atoms: BLASDesignMetadata(..., mix=\"tma_wgmma\"). The families "
      "cuda_program and mlir launch it.");
}

}  // namespace tilewright::python
