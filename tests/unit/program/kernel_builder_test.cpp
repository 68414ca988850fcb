// Recording of kernels, without tensor cores: control flow, cells, memory, and what is refused.
#include "tilewright/program/kernel_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "program_run.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/program/instructions.hpp"
#include "tilewright/program/roles.hpp"

namespace tilewright::program {
namespace {

/// out[i] = x[i] + y[i]
Program vector_add() {
  KernelBuilder k("vector_add", kSm90a, 128);
  const Number n = k.launch("n");
  const Value x = k.address("x", 4), y = k.address("y", 4), out = k.address("out", 4);
  k.set_grid(ceil_div(n, 128));
  const Number i = k.block() * 128 + k.thread();
  k.branch(less(i, n), [&] {
    const Value of_x = load_global(k, x, i * 4, RegisterType::f32);
    const Value of_y = load_global(k, y, i * 4, RegisterType::f32);
    store_global(k, out, i * 4, {add(k, of_x, of_y)});
  });
  return k.build();
}

TEST(KernelBuilder, AddsVectors) {
  const Program program = vector_add();
  const compile::Artifact artifact = compile_as_cuda(program);
  for (const int n : {1, 128, 300}) {
    std::vector<float> x(static_cast<std::size_t>(n)), y(x.size());
    std::iota(x.begin(), x.end(), 1.0F);
    std::iota(y.begin(), y.end(), 100.0F);
    const auto dx = upload(x), dy = upload(y), out = upload(std::vector<float>(x.size(), NAN));
    run(program, artifact.ptx,
        LaunchArguments()
            .integer("n", n)
            .address("x", dx.address())
            .address("y", dy.address())
            .address("out", out.address()));
    const std::vector<float> sums = download<float>(out);
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], x[i] + y[i]) << i;
  }
}

TEST(KernelBuilder, ListsAProgram) {
  EXPECT_EQ(to_string(vector_add()),
            R"( 1  kernel vector_add: sm_90a, 128 threads, cluster 1x1x1, 0 bytes of shared memory
 2    parameter n: integer
 3    parameter x: address v0
 4    parameter y: address v1
 5    parameter out: address v2
 6    grid (ceil_div(n, 128), 1, 1)
 7    if thread + block_x * 128 < n:
 8      v3: b64 = add.s64 v3, v0, thread * 4 + block_x * 512;
 9      v4: f32 = ld.global.f32 v4, [v3];
10      v5: b64 = add.s64 v5, v1, thread * 4 + block_x * 512;
11      v6: f32 = ld.global.f32 v6, [v5];
12      v7: f32 = add.rn.f32 v7, v4, v6;
13      v8: b64 = add.s64 v8, v2, thread * 4 + block_x * 512;
14      st.global.f32 [v8], v7;
)");
}

TEST(KernelBuilder, NumbersTheLinesOfAListing) {
  const Program program = vector_add();
  EXPECT_EQ(program.body.front().line, 7);
  EXPECT_THAT(to_string(program), testing::HasSubstr("\n 7    if thread"));
}

/// Two cells that change places in each iteration, a cell that only one arm changes, and a nested loop.
Program control_flow() {
  KernelBuilder k("control_flow", kSm90a, 32);
  const Number n = k.launch("n");
  const Value out = k.address("out", 4);
  const ValueCell a = k.cell(constant(k, 1.0F)), b = k.cell(constant(k, 2.0F));
  const NumberCell odd = k.cell(0, 2), steps = k.cell(0, 1 << 20);
  k.loop(n, [&](const Number& i) {
    const Value old_a = a.get();
    a.set(b.get());
    b.set(old_a);
    k.branch(equal(i % 2, 1), [&] { b.set(add(k, b.get(), constant(k, 10.0F))); });
    k.loop(i, [&](const Number&) { steps.set_within(steps.get() + 1); });
    odd.set(odd.get() ^ 1);
  });
  k.branch(equal(k.thread(), 0), [&] {
    store_global(k, out, 0, {a.get()});
    store_global(k, out, 4, {b.get()});
    store_global(k, out, 8, {to_f32(k, odd.get())});
    store_global(k, out, 12, {to_f32(k, steps.get())});
  });
  return k.build();
}

