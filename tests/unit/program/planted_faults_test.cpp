// Programs with one planted fault of synchronisation each: the emulator must find it and name the program's line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gemm_problem.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/emulator/checks.hpp"
#include "tilewright/program/instructions.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tilewright/program/ring.hpp"
#include "tilewright/program/roles.hpp"
#include "tilewright/program/tiled_copy.hpp"
#include "tilewright/program/tiled_mma.hpp"
#include "tilewright/program/weight_gemm.hpp"

namespace tilewright::program {
namespace {

bool has(const Instruction& instruction, std::string_view part) {
  return instruction.text.find(part) != std::string::npos;
}
bool has_any(const Instruction& instruction, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return has(instruction, part); });
}

/// The number with the variable `of` replaced.
Number replaced(const Number& number, const Number& of, const Number& by) {
  if (number == of) return by;
  if (number.is_static() || number.node()->op == layout::NumberOp::variable) return number;
  const layout::NumberNode& node = *number.node();
  return node.scope->intern(node.op, replaced(node.a, of, by), replaced(node.b, of, by), replaced(node.c, of, by));
}

/// Whether the variable is the stage of a ring of two, or a parity.
bool is_stage(const Number& variable) {
  return variable.kind() == layout::NumberKind::loop && variable.lower() == 0 && variable.upper() == 1;
}
/// Appends the stages in an address.
void collect_stages(const Number& address, std::vector<Number>& stages) {
  if (address.is_static()) return;
  const layout::NumberNode& node = *address.node();
  if (node.op == layout::NumberOp::variable) {
    if (is_stage(address) && std::ranges::find(stages, address) == stages.end()) stages.push_back(address);
    return;
  }
  for (const Number& operand : {node.a, node.b, node.c}) collect_stages(operand, stages);
}
/// The stages in the address that a TMA load writes or a wgmma reads; none of other instructions.
std::vector<Number> stages_of(const Instruction& instruction, const Operand& operand) {
  std::vector<Number> stages;
  const bool is_address = has(instruction, "wgmma.mma_async") ||
                          (has(instruction, "mbarrier::complete_tx") && &operand == instruction.operands.data());
  if (is_address && operand.kind == Operand::Kind::number && !is_stage(operand.number))
    collect_stages(operand.number, stages);
  return stages;
}

/// Leaves an instruction that does nothing; values that it updates stay as they are.
void remove(Instruction& instruction) { instruction.text = "// removed"; }

/// A kind of fault, which a statement of a block may have in a number of ways.
struct FaultClass {
  std::string name;
  std::function<int(const Block&, std::size_t at)> ways;
  std::function<void(Block&, std::size_t at, int way)> plant;
};

/// A fault of one instruction.
FaultClass of_instruction(std::string name, std::function<int(const Instruction&)> ways,
                          std::function<void(Instruction&, int way)> change) {
  return {std::move(name),
          [ways = std::move(ways)](const Block& block, std::size_t at) {
            const auto* const instruction = std::get_if<Instruction>(&block[at].node);
            return instruction == nullptr ? 0 : ways(*instruction);
          },
          [change = std::move(change)](Block& block, std::size_t at, int way) {
            change(std::get<Instruction>(block[at].node), way);
          }};
}
FaultClass removal(std::string name, std::string_view part) {
  return of_instruction(
      std::move(name), [part](const Instruction& each) { return has(each, part) ? 1 : 0; },
      [](Instruction& each, int) { remove(each); });
}
/// Adds one of some differences to an operand.
FaultClass difference(std::string name, std::string_view part, std::size_t operand, std::vector<int> differences) {
  const int ways = static_cast<int>(differences.size());
  return of_instruction(
      std::move(name), [=](const Instruction& each) { return has(each, part) ? ways : 0; },
      [=, by = std::move(differences)](Instruction& each, int way) {
        each.operands[operand].number = each.operands[operand].number + by[static_cast<std::size_t>(way)];
      });
}

bool contains(const Statement& statement, bool (*is)(const Instruction&)) {
  if (const auto* const instruction = std::get_if<Instruction>(&statement.node)) return is(*instruction);
  const auto any = [&](const Block& block) {
    return std::ranges::any_of(block, [&](const Statement& each) { return contains(each, is); });
  };
  if (const auto* const loop = std::get_if<Loop>(&statement.node)) return any(loop->body);
  if (const auto* const branch = std::get_if<Branch>(&statement.node))
    return any(branch->body) || any(branch->otherwise);
  return false;
}
bool is_release(const Instruction& each) { return has(each, "mbarrier.arrive.shared"); }
bool ends_reads(const Instruction& each) { return has_any(each, {"wgmma.wait_group", "ldmatrix"}); }

