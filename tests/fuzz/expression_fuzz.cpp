// Any text is refused or evaluates to a value that can be printed, parsed back to the same value, and drawn if it is a
// layout.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tilewright/layout/draw.hpp"
#include "tilewright/layout/expression.hpp"

namespace {

using namespace tilewright;

void expect(bool condition, std::string_view what, const std::string& text) {
  if (condition) return;
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(what.size()), what.data(), text.c_str());
  std::abort();
}

// Not checked for truth values, which the expression language cannot write, and for values whose text is longer than an
// expression may be.
void expect_reads_back(const layout::Value& value) {
  const std::string printed = notation(value);
  if (std::holds_alternative<bool>(value) || printed.size() > layout::max_expression_length) return;
  const Result<layout::Value> again = layout::evaluate(printed);
  if (again) {
    expect(*again == value, "parses back to another value", printed);
  } else {
    expect(again.reason().find("nested at most") != std::string::npos, "does not parse back", printed);
  }
}

void draw(const layout::Value& value) {
  const auto* plain = std::get_if<layout::Layout>(&value);
  const auto* swizzled = std::get_if<layout::ComposedLayout>(&value);
  if (plain == nullptr && swizzled == nullptr) return;
  const layout::ComposedLayout drawn =
      plain != nullptr ? layout::ComposedLayout{layout::Swizzle(), 0, *plain} : *swizzled;
  try {
    const auto pictures = layout::offset_pictures(drawn, "");
    if (pictures) (void)to_svg(*pictures);
    (void)layout::bank_pictures(drawn, 16, "");
    (void)layout::tile_picture(drawn, {2, 2, 16}, "");
    if (plain != nullptr) (void)layout::thread_value_picture(*plain, 8, 8, "");
  } catch (const InvalidArgument&) {  // offsets may exceed 63 bits
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<layout::Value> value = layout::evaluate({reinterpret_cast<const char*>(data), size});
  if (!value) {
    expect(value.reason().starts_with("column "), "a refusal without its column", value.reason());
    return 0;
  }
  expect_reads_back(*value);
  draw(*value);
  return 0;
}
