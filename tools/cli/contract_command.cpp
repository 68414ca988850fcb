// tilewright contract: computes one contraction of two random tensors, which an einsum expression describes.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/kernels/list.hpp"
#include "tilewright/op/contraction.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/problem_run.hpp"
#include "tools/cli/type_names.hpp"

namespace tilewright::cli {
namespace {

struct ContractOptions {
  std::string expression;
  std::vector<std::string> extents;  // "a=64" or "a=64,b=32"
  double alpha = 1.0, beta = 0.0;
  std::string dtype = "f32", out_dtype, accumulator, math, epilogue;  // empty: the default
  ProblemRunOptions run;
};

nlohmann::json extents_of(const ContractOptions& options) {
  nlohmann::json extents = nlohmann::json::object();
  for (const std::string& list : options.extents) {
    for (const std::string& text : split(list, ',')) {
      const std::size_t equals = text.find('=');
      const std::string letter = text.substr(0, equals);
      const auto extent = equals == std::string::npos
                              ? std::nullopt
                              : read_integer<std::int64_t>(text.substr(equals + 1), {0, std::int64_t{1} << 31});
      if (letter.size() != 1 || !extent)
        throw InvalidArgument(fmt::format("--extents takes a=64,b=32,..., got '{}'", printable(text, 60)));
      if (extents.contains(letter)) throw InvalidArgument(fmt::format("--extents gives '{}' twice", printable(letter)));
      extents[letter] = *extent;
    }
  }
  const auto modes = op::parse_contraction(options.expression).value_or_throw();
  for (const char letter : modes[0] + modes[1]) {
    if (!extents.contains(std::string(1, letter)))
      throw InvalidArgument(fmt::format("--extents lacks '{}', a mode of {}", letter, printable(options.expression)));
  }
  for (const char letter : modes[2]) {
    if ((modes[0] + modes[1]).find(letter) == std::string::npos) {
      throw InvalidArgument(fmt::format("the result of {} has the mode '{}', but no operand has it",
                                        printable(options.expression), letter));
    }
  }
  const std::string letters = modes[0] + modes[1];
  for (const auto& [letter, extent] : extents.items()) {
    if (letters.find(letter) == std::string::npos)
      throw InvalidArgument(fmt::format("--extents gives '{}', which is no mode of {}", printable(letter),
                                        printable(options.expression)));
  }
  return extents;
}

/// The problem as the text of a problem file.
std::string file_of(const ContractOptions& options) {
  const bool is_tf32 = parse_dtype(options.dtype) == DType::tf32;
  const std::string type = is_tf32 ? "f32" : options.dtype;
  const DType input = parse_type("--dtype", type);
  const std::string output =
      options.out_dtype.empty() ? std::string(name(op::default_output(input))) : options.out_dtype;
  nlohmann::json file{{"operation", "contraction"},
                      {"expression", options.expression},
                      {"extents", extents_of(options)},
                      {"types", {{"A", type}, {"B", type}, {"D", output}}},
                      {"scalars", {{"alpha", options.alpha}, {"beta", options.beta}}}};
  if (options.beta != 0.0) file["types"]["C"] = output;
  if (is_tf32) file["math"] = "multiply_add_tf32";
  for (const auto& [field, value] :
       {std::pair{"accumulator", &options.accumulator}, {"math", &options.math}, {"epilogue", &options.epilogue}}) {
    if (!value->empty()) file[field] = *value;
  }
  return file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Command add_contract_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("contract", "compute a contraction of two random tensors: an einsum");
  const auto options = std::make_shared<ContractOptions>();
  const auto add_text = [&](const char* name, std::string& value, const char* type_name, const char* help) {
    return app->add_option(name, value, help)->type_name(type_name);
  };
  add_text("expression", options->expression, "TEXT",
           "a letter for each mode: abcd,dcef->abef; without -> the result has the letters that occur once")
      ->required();
  app->add_option("--extents", options->extents, "the extent of each letter: a=64,b=32")
      ->type_name("LETTER=N")
      ->required();
  add_text("--dtype", options->dtype, "TYPE", "type of the inputs: f64 f32 (default) tf32 f16 bf16 e4m3 e5m2 s8 u8");
  add_text("--accumulator", options->accumulator, "TYPE",
           "type of the accumulators; default: f64 for f64, s32 for integers, f32 for other types");
  add_text("--out-dtype", options->out_dtype, "TYPE",
           "type of C and the output; default: s32 for integers, bf16 for e4m3 and e5m2, else that of the inputs");
  add_text("--math", options->math, "NAME", "math operation, as in tilewright gemm");
  add_real(*app, "--alpha", options->alpha, "factor of the contraction (default 1)");
  add_real(*app, "--beta", options->beta, "factor of C (default 0, where C is not read)");
  add_text("--epilogue", options->epilogue, "TEXT",
           "linear_combination (default), relu, ... of it; or a text without tensors such as \"D = relu(2 * acc)\"");
  add_run_options(*app, options->run);
  return {app, [options] {
            const std::shared_ptr<registry::Registry> registry = kernels::make_registry();
            ProblemFile problem(ProblemFile::Text{file_of(*options)}, *registry);
            return run_problem(problem, options->run, registry);
          }};
}

}  // namespace tilewright::cli