/// The last statement in front of `at` that reads a stage or waits for its reads; `at` if there is none, or if it does
/// not release a stage.
std::size_t end_of_reads(const Block& block, std::size_t at) {
  const auto* const branch = std::get_if<Branch>(&block[at].node);
  const bool computes = branch == nullptr || !branch->numbers.empty() || !branch->values.empty();
  if (computes && !std::holds_alternative<Instruction>(block[at].node)) return at;
  if (!contains(block[at], is_release)) return at;
  for (std::size_t i = at; i-- > 0;) {
    if (contains(block[i], ends_reads)) return i;
  }
  return at;
}

/// Adds 1 to the number of groups that a wait leaves pending.
FaultClass longer_wait() { return difference("wait count too large", "wait_group", 0, {1}); }

FaultClass other_stage() {
  return of_instruction(
      "other stage",
      [](const Instruction& each) {
        std::size_t ways = 0;
        for (const Operand& operand : each.operands) ways += stages_of(each, operand).size();
        return static_cast<int>(ways);
      },
      [](Instruction& each, int way) {
        for (Operand& operand : each.operands) {
          for (const Number& stage : stages_of(each, operand)) {
            if (way-- == 0) operand.number = replaced(operand.number, stage, 1 - stage);
          }
        }
      });
}

FaultClass early_release() {
  return {"release before the last read",
          [](const Block& block, std::size_t at) { return end_of_reads(block, at) == at ? 0 : 1; },
          [](Block& block, std::size_t at, int) {
            const auto begin = block.begin();
            const auto release = begin + static_cast<std::ptrdiff_t>(at);
            std::rotate(begin + static_cast<std::ptrdiff_t>(end_of_reads(block, at)), release, release + 1);
          }};
}

FaultClass doubled_release() {
  return {"arrival doubled",
          [](const Block& block, std::size_t at) {
            return std::holds_alternative<Instruction>(block[at].node) && contains(block[at], is_release) ? 1 : 0;
          },
          [](Block& block, std::size_t at, int) {
            const Statement release = block[at];
            block.insert(block.begin() + static_cast<std::ptrdiff_t>(at), release);
          }};
}

struct Subject {
  const char* name;
  Program (*make)();
  int (*wrong)(const Program&, const std::string& ptx);  // runs it; the number of wrong elements
  bool loads_by_tma = true;
  /// It reads stages by threads alone, and fences before it releases them.
  bool fences_before_reuse = false;
  /// It reads a stage when it has waited for the next one, too, so that reading the other stage breaks no rule.
  bool reads_ahead = false;
  /// No one waits for releases of stages in fewer loops than this.
  int loops = 1;
  bool uses_flags = false;  // of global memory
};

/// The classes whose faults break a rule at every place of the program where they can be planted.
std::vector<FaultClass> fault_classes(const Subject& subject) {
  std::vector<FaultClass> all{
      removal("fence.proxy.async removed", "fence.proxy.async"),
      removal("wgmma.fence removed", "wgmma.fence"),
      removal("wait for an mbarrier omitted", "try_wait"),
      removal("wait for a group omitted", "wait_group"),
      removal("commit omitted", "commit_group"),
      removal("arrival omitted", "mbarrier.arrive"),
      removal("barrier of threads omitted", "barrier.sync"),
      removal("cluster barrier omitted", "barrier.cluster"),
      removal("wait for a flag omitted", "ld.acquire"),
      of_instruction(
          "flag without release", [](const Instruction& each) { return has(each, "st.release") ? 1 : 0; },
          [](Instruction& each, int) { each.text.replace(each.text.find("release"), 7, "relaxed"); }),
      longer_wait(),
      early_release(),
      doubled_release(),
      difference("arrival count too large", "mbarrier.init", 1, {1}),
      difference("expect_tx bytes off", "expect_tx", 1, {-16, 16}),
      difference("barrier of other threads", "barrier.sync.aligned $0, $1", 1, {-32, 32}),
      of_instruction(
          "fence of another proxy", [](const Instruction& each) { return has(each, "fence.proxy.async") ? 2 : 0; },
          [](Instruction& each, int way) {
            each.text = way == 0 ? "fence.proxy.async.global;" : "fence.acq_rel.cta;";
          }),
      of_instruction(
          "phase flipped", [](const Instruction& each) { return has(each, "try_wait") ? 1 : 0; },
          [](Instruction& each, int) { each.operands[1].number = each.operands[1].number ^ 1; }),
      of_instruction(
          "arrival count too small",
          [](const Instruction& each) {
            return has(each, "mbarrier.init") && !each.operands[1].number.is_static(1) ? 1 : 0;
          },
          [](Instruction& each, int) { each.operands[1].number = each.operands[1].number - 1; }),
      of_instruction(
          "multicast to fewer CTAs", [](const Instruction& each) { return has(each, "multicast") ? 1 : 0; },
          [](Instruction& each, int) {
            for (Operand& operand : each.operands) {
              if (operand.kind == Operand::Kind::number && operand.type == RegisterType::b16) operand.number = 1;
            }
          }),
  };
  if (subject.loads_by_tma) all.push_back(removal("fence.mbarrier_init removed", "fence.mbarrier_init"));
  if (!subject.reads_ahead) all.push_back(other_stage());
  return all;
}

