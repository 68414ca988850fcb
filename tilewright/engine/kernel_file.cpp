// Headers of the user's and of the toolkit are found by NVRTC; those of the host's libraries are passed in memory.
#include "tilewright/engine/kernel_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "tilewright/base/error.hpp"
#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/compile/file.hpp"
#include "tilewright/compile/source.hpp"
#include "tilewright/compile/toolchain.hpp"

namespace tilewright::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxBytes = std::uintmax_t{64} << 20;

constexpr std::string_view kStdint = R"(#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
namespace std {
using ::int16_t; using ::int32_t; using ::int64_t; using ::int8_t;
using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uint8_t; using ::uintptr_t;
}
)";

/// CCCL may have defined some of the macros, too.
constexpr std::string_view kClimits = R"(#pragma once
#undef CHAR_BIT
#define CHAR_BIT 8
#undef SCHAR_MIN
#define SCHAR_MIN (-128)
#undef SCHAR_MAX
#define SCHAR_MAX 127
#undef UCHAR_MAX
#define UCHAR_MAX 255
#undef CHAR_MIN
#define CHAR_MIN SCHAR_MIN
#undef CHAR_MAX
#define CHAR_MAX SCHAR_MAX
#undef SHRT_MIN
#define SHRT_MIN (-32768)
#undef SHRT_MAX
#define SHRT_MAX 32767
#undef USHRT_MAX
#define USHRT_MAX 65535
#undef INT_MIN
#define INT_MIN (-2147483647 - 1)
#undef INT_MAX
#define INT_MAX 2147483647
#undef UINT_MAX
#define UINT_MAX 4294967295U
#undef LONG_MIN
#define LONG_MIN (-9223372036854775807L - 1)
#undef LONG_MAX
#define LONG_MAX 9223372036854775807L
#undef ULONG_MAX
#define ULONG_MAX 18446744073709551615UL
#undef LLONG_MIN
#define LLONG_MIN (-9223372036854775807LL - 1)
#undef LLONG_MAX
#define LLONG_MAX 9223372036854775807LL
#undef ULLONG_MAX
#define ULLONG_MAX 18446744073709551615ULL
)";

constexpr std::string_view kCfloat = R"(#pragma once
#undef FLT_RADIX
#define FLT_RADIX 2
#undef FLT_MANT_DIG
#define FLT_MANT_DIG 24
#undef FLT_DIG
#define FLT_DIG 6
#undef FLT_MIN_EXP
#define FLT_MIN_EXP (-125)
#undef FLT_MAX_EXP
#define FLT_MAX_EXP 128
#undef FLT_MIN
#define FLT_MIN 1.175494350822287507969e-38f
#undef FLT_MAX
#define FLT_MAX 340282346638528859811704183484516925440.0f
#undef FLT_EPSILON
#define FLT_EPSILON 1.1920928955078125e-7f
#undef DBL_MANT_DIG
#define DBL_MANT_DIG 53
#undef DBL_DIG
#define DBL_DIG 15
#undef DBL_MIN_EXP
#define DBL_MIN_EXP (-1021)
#undef DBL_MAX_EXP
#define DBL_MAX_EXP 1024
#undef DBL_MIN
#define DBL_MIN 2.22507385850720138309e-308
#undef DBL_MAX
#define DBL_MAX 1.79769313486231570815e+308
#undef DBL_EPSILON
#define DBL_EPSILON 2.2204460492503130808e-16
)";

/// Headers that kernels include by habit: NVRTC declares what device code may use of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 23> kHostHeaders{{
    {"assert.h", ""},
    {"cassert", ""},
    {"cfloat", kCfloat},
    {"climits", kClimits},
    {"cmath", ""},
    {"cstddef", ""},
    {"cstdio", ""},
    {"cstdlib", ""},
    {"cstring", ""},
    {"cstdint", kStdint},
    {"cuda.h", ""},
    {"cuda_runtime.h", ""},
    {"cuda_runtime_api.h", ""},
    {"device_launch_parameters.h", ""},
    {"float.h", kCfloat},
    {"iostream", ""},
    {"limits.h", kClimits},
    {"math.h", ""},
    {"stddef.h", ""},
    {"stdint.h", kStdint},
    {"stdio.h", ""},
    {"stdlib.h", ""},
    {"string.h", ""},
}};

/// Headers of the host's libraries, and the header of libcu++ in cuda/std/ that declares the same for device code.
constexpr std::array<std::pair<std::string_view, std::string_view>, 21> kStandardHeaders{{
    {"algorithm", "__algorithm_"},
    {"array", "array"},
    {"atomic", "atomic"},
    {"bit", "bit"},
    {"bitset", "bitset"},
    {"chrono", "chrono"},
    {"complex", "complex"},
    {"concepts", "concepts"},
    {"expected", "expected"},
    {"functional", "functional"},
    {"iterator", "iterator"},
    {"limits", "limits"},
    {"numbers", "numbers"},
    {"numeric", "numeric"},
    {"optional", "optional"},
    {"ratio", "ratio"},
    {"span", "span"},
    {"tuple", "tuple"},
    {"type_traits", "type_traits"},
    {"utility", "utility"},
    {"variant", "variant"},
}};

std::optional<std::string> read_text(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || fs::file_size(path, failed) > kMaxBytes || failed) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return std::nullopt;
  return text.str();
}

