#include "tilewright/compile/nvcc.hpp"

#include <chrono>
#include <filesystem>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/assembler.hpp"
#include "tilewright/compile/child_process.hpp"
#include "tilewright/compile/compiler_output.hpp"
#include "tilewright/compile/failed_source.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/include_graph.hpp"
#include "tilewright/compile/language.hpp"
#include "tilewright/compile/ptx_lines.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::compile {
namespace {

constexpr std::size_t kMaxOutputBytes = std::size_t{256} << 20;  // per output file; kernels have kilobytes

std::string host_compiler_identity(const Environment& environment) {
  Environment only_path;
  only_path.path = environment.path;
  const Search search = find_tool("g++", only_path);
  return search.path ? build_identity(*search.path) : std::string("no-g++");
}

// Includes the tools that nvcc runs: a patched ptxas generates other code although `nvcc --version` is the same.
std::string toolkit_identity(const std::string& nvcc) {
  const auto bin = std::filesystem::path(nvcc).parent_path();
  std::string identity = content_identity(nvcc);
  for (const auto& tool : {bin / "ptxas", bin / "../nvvm/bin/cicc"}) {
    if (std::filesystem::exists(tool)) identity += "-" + content_identity(tool);
  }
  return identity;
}

// The last two lines of `nvcc --version`: "Cuda compilation tools, release 13.0, V13.0.88" and "Build cuda_13.0...".
std::string version_in(std::string_view banner) {
  const std::size_t version = banner.find(", V");
  const std::size_t build = banner.find("Build cuda");
  if (version == std::string_view::npos || build == std::string_view::npos) return {};
  const auto word = [](std::string_view text) { return text.substr(0, text.find_first_of(" \n")); };
  return fmt::format("{} {}", word(banner.substr(version + 2)), word(banner.substr(build + 6)));
}

// The user's headers come first and are not overwritten by device headers of the same name.
void write_headers(const std::string& folder, const Source& source) {
  const auto write = [&](std::string_view name, std::string_view text) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (std::filesystem::exists(path)) return;
    make_folders(std::filesystem::path(path).parent_path());
    write_new_file(path, text);
  };
  for (const UserHeader& header : source.headers) write(header.name, header.text);
  for (const Header& header : IncludeGraph::of_device_headers().included_by(source)) write(header.name, header.text);
}

// --keep leaves the intermediate PTX in the folder, so that one run yields both cubin and PTX.
std::vector<std::string> command_line(const std::string& nvcc, const Source& source) {
  std::vector<std::string> arguments = {nvcc, std::string(kLanguage), "-I.", "-Xptxas=-v"};
  for (const std::string& folder : source.include_folders) arguments.push_back("-I" + folder);
  if (source.outputs.cubin) {
    arguments.insert(arguments.end(), {"-cubin", "-arch=" + source.target.name(), "-o", "kernel.cubin", "--keep"});
  } else {
    arguments.insert(arguments.end(), {"-ptx", "-arch=" + source.target.virtual_name(), "-o", "kernel.ptx"});
  }
  if (source.line_info) arguments.emplace_back("-lineinfo");
  if (source.max_registers > 0) arguments.push_back(fmt::format("-maxrregcount={}", source.max_registers));
  arguments.emplace_back("kernel.cu");
  return arguments;
}

std::string failure_of(const ChildResult& result, double timeout_s) {
  if (result.timed_out) return fmt::format("nvcc was killed after {} s", timeout_s);
  if (result.signal != 0) return fmt::format("nvcc was killed by signal {}", result.signal);
  if (result.exit_code != 0) return fmt::format("nvcc exited with code {}", result.exit_code);
  return {};
}

}  // namespace

NvccCompiler::NvccCompiler(const ToolchainOptions& options, const Environment& environment)
    : options_(options), environment_(environment) {
  const Search search = find_tool("nvcc", environment);
  if (!search.path) throw_not_found("nvcc", search, kInstallNvcc);
  path_ = *search.path;
  const ChildResult banner = run_child({{path_, "--version"}, child_environment("/"), "/", options.timeout_s});
  const std::string version = version_in(banner.output);
  if (version.empty()) {
    throw ToolchainNotFound(fmt::format("{} --version printed no version: {}", path_, printable(banner.output)));
  }
  identity_ =
      fmt::format("nvcc {} {} {} {}", version, toolkit_identity(path_), host_compiler_identity(environment), kLanguage);
}

// Only the variables that nvcc needs: NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS would change the code without changing
// the cache key. TMPDIR is a private folder, because nvcc gives its temporary files predictable names.
std::vector<std::string> NvccCompiler::child_environment(const std::string& temporary_dir) const {
  const std::string bin = std::filesystem::path(path_).parent_path();
  return {fmt::format("PATH={}:{}", bin, fmt::join(environment_.path, ":")), "HOME=" + environment_.home,
          "TMPDIR=" + temporary_dir, "LC_ALL=C"};
}

Artifact NvccCompiler::compile(const Source& source) const {
  validate(source).or_throw();
  const auto started = std::chrono::steady_clock::now();
  const ScopedFolder folder(environment_.temporary_dir);
  write_headers(folder.path(), source);
  write_new_file(folder.path() + "/kernel.cu", source.text);

  const ChildResult result =
      run_child({command_line(path_, source), child_environment(folder.path()), folder.path(), options_.timeout_s});
  const auto fail = [&](std::string_view why) {
    throw_compile_error(source, why, dump_source(source, options_.dump_dir, environment_.temporary_dir), result.output);
  };
  if (const std::string failure = failure_of(result, options_.timeout_s); !failure.empty()) fail(failure);
  CompilerOutput output{.cubin = {}, .ptx = {}, .log = result.output};
  try {
    output.ptx = read_file(folder.path() + "/kernel.ptx", kMaxOutputBytes);
    if (source.outputs.cubin) output.cubin = read_file(folder.path() + "/kernel.cubin", kMaxOutputBytes);
  } catch (const Error& error) {
    fail(error.what());
  }
  if (const std::string lost = lost_performance(result.output); source.refuses_lost_performance && !lost.empty()) {
    throw_compile_error(source, kLostPerformance, dump_source(source, options_.dump_dir, environment_.temporary_dir),
                        with_source_lines(lost, output.ptx));
  }
  std::string compiler = fmt::format("nvcc {}", compiler_named_in(output.ptx));
  return make_artifact(source, std::move(compiler), std::move(output), started);
}

}  // namespace tilewright::compile