// Programs.

/// A GEMM as an author writes it: each thread of the consumer releases a stage.
Program gemm_of_threads(CopyAtom copy) {
  constexpr int kM = 64, kN = 64, kK = 64;
  KernelBuilder k("gemm", kSm90a, 256);
  const Number m = k.launch("m", 1, 1), n = k.launch("n", 1, 1), depth = k.launch("k", 1, 1);
  const Number lda = k.launch("lda", 8), ldb = k.launch("ldb", 8), ldd = k.launch("ldd");
  const SharedTile tile{arch::smem_tile({.element_bits = 16, .mn = kM, .k = kK}).value_or_throw(), DType::bf16};
  const TiledCopyBuilder load_a(k, copy, {"a", DType::bf16, {m, depth}, {lda, 1}}, tile, 128);
  const TiledCopyBuilder load_b(k, copy, {"b", DType::bf16, {n, depth}, {ldb, 1}}, tile, 128);
  const arch::WgmmaAtom* const atom =
      arch::find_wgmma_atom(DType::bf16, DType::bf16, DType::f32, arch::OperandSource::shared_memory);
  const TiledMmaBuilder mma(k, {.atom = WgmmaChoice{atom, kN}, .a = {.tile = tile}, .b = {.tile = tile}});
  const Value d = k.address("d", 4);
  k.set_grid(ceil_div(m, kM), ceil_div(n, kN));
  const bool by_tma = copy == CopyAtom::tma;
  const Ring ring(k, {.stages = 2,
                      .stage_bytes = 2 * tile.bytes(),
                      .transaction_bytes = load_a.transaction_bytes() + load_b.transaction_bytes(),
                      .writer_arrivals = by_tma ? 1 : 128,
                      .reader_arrivals = mma.threads()});
  k.branch(equal(k.thread(), 0), [&] { ring.initialise(); });
  synchronize(k);
  const Roles roles(k, {{"producer"}, {"consumer"}});
  const Number steps = ceil_div(depth, kK);
  roles.play("producer", [&](const RoleThread& me) {
    const auto produce = [&] {
      const RingWriter writer(k, ring);
      k.loop(steps, [&](const Number& step) {
        writer.write([&](const Number& stage) {
          const TiledCopyBuilder::Call call{.thread = me.thread, .barrier = ring.full(stage)};
          load_a.copy({k.block(0) * kM, step * kK}, ring.stage(stage), call);
          load_b.copy({k.block(1) * kN, step * kK}, ring.stage(stage) + tile.bytes(), call);
          if (!by_tma) cp_async_arrive(k, ring.full(stage));
        });
      });
    };
    if (!by_tma) return produce();
    k.branch(less(me.thread, 32), [&] { by_one_thread(k, produce); });
  });
  roles.play("consumer", [&](const RoleThread& me) {
    const Number warp = broadcast(k, me.thread / 32);
    const RingReader reader(k, ring);
    const Accumulators products = mma.zeros();
    k.loop(steps, [&](const Number&) {
      reader.read_by_wgmma(products.cells, [&](const Number& stage) {
        mma.fma(products, ring.stage(stage), ring.stage(stage) + tile.bytes(), warp);
      });
    });
    reader.drain(products.cells);
    mma.for_each_pair(products, warp, [&](const AccumulatorPair& pair) {
      const Number row = k.block(0) * kM + pair.row, column = k.block(1) * kN + pair.column;
      for (const auto& [at, value] : {std::pair{column, pair.low}, std::pair{column + 1, pair.high}})
        store_global_if(k, both(less(row, m), less(at, n)), d, (row * ldd + at) * 4, {value});
    });
  });
  return k.build();
}

