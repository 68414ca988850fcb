// tilewright layout: evaluates and draws expressions of the layout algebra.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/text.hpp"
#include "tilewright/layout/draw.hpp"
#include "tilewright/layout/expression.hpp"
#include "tilewright/layout/function_table.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/extents.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/wgmma_picture.hpp"

namespace tilewright::cli {
namespace {

using layout::ComposedLayout;
using layout::Picture;
using layout::Value;

struct LayoutOptions {
  ExitCode (*act)(const LayoutOptions&) = nullptr;
  std::vector<std::string> expressions;
  std::vector<std::string> titles;
  std::vector<std::string> wgmma;  // "a" or "b" for each expression
  std::string thread_values;       // "MxN"
  std::string tile;                // "MxN"
  std::string svg;
  std::string latex;
  bool banks = false;
  bool cell_per_tile = false;
  bool json = false;
  int bits = 0;
};

ExitCode eval(const LayoutOptions& options) {
  std::vector<std::string> results;
  for (const std::string& expression : options.expressions)
    results.push_back(notation(layout::evaluate(expression).value_or_throw()));
  for (const std::string& result : results) fmt::print("{}\n", result);
  return ExitCode::ok;
}

ExitCode list_functions(const LayoutOptions& options) {
  if (options.json) {
    nlohmann::ordered_json functions = nlohmann::ordered_json::array();
    for (const layout::Function& function : layout::functions())
      functions.push_back(
          {{"name", function.name}, {"signature", function.signature()}, {"meaning", function.meaning}});
    fmt::print("{}\n", nlohmann::ordered_json{{"functions", functions}}.dump(2));
    return ExitCode::ok;
  }
  for (const layout::Function& function : layout::functions())
    fmt::print("{}\n    {}\n", function.signature(), function.meaning);
  return ExitCode::ok;
}

// The value as a layout with a swizzle. @throws InvalidArgument if it is not a layout
ComposedLayout drawable(const Value& value) {
  if (const auto* composed = std::get_if<ComposedLayout>(&value)) return *composed;
  if (const auto* plain = std::get_if<layout::Layout>(&value)) return {layout::Swizzle(), 0, *plain};
  const auto* part = std::get_if<layout::LayoutAndOffset>(&value);
  if (part != nullptr && part->offset.is_integer()) return {layout::Swizzle(), part->offset.value(), part->layout};
  throw InvalidArgument(fmt::format("only layouts can be drawn, got a {}: {}", kind_of(value), notation(value)));
}

WgmmaOperand parse_operand(const std::string& text) {
  if (text != "a" && text != "b")
    throw InvalidArgument(fmt::format("--wgmma must be a or b, got '{}'", printable(text, 40)));
  return text == "a" ? WgmmaOperand::a : WgmmaOperand::b;
}

int element_bits(const LayoutOptions& options, const char* option) {
  if (options.bits == 0) throw InvalidArgument(fmt::format("{} needs --bits, the width of an element in bits", option));
  return options.bits;
}

Picture thread_values(const LayoutOptions& options, const Value& value, const std::string& title) {
  const auto* plain = std::get_if<layout::Layout>(&value);
  if (plain == nullptr)
    throw InvalidArgument(
        fmt::format("--thread-values draws only layouts, got a {}: {}", kind_of(value), notation(value)));
  const auto [rows, columns] = parse_extents<2>(options.thread_values, "--thread-values");
  return layout::thread_value_picture(*plain, rows, columns, title).value_or_throw();
}

std::vector<Picture> pictures_of(const LayoutOptions& options, const Value& value, const std::string& title,
                                 const std::string& operand) {
  if (!options.thread_values.empty()) return {thread_values(options, value, title)};
  const ComposedLayout layout = drawable(value);
  if (!operand.empty())
    return {wgmma_picture(layout, parse_operand(operand), element_bits(options, "--wgmma"), title).value_or_throw()};
  if (!options.tile.empty()) {
    const auto [rows, columns] = parse_extents<2>(options.tile, "--tile");
    if (!options.cell_per_tile) return {layout::tiled_picture(layout, rows, columns, title).value_or_throw()};
    return {layout::tile_picture(layout, {rows, columns, options.bits}, title).value_or_throw()};
  }
  if (options.banks) return bank_pictures(layout, element_bits(options, "--banks"), title).value_or_throw();
  return offset_pictures(layout, title).value_or_throw();
}

std::vector<Picture> pictures_of(const LayoutOptions& options) {
  if (!options.wgmma.empty() && options.wgmma.size() != options.expressions.size())
    throw InvalidArgument(fmt::format("--wgmma must be given once per expression: given {} times for {} expressions",
                                      options.wgmma.size(), options.expressions.size()));
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i < options.expressions.size(); ++i) {
    const Value value = layout::evaluate(options.expressions[i]).value_or_throw();
    const std::string title = i < options.titles.size() ? options.titles[i] : notation(value);
    const std::string operand = options.wgmma.empty() ? "" : options.wgmma[i];
    for (Picture& picture : pictures_of(options, value, title, operand)) pictures.push_back(std::move(picture));
  }
  return pictures;
}

void write(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
  } else {
    write_output(path, std::as_bytes(std::span(text)));
  }
}