TEST(KernelBuilder, CarriesCellsThroughLoopsAndBranches) {
  const Program program = control_flow();
  const compile::Artifact artifact = compile_as_cuda(program);
  for (const int n : {0, 1, 2, 5}) {
    float a = 1, b = 2;
    int steps = 0;
    for (int i = 0; i < n; ++i) {
      std::swap(a, b);
      if (i % 2 == 1) b += 10;
      steps += i;
    }
    const auto out = upload(std::vector<float>(4, NAN));
    run(program, artifact.ptx, LaunchArguments().integer("n", n).address("out", out.address()));
    EXPECT_EQ(download<float>(out), (std::vector<float>{a, b, static_cast<float>(n % 2), static_cast<float>(steps)}));
  }
}

/// The same branch, with both arms recorded at once, and with the other arm opened after the end of the first.
Program two_arms(bool reopens) {
  KernelBuilder k("two_arms", kSm90a, 32);
  const Value out = k.address("out", 4);
  const ValueCell value = k.cell(constant(k, 1.0F)), other = k.cell(constant(k, 2.0F));
  const NumberCell number = k.cell(0, 4);
  const auto body = [&] {
    value.set(add(k, value.get(), other.get()));
    number.set(1);
  };
  const auto otherwise = [&] {
    other.set(constant(k, 7.0F));
    number.set(2);
  };
  const Number condition = less(k.thread(), 5);
  if (reopens) {
    k.branch(condition, body);
    k.reopen_otherwise();
    otherwise();
    k.end_branch();
  } else {
    k.branch(condition, body, otherwise);
  }
  store_global(k, out, k.thread() * 4, {add(k, add(k, value.get(), other.get()), to_f32(k, number.get()))});
  return k.build();
}

TEST(KernelBuilder, ReopensABranchForItsOtherArm) {
  const Program program = two_arms(true);
  const auto out = upload(std::vector<float>(32, NAN));
  run(program, compile_as_cuda(program).ptx, LaunchArguments().address("out", out.address()));
  const std::vector<float> results = download<float>(out);
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], i < 5 ? 3 + 2 + 1 : 1 + 7 + 2) << i;
  const auto statements = [](const Program& of) { return std::ranges::count(to_string(of), '\n'); };
  EXPECT_EQ(statements(program), statements(two_arms(false)));
}

/// The message of the InvalidArgument that `author` causes.
template <class Author>
std::string refusal_of(const Author& author) {
  KernelBuilder k("refused", kSm90a, 128);
  try {
    author(k);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(KernelBuilder, RefusesWhatIsNotDefinedWhereItIsUsed) {
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              Value inside;
              k.loop(4, [&](const Number&) { inside = constant(k, 1.0F); });
              add(k, inside, inside);
            }),
            "v0 was replaced by a later value of its cell, or defined in a loop or branch that has ended; what such a "
            "body changes is kept in a cell");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              Number counter;
              k.loop(4, [&](const Number& i) { counter = i; });
              to_f32(k, counter + 1);
            }),
            "i_0 exists only in a loop or branch that has ended");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              KernelBuilder other("other", kSm90a, 128);
              constant(k, 1.0F);
              absolute(k, constant(other, 1.0F));
            }),
            "a value that this kernel has not defined");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              const KernelBuilder other("other", kSm90a, 128);
              to_f32(k, other.thread() * 4);
            }),
            "thread * 4 is a Number of another kernel");
}

/// Appends an instruction that replaces the value by one that is greater by 1.
Value increment(KernelBuilder& k, const Value& value) {
  return k.instruction("add.f32 $0, $0, 0f3f800000;", {update(value)}, Effect::pure).front();
}

TEST(KernelBuilder, RefusesUpdatesThatTheNextIterationWouldNotHave) {
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              const Value before = constant(k, 1.0F);
              k.loop(4, [&](const Number&) { increment(k, before); });
            }),
            "v0 was defined before the loop in which an instruction updates it: make a cell of it");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              const ValueCell cell = k.cell(constant(k, 1.0F));
              k.loop(4, [&](const Number&) { increment(k, cell.get()); });
            }),
            "an instruction updated v1, the value of a cell, which must be set to the result before the loop ends");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              const ValueCell cell = k.cell(constant(k, 1.0F));
              k.branch(less(k.thread(), 1), [&] { increment(k, cell.get()); });
            }),
            "an instruction updated v0, the value of a cell, which must be set to the result before the branch ends");
}