int run_gemm_of_threads(const Program& program, const std::string& ptx) {
  constexpr int m = 64, n = 64, depth = 328;
  const auto element = [](int i, int factor) { return i * factor % 7 - 3; };
  std::vector<std::uint16_t> a, b;
  for (int i = 0; i < m * depth; ++i) a.push_back(f64_to_bf16(element(i, 5)));
  for (int i = 0; i < n * depth; ++i) b.push_back(f64_to_bf16(element(i, 3)));
  const auto on_a = upload(a), on_b = upload(b), on_d = upload(std::vector<float>(m * n, -1));
  LaunchArguments arguments;
  arguments.integer("m", m).integer("n", n).integer("k", depth).integer("lda", depth).integer("ldb", depth);
  arguments.integer("ldd", n).address("a", on_a.address()).address("b", on_b.address()).address("d", on_d.address());
  run(program, ptx, arguments);
  const std::vector<float> d = download<float>(on_d);
  int wrong = 0;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      int sum = 0;
      for (int i = 0; i < depth; ++i) sum += element(row * depth + i, 5) * element(column * depth + i, 3);
      wrong += d[static_cast<std::size_t>(row * n + column)] == static_cast<float>(sum) ? 0 : 1;
    }
  }
  return wrong;
}

int run_gemm(const Program& program, const std::string& ptx) {
  int wrong = 0;
  for (const int k : {136, 128}) {  // an odd and an even number of steps
    const Problem problem(k);
    run(program, ptx, problem.arguments());
    wrong += problem.wrong();
  }
  return wrong;
}

int run_weight_gemm(const Program& program, const std::string& ptx) {
  constexpr int m = 328, n = 40, depth = 1992, lda = 1992, lds = 328;
  const auto packed = upload(std::vector<std::byte>(static_cast<std::size_t>(packed_bytes(DType::s4, m, depth))));
  const auto activations = upload(std::vector<std::uint16_t>(n * lda)),
             scales = upload(std::vector<std::uint16_t>(32 * lds));
  const auto d = upload(std::vector<std::uint16_t>(m * n, 0x7fff));
  LaunchArguments arguments;
  arguments.integer("m", m).integer("n", n).integer("k", depth).integer("ldd", m).integer("ld_activations", lda);
  arguments.integer("ld_scales", lds)
      .address("weights", packed.address())
      .address("activations", activations.address());
  run(program, ptx, arguments.address("scales", scales.address()).address("d", d.address()));
  return static_cast<int>(std::ranges::count_if(download<std::uint16_t>(d), [](int element) { return element != 0; }));
}

Program split_weight_gemm() {
  return weight_gemm("weight_gemm",
                     {.group = 64, .tile_n = 32, .tile_k = 64, .stages = 2, .consumers = 1, .split_k = 2})
      .value_or_throw();
}
Program weight_gemm_of_parts() {
  return weight_gemm("weight_gemm",
                     {.group = 64, .tile_n = 32, .tile_k = 128, .stages = 2, .consumers = 1, .consumers_k = 2})
      .value_or_throw();
}
/// One CTA or cluster computes all tiles.
Program persistent_weight_gemm(WeightGemmDescription about) {
  about.group = about.tile_k = 64;
  about.tile_n = 32;
  about.stages = 2;
  Program program = weight_gemm("weight_gemm", about).value_or_throw();
  program.grid = {about.cluster_m, 1, 1};
  return program;
}
/// 12 tiles of 32 steps, of which five CTAs share four: four CTAs would have three whole tiles each.
Program streamed_weight_gemm() {
  return weight_gemm("weight_gemm",
                     {.group = 64, .tile_n = 32, .tile_k = 64, .stages = 2, .consumers = 1, .streaming_ctas = 5})
      .value_or_throw();
}
Program stored_weight_gemm() { return persistent_weight_gemm({.stores_by_tma = true}); }
Program shared_weight_gemm() { return persistent_weight_gemm({.cluster_m = 2}); }