ExitCode draw(const LayoutOptions& options) {
  std::vector<NamedFile> outputs;
  for (const auto& [option, path] : {std::pair{"--svg", options.svg}, {"--latex", options.latex}}) {
    if (!path.empty() && path != "-") outputs.push_back({option, path});
  }
  check_outputs(outputs, {});
  const std::vector<Picture> pictures = pictures_of(options);
  if (!options.svg.empty()) write(options.svg, to_svg(pictures));
  if (!options.latex.empty()) write(options.latex, to_latex(pictures));
  if (options.svg.empty() && options.latex.empty()) fmt::print("{}", to_terminal(pictures, isatty(STDOUT_FILENO) == 1));
  return ExitCode::ok;
}

void add_draw_options(CLI::App& app, LayoutOptions& options) {
  app.add_option("expression", options.expressions, "layouts to draw side by side, such as '(4,8):(8,1)'")->required();
  app.add_option("--title", options.titles,
                 "title of a picture, once per expression; default: the value in layout notation")
      ->allow_extra_args(false);
  app.add_option("--svg", options.svg, "write SVG to this file, or with - to the standard output")->type_name("FILE");
  app.add_option("--latex", options.latex, "write LaTeX (TikZ) to this file, or with - to the standard output")
      ->type_name("FILE");
  CLI::Option* tv = app.add_option("--thread-values", options.thread_values,
                                   "the expressions are thread-value (TV) layouts: they map (thread, value) to the "
                                   "column-major index of an element "
                                   "of an MxN tile. Draw which thread holds which element")
                        ->type_name("MxN");
  CLI::Option* banks =
      app.add_flag("--banks", options.banks, "colour each element by its bank of shared memory; needs --bits");
  CLI::Option* tile =
      app.add_option("--tile", options.tile, "colour the elements by tile; tiles have MxN elements")->type_name("MxN");
  app.add_flag("--cell-per-tile", options.cell_per_tile,
               "draw each tile as one cell that shows the offset of its first element, in bytes if --bits is given")
      ->needs(tile);
  CLI::Option* wgmma = app.add_option("--wgmma", options.wgmma,
                                      "a or b, once per expression, which is the layout (mn, k) of that wgmma operand "
                                      "in shared memory: draw its "
                                      "core matrices and the byte offsets of its matrix descriptor; needs --bits")
                           ->allow_extra_args(false);
  add_integer<int>(app, "--bits", options.bits, {1, 1024}, "width of an element in bits");
  for (CLI::Option* one : {tv, banks, tile, wgmma}) {
    for (CLI::Option* other : {tv, banks, tile, wgmma}) {
      if (one != other) one->excludes(other);
    }
  }
}

}  // namespace

Command add_layout_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("layout", "evaluate and draw expressions of the layout algebra");
  app->require_subcommand(1);
  const auto options = std::make_shared<LayoutOptions>();
  const auto add = [&](const char* name, const char* help, decltype(LayoutOptions::act) act) {
    return app->add_subcommand(name, help)->callback([options, act] { options->act = act; });
  };
  add("eval", "print the value of each expression, such as composition((20,2):(16,4),(4,5):(1,4))", eval)
      ->add_option("expression", options->expressions, "see 'tilewright layout functions' and docs/layouts.md")
      ->required();
  add_draw_options(*add("draw", "draw layouts on the terminal, or as SVG or LaTeX", draw), *options);
  add("functions", "list the functions that expressions may call", list_functions)
      ->add_flag("--json", options->json, "print the result as JSON");
  return {app, [options] { return options->act(*options); }};
}

}  // namespace tilewright::cli