/// The results, in both languages, of a kernel with one warp and the parameters n and out.
std::vector<float> results_of(const std::function<void(KernelBuilder&, const Number& n, const Value& out)>& author,
                              int n, std::size_t count) {
  KernelBuilder k("both", kSm90a, 32);
  const Number extent = k.launch("n");
  author(k, extent, k.address("out", 4));
  return results_of(k.build(), LaunchArguments().integer("n", n), count, 0);
}

TEST(KernelBuilder, LoopsCountWhateverTheirBoundsMayBe) {
  const auto author = [](KernelBuilder& k, const Number& n, const Value& out) {
    k.set_grid(3);
    const auto count = [&](int at, const Number& first, const Number& end, const Number& step) {
      k.loop(first, end, step, [&](const Number&) { add_global(k, out, at * 4, constant(k, 1.0F)); });
    };
    count(0, k.block() * 32 + k.thread(), n, k.blocks() * 32);                 // each number below n once
    count(1, 0, n - 5, 1);                                                     // which may be negative
    count(2, (k.block() * 32 + k.thread()) * 1000000, n * 1000000, 70000000);  // bounds above 2^31
    count(3, n, n + 1, 1);
    count(4, 0, -3, 3);
    count(4, 0, less(k.thread(), n) - 1, 1);
  };
  const auto expected = [](int n) {
    float of_step = 0;
    for (int i = 0; i < 96; ++i) {
      for (std::int64_t at = std::int64_t{i} * 1000000; at < std::int64_t{n} * 1000000; at += 70000000) ++of_step;
    }
    return std::vector<float>{static_cast<float>(n), static_cast<float>(96 * std::max(n - 5, 0)), of_step, 96, 0};
  };
  for (const int n : {3, 200}) EXPECT_EQ(results_of(author, n, 5), expected(n)) << n;
  EXPECT_THROW(results_of(author, 3000, 5), InvalidArgument) << "n * 1000000 is above 2^31";
  EXPECT_EQ(
      refusal_of([](KernelBuilder& k) { k.begin_loop(0, k.block() * 128, 1); }),
      "a loop ends at most at 2^31 - 1, got block_x * 128, which is from 0 to 274877906688; state what you know by "
      "assume()");
}

TEST(KernelBuilder, ALoopThatRunsLeavesWhatEachIterationSets) {
  const auto after = [](std::int64_t least) {
    KernelBuilder k("leaves", kSm90a, 32);
    const NumberCell cell = k.cell(0, 2);
    k.loop(k.launch("n", 1, least), [&](const Number&) { cell.set(1); });
    return cell.get();
  };
  EXPECT_EQ(after(1), Number(1));
  EXPECT_FALSE(after(0).is_static());
  const auto author = [](KernelBuilder& k, const Number& n, const Value& out) {
    const NumberCell set = k.cell(0, 4), may_set = k.cell(0, 4);
    k.loop(3, [&](const Number& i) {
      store_global(k, out, i * 4, {to_f32(k, set.get())});
      set.set(2);
    });
    k.loop(n, [&](const Number&) { may_set.set(3); });
    store_global(k, out, 12, {to_f32(k, set.get())});
    store_global(k, out, 16, {to_f32(k, may_set.get())});
  };
  EXPECT_EQ(results_of(author, 0, 5), (std::vector<float>{0, 2, 2, 2, 0}));
  EXPECT_EQ(results_of(author, 1, 5), (std::vector<float>{0, 2, 2, 2, 3}));
}

TEST(KernelBuilder, CellsMayShareTheirFirstValue) {
  const auto author = [](KernelBuilder& k, const Number& n, const Value& out) {
    const Value zero = constant(k, 0.0F);
    const ValueCell sum = k.cell(zero), largest = k.cell(zero);
    k.loop(n, [&](const Number& i) { sum.set(add(k, sum.get(), to_f32(k, i))); });
    k.branch(less(k.thread(), 32), [&] { largest.set(increment(k, add(k, sum.get(), zero))); });
    store_global(k, out, 0, {sum.get(), largest.get(), zero, sum.get()});
  };
  EXPECT_EQ(results_of(author, 4, 4), (std::vector<float>{6, 7, 0, 6}));
}

TEST(KernelBuilder, BoundsAndConditionsMayBeRemainders) {
  const auto author = [](KernelBuilder& k, const Number& n, const Value& out) {
    k.loop(n % 4, [&](const Number&) { add_global(k, out, 0, constant(k, 1.0F)); });  // & in C, which binds less than <
    k.branch(n % 4, [&] { add_global(k, out, 4, constant(k, 1.0F)); });
  };
  for (const int n : {0, 2, 3, 5, 8})
    EXPECT_EQ(results_of(author, n, 2),
              (std::vector<float>{static_cast<float>(32 * (n % 4)), n % 4 == 0 ? 0.0F : 32.0F}))
        << n;
}