constexpr Subject kSubjects[] = {
    {"tma_wgmma",
     [] {
       return gemm_of({AtomMix::tma_wgmma, 4, 1});
     },
     run_gemm},
    {"tma_wgmma_of_clusters",
     [] {
       return gemm_of({AtomMix::tma_wgmma, 4, 1, 2});
     },
     run_gemm},
    {"cp_async_wgmma",
     [] {
       return gemm_of({AtomMix::cp_async_wgmma, 4, 1});
     },
     run_gemm, false},
    {"tma_mma",
     [] {
       return gemm_of({AtomMix::tma_mma, 2, 2});
     },
     run_gemm, true, true},
    {"tma_register_wgmma",
     [] {
       return gemm_of({AtomMix::tma_register_wgmma, 4, 1});
     },
     run_gemm},
    {"threads_tma", [] { return gemm_of_threads(CopyAtom::tma); }, run_gemm_of_threads},
    {"threads_cp_async", [] { return gemm_of_threads(CopyAtom::cp_async); }, run_gemm_of_threads, false},
    {"weights_of_split_k", split_weight_gemm, run_weight_gemm, true, false, true, 2},
    {"weights_of_warpgroups_along_k", weight_gemm_of_parts, run_weight_gemm, true, false, true, 2},
    {"weights_of_streams", streamed_weight_gemm, run_weight_gemm, true, false, true, 2, true},
    {"weights_stored_by_tma", stored_weight_gemm, run_weight_gemm, true, false, true},
    {"weights_of_clusters", shared_weight_gemm, run_weight_gemm, true, false, true},
};

struct PlantedFault {
  const FaultClass* fault;
  int line;
  int way;
};

/// Calls `visit` for each statement of a block, and of those within loops, with the number of loops around it.
void for_each_statement(Block& block, int loops, const std::function<void(Block&, std::size_t, int)>& visit) {
  for (std::size_t at = 0; at < block.size(); ++at) {
    if (auto* const loop = std::get_if<Loop>(&block[at].node)) for_each_statement(loop->body, loops + 1, visit);
    if (auto* const branch = std::get_if<Branch>(&block[at].node)) {
      for_each_statement(branch->body, loops, visit);
      for_each_statement(branch->otherwise, loops, visit);
    }
    visit(block, at, loops);
  }
}

/// All faults of these classes that a program may have.
std::vector<PlantedFault> faults_of(Program& program, const std::vector<FaultClass>& classes, const Subject& subject) {
  std::vector<PlantedFault> faults;
  for_each_statement(program.body, 0, [&](Block& block, std::size_t at, int loops) {
    if (loops < subject.loops && contains(block[at], is_release)) return;
    for (const FaultClass& each : classes) {
      const int ways = each.ways(block, at);
      for (int way = 0; way < ways; ++way) faults.push_back({&each, block[at].line, way});
    }
  });
  return faults;
}

Program planted(const Program& original, const PlantedFault& fault) {
  Program program = original;
  bool done = false;
  for_each_statement(program.body, 0, [&](Block& block, std::size_t at, int) {
    if (done || block[at].line != fault.line) return;
    done = true;
    fault.fault->plant(block, at, fault.way);
  });
  EXPECT_TRUE(done);
  number_lines(program);
  return program;
}

class PlantedFaults : public testing::TestWithParam<Subject> {};

TEST_P(PlantedFaults, AreFoundWithALine) {
  const OtherTestDevice device(
      {.check_global = GetParam().uses_flags, .require_reuse_fences = GetParam().fences_before_reuse});
  Program program = GetParam().make();
  number_lines(program);
  EXPECT_EQ(GetParam().wrong(program, compile_to_ptx(program)), 0);
  const std::vector<FaultClass> classes = fault_classes(GetParam());
  const std::vector<PlantedFault> faults = faults_of(program, classes, GetParam());
  EXPECT_GT(faults.size(), 20U);
  for (const PlantedFault& fault : faults) {
    const Program faulty = planted(program, fault);
    try {
      const int wrong = GetParam().wrong(faulty, compile_to_ptx(faulty));
      ADD_FAILURE() << fault.fault->name << ", way " << fault.way << ", is not found at line " << fault.line << "; "
                    << wrong << " elements are wrong";
    } catch (const emulator::EmulationFinding& found) {
      EXPECT_THAT(found.what(), testing::HasSubstr(program.symbol + ".tw:"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, PlantedFaults, testing::ValuesIn(kSubjects),
                         [](const testing::TestParamInfo<Subject>& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tilewright::program
