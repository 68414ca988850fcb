// Layouts whose extents and strides are known only at run time: the tile of a thread block, its offset, and its code.
#include <cstdio>

#include "tilewright/tilewright.hpp"

namespace {

void show(const char* what, const std::string& text) { std::printf("%-22s%s\n", what, text.c_str()); }

}  // namespace

int main() {
  using namespace tilewright::layout;

  NumberScope scope;
  const Number m = scope.launch("m");
  const Number k = scope.launch("k", 64);     // a multiple of 64
  const Number lda = scope.launch("lda", 8);  // a multiple of 8
  const Number block = scope.kernel("block", ceil_div(m, 128));
  const Number thread = scope.kernel("thread", 128);

  const Layout a({m, k}, {lda, 1});
  show("A", to_string(a));
  show("contiguous A",
       to_string(coalesce(Layout({m, k}, {k, 1}))) + ", " + to_string(coalesce(Layout({m, k}, {1, m}))));

  const LayoutAndOffset tile = local_tile(a, make_tiler({128, 64}), {block, _});
  show("tiles of a block", to_string(tile.layout));
  show("their offset", to_string(tile.offset));
  show("contiguous, aligned", std::to_string(max_alignment(tile.layout)));

  const LayoutAndOffset part = local_partition(tile.layout, Layout({16, 8}, {8, 1}), thread);
  show("part of a thread", to_string(part.layout));
  const Number offset = tile.offset.number() + part.offset.number();
  show("its offset", to_string(offset));
  show("in C", c_text(offset));

  std::printf("in MLIR\n");
  ArithPrinter printer([](const Number& variable) { return "%" + to_string(variable); },
                       [](const std::string& operation) { std::printf("  %s\n", operation.c_str()); });
  (void)printer.value(offset);

  const Bindings call = Bindings().set(m, 1000).set(k, 4096).set(lda, 4096).set(block, 7).set(thread, 9);
  show("for one call", std::to_string(evaluate(offset, call)));

  // m need not be a multiple of 8: the tiling of a shape is refused, or the condition is recorded.
  ConditionRecorder recorder;
  (void)tile_to_shape(make_layout({8, 8}), {m, k});
  for (const LaunchCondition& required : recorder.conditions()) show("condition", to_string(required.condition));
  show("m = 1001", supports(recorder.conditions(), Bindings().set(m, 1001)).reason());
  return evaluate(offset, call) == (7 * 128 + 1) * 4096 + 1 ? 0 : 1;
}