TEST(KernelBuilder, BothArmsMaySetACellToTheSameValue) {
  const auto author = [](KernelBuilder& k, const Number& n, const Value& out) {
    const ValueCell a = k.cell(constant(k, 1.0F)), b = k.cell(constant(k, 2.0F));
    const Value other = b.get();
    k.branch(
        less(k.thread(), n), [&] { a.set(other); }, [&] { a.set(other), b.set(constant(k, 3.0F)); });
    store_global(k, out, 0, {a.get()});
  };
  EXPECT_EQ(results_of(author, 40, 1), (std::vector<float>{2}));
}

TEST(KernelBuilder, ComparesAndConverts) {
  const auto author = [](KernelBuilder& k, const Number& n, const Value& out) {
    const Value two = constant(k, 2.0F), third = divide(k, two, constant(k, 6.0F));
    const Value wide = square_root(k, add(k, constant_f64(k, 2.25), constant_f64(k, 4.0)));
    const std::vector<Value> results{
        to_f32(k, n - 5),
        to_f32(k, n * 1000000000),
        to_f32(k, less(k, third, two) + less_equal(k, two, two) * 2 + equal(k, third, two) * 4 + less(k, two, two) * 8),
        absolute(k, subtract(k, third, two)),
        to_f32(k, equal(k, wide, constant_f64(k, 2.5))),
        shuffle(k, to_f32(k, k.thread()), n),
        to_f32(k, k.number(to_b32(k, n + 7))),
        join_registers(k, {third, two})[1],
    };
    for (std::size_t i = 0; i < results.size(); ++i)
      store_global(k, out, static_cast<std::int64_t>(i) * 4, {results[i]});
  };
  EXPECT_EQ(results_of(author, 3, 8), (std::vector<float>{-2, 3e9F, 3, 2 - 2.0F / 6, 1, 3, 10, 2}));
}

TEST(KernelBuilder, RefusesCallsInAnotherOrder) {
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              k.branch(less(k.thread(), 1), [] {});
              synchronize(k);
              k.reopen_otherwise();
            }),
            "the other arm of a branch must directly follow the end of its first arm");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              const ValueCell cell = k.cell(constant(k, 1.0F)), other = k.cell(constant(k, 2.0F));
              k.branch(less(k.thread(), 1), [] {});
              cell.set(other.get());
              k.reopen_otherwise();
            }),
            "the other arm of a branch must directly follow the end of its first arm");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              k.begin_loop(0, 4, 1);
              const NumberCell cell = k.cell(0, 4);
              k.end_loop();
              k.cell(0, 4);
              cell.get();
            }),
            "the cell was made in a loop or branch that has ended");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              k.build();
              synchronize(k);
            }),
            "the kernel has been built");
}

TEST(KernelBuilder, RefusesBadNumbers) {
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.shared(300000); }),
            "the CTA needs 300000 bytes of shared memory, sm_90a has 232448");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.cell(5, 4); }),
            "a cell for numbers below 4 cannot have 5, which is from 5 to 5");
  EXPECT_EQ(
      refusal_of([](KernelBuilder& k) { k.cell(k.thread(), 4); }),
      "a cell for numbers below 4 cannot have thread, which is from 0 to 127; set_within() takes what you know to "
      "be in range");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.cell(0, std::int64_t{1} << 40); }),
            "a cell is for 1 to 2^31 numbers, from 0 on; got 1099511627776");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.set_grid(k.thread()); }),
            "the grid must be known at launch: thread has values of the kernel");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.set_grid(2), k.set_grid(3); }), "the grid has been set");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { KernelBuilder("float", k.target(), 32); }),
            "a kernel cannot be named 'float', a word of C++");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.instruction("bar.warp.sync 0xffffffff", {}); }),
            "the instruction 'bar.warp.sync 0xffffffff' does not end with ; or }");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              store_global(k, k.address("x"), 0, {constant(k, 1.0F), to_b32(k, 1)});
            }),
            "the registers of an operand have one type, got f32 and b32");
  EXPECT_EQ(refusal_of([](KernelBuilder&) {
              KernelBuilder ampere("ampere", Target{80}, 128);
              mbarrier_wait(ampere, ampere.shared(8).address, 0);
            }),
            "mbarrier.try_wait needs sm_90, the target is sm_80");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { set_registers(k, 44, true); }),
            "setmaxnreg takes multiples of 8 from 24 to 256, got 44");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.instruction("mov.b32 $0, 1;", {}); }),
            "the instruction 'mov.b32 $0, 1;' names $0, but has 0 operands");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.launch("n"), k.launch("n"); }),
            "the kernel has two parameters named 'n'");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.computed("x", k.thread() + 1); }),
            "'x' cannot be computed before the launch: thread + 1 has values of the kernel");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) {
              Roles(k, {{"all", 2}});
            }),
            "the roles have 2 warpgroups of 128 threads, the kernel has 128 threads");
  EXPECT_EQ(refusal_of([](KernelBuilder& k) { k.begin_loop(0, 4, 1), k.build(); }),
            "1 loops or branches are still open");
}