/// The include folders of the CUDA toolkit beside the NVRTC library.
std::vector<fs::path> toolkit_folders(const compile::ToolchainOptions& toolchain) {
  compile::Environment environment = compile::capture_environment();
  if (!toolchain.cuda_home.empty()) environment.cuda_home = toolchain.cuda_home;
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    std::error_code failed;
    // CUDA 13 has the headers of CCCL in a folder of their own; nvcc searches it, too.
    for (const fs::path& each : {folder, folder / "cccl"}) {
      if (fs::is_directory(each, failed)) folders.push_back(each);
    }
  };
  const compile::Search nvrtc = compile::find_nvrtc(environment);
  if (nvrtc.path) {
    fs::path at = fs::path(*nvrtc.path).parent_path();
    for (int level = 0; level < 3; ++level) {
      at = at.parent_path();
      add(at / "include");
    }
  }
  add("/usr/local/cuda/include");
  return folders;
}

/// The headers of CUB that have no host code, which NVRTC refuses; <cub/cub.cuh> includes all of CUB. Empty if CUB is
/// in none of the folders.
std::string device_parts_of_cub(const std::vector<fs::path>& folders) {
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    for (const char* const part : {"cub/block", "cub/thread", "cub/warp"}) {
      std::error_code failed;
      for (const fs::directory_entry& entry : fs::directory_iterator(folder / part, failed)) {
        if (entry.path().extension() == ".cuh") names.insert(fs::path(part) / entry.path().filename());
      }
    }
  }
  std::string text;
  for (const std::string& name : names) text += fmt::format("#include <{}>\n", name);
  return text;
}

/// The headers that are passed in memory in the place of files.
std::vector<compile::UserHeader> replaced_headers(const std::vector<fs::path>& folders) {
  std::vector<compile::UserHeader> headers;
  for (const auto& [name, text] : kHostHeaders) headers.push_back({std::string(name), std::string(text)});
  for (const auto& [name, of] : kStandardHeaders) {
    const std::string standard = fmt::format("cuda/std/{}", of);
    std::error_code failed;
    if (std::ranges::any_of(folders,
                            [&](const fs::path& each) { return fs::is_regular_file(each / standard, failed); }))
      headers.push_back({std::string(name), fmt::format("#pragma once\n#include <{}>\n"
                                                        "namespace std {{\nusing namespace cuda::std;\n}}\n",
                                                        standard)});
  }
  if (const std::string cub = device_parts_of_cub(folders); !cub.empty())
    headers.push_back({"cub/cub.cuh", "#pragma once\n" + cub});
  return headers;
}

/// The last part of a path, without characters that would need quoting.
std::string file_name(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

/// A path in front of which others are written: "" for the folder that the process runs in.
std::string prefix_of(const std::string& folder) {
  return folder.empty() || folder.ends_with('/') ? folder : folder + '/';
}

std::string absolute(const std::string& folder) {
  return fs::absolute(folder.empty() ? "." : folder).lexically_normal();
}

/// Replaces the text between the quotes of each .file line of PTX.
template <class F>
std::string rename_files(const std::string& ptx, F&& name_of) {
  std::string renamed;
  std::size_t done = 0;
  for (std::size_t at = 0; (at = ptx.find(".file", at)) != std::string::npos; ++at) {
    const std::size_t line_end = std::min(ptx.find('\n', at), ptx.size());
    const std::size_t open = ptx.find('"', at), close = ptx.find('"', open + 1);
    if ((at != 0 && std::string_view("\n\t ").find(ptx[at - 1]) == std::string_view::npos) || close >= line_end)
      continue;
    renamed += ptx.substr(done, open + 1 - done) + name_of(ptx.substr(open + 1, close - open - 1));
    done = close;
  }
  return renamed + ptx.substr(done);
}

KernelFile compile_text(const std::string& text, const std::string& name, std::vector<std::string> user_folders,
                        Target target, const compile::ToolchainOptions& toolchain) {
  std::vector<fs::path> folders;
  for (const std::string& folder : user_folders) folders.emplace_back(absolute(folder));
  std::ranges::move(toolkit_folders(toolchain), std::back_inserter(folders));
  compile::Source source;
  source.name = source.symbol = "kernel";
  // NVRTC makes the name absolute, from the folder that its process runs in.
  const std::string line_name = file_name(name);
  source.text = fmt::format("#line 1 \"{}\"\n{}", line_name, text);
  source.target = target;
  source.headers = replaced_headers(folders);
  for (const fs::path& folder : folders) source.include_folders.push_back(folder);
  source.outputs = {.cubin = false, .ptx = true};
  const std::string ptx = compile::make_compiler(toolchain)->compile(source).ptx;
  return {name, text, rename_files(ptx, [&](const std::string& file) {
            if (file == line_name || file == '/' + line_name) return name;
            for (const std::string& folder : user_folders) {
              const std::string prefix = prefix_of(absolute(folder));
              if (file.starts_with(prefix)) return prefix_of(folder) + file.substr(prefix.size());
            }
            return file;
          })};
}

}  // namespace

KernelFile read_kernel_file(const std::string& path, Target target, const compile::ToolchainOptions& toolchain,
                            const std::vector<std::string>& include_folders) {
  const std::optional<std::string> text = read_text(path);
  if (!text) throw InvalidArgument(fmt::format("{}: not a regular file that can be read", printable(path)));
  if (path.ends_with(".ptx")) return {path, *text, *text};
  std::vector<std::string> folders{fs::path(path).parent_path()};
  folders.insert(folders.end(), include_folders.begin(), include_folders.end());
  return compile_text(*text, path, std::move(folders), target, toolchain);
}

KernelFile compile_kernel_text(const std::string& text, const std::string& name, Target target,
                               const compile::ToolchainOptions& toolchain,
                               const std::vector<std::string>& include_folders) {
  return compile_text(text, name, include_folders, target, toolchain);
}

}  // namespace tilewright::engine