TEST(ProgramLaunch, ChecksArrays) {
  KernelBuilder k("arrays", kSm90a, 32);
  const Number m = k.launch("m"), columns = k.launch("k"), line = k.launch("ld");
  k.address("a"), k.address("plain");
  k.declare_tensor("a", {m, columns}, {line, 1});
  EXPECT_THROW(k.declare_tensor("b", {}, {}), InvalidArgument);
  const Program program = k.build();
  const auto accepts = [&](const char* name, std::vector<std::int64_t> extents, std::vector<std::int64_t> strides,
                           std::int64_t rows = 4, std::int64_t ld = 8) {
    const LaunchArguments integers = LaunchArguments().integer("m", rows).integer("k", 8).integer("ld", ld);
    return bool{check_array(program, integers, name, {std::move(extents), std::move(strides)})};
  };
  EXPECT_TRUE(accepts("a", {4, 8}, {8, 1}));
  EXPECT_TRUE(accepts("a", {6, 8}, {8, 1})) << "the first rows";
  EXPECT_TRUE(accepts("a", {32}, {1}));
  EXPECT_TRUE(accepts("a", {2, 2, 8}, {16, 8, 1}));
  EXPECT_TRUE(accepts("a", {8, 4}, {1, 8}, 8, 8) == false) << "rows beyond the array";
  EXPECT_TRUE(accepts("a", {4, 8}, {16, 1}, 4, 16)) << "padded rows";
  EXPECT_TRUE(accepts("a", {1, 8}, {1, 1}, 1)) << "the stride of one row does not matter";
  EXPECT_TRUE(accepts("a", {0, 8}, {8, 1}));
  EXPECT_FALSE(accepts("a", {4, 8}, {1, 4}));
  EXPECT_FALSE(accepts("a", {2, 16}, {16, 1}));
  EXPECT_FALSE(accepts("a", {31}, {1}));
  EXPECT_FALSE(accepts("a", {4, 8}, {8, 1}, 4, 4)) << "rows that overlap";
  EXPECT_TRUE(accepts("plain", {4, 8}, {9, 1}));
  EXPECT_FALSE(accepts("plain", {4, 8}, {1, 4}));
  EXPECT_FALSE(accepts("plain", {4}, {2}));
}

TEST(ProgramLaunch, ChecksArguments) {
  KernelBuilder k("checked", kSm90a, 32);
  const Number n = k.launch("n", 8, 8, 1024);
  k.address("x", 16);
  k.require(equal(n % 64, 0), "n must be a multiple of 64", n);
  const Program program = k.build();
  const auto reason = [&](std::int64_t value, std::uint64_t address) {
    return check_arguments(program, LaunchArguments().integer("n", value).address("x", address)).reason();
  };
  EXPECT_EQ(reason(64, 256), "");
  EXPECT_EQ(reason(0, 256), "n must be from 8 to 1024, got 0");
  EXPECT_EQ(reason(65, 256), "n must be a multiple of 8, got 65");
  EXPECT_EQ(reason(72, 256), "n must be a multiple of 64, got 72");
  EXPECT_EQ(reason(64, 264), "the address of x must be a multiple of 16 bytes, got 0x108");
  EXPECT_EQ(check_arguments(program, LaunchArguments().integer("n", 64)).reason(),
            "the kernel's parameter 'x' has no argument");
}

}  // namespace
}  // namespace tilewright::program
