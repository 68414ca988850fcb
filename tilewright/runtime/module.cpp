// Checks of cubins; loading and launching of kernels.
#include "tilewright/runtime/module.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "tilewright/base/text.hpp"
#include "tilewright/runtime/capture.hpp"

namespace tilewright::runtime {
namespace {

constexpr Elf64_Half kCudaMachine = 190;  // EM_CUDA

/// Whether [offset, offset + count * size) is within `total` bytes.
bool inside(std::uint64_t offset, std::uint64_t count, std::uint64_t size, std::uint64_t total) {
  return offset <= total && (size == 0 || count <= (total - offset) / size);
}

template <class T>
T read(std::span<const std::byte> bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Support check_sections(std::span<const std::byte> cubin, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(cubin, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS && !inside(section.sh_offset, section.sh_size, 1, cubin.size())) {
      return refuse("cubin of {} bytes is truncated: section {} spans {} bytes from {}", cubin.size(), i,
                    section.sh_size, section.sh_offset);
    }
  }
  return {};
}

/// The number of parameters of kernel `symbol` in the PTX; std::nullopt if it is not there.
std::optional<std::size_t> count_parameters(std::string_view ptx, std::string_view symbol) {
  constexpr std::string_view kEntry = ".entry", kParameter = ".param", kSpace = " \t\r\n";
  for (std::size_t at = ptx.find(kEntry); at != ptx.npos; at = ptx.find(kEntry, at + 1)) {
    std::string_view rest = ptx.substr(at + kEntry.size());
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(kSpace)));
    if (!rest.starts_with(symbol)) continue;
    rest.remove_prefix(symbol.size());
    const std::size_t open = rest.find_first_not_of(kSpace);
    if (open == rest.npos || (open == 0 && rest[0] != '(')) continue;  // a longer name begins with the symbol
    if (rest[open] != '(') return 0;
    const std::string_view list = rest.substr(0, rest.find(')'));
    std::size_t count = 0;
    for (std::size_t each = list.find(kParameter); each != list.npos; each = list.find(kParameter, each + 1)) ++count;
    return count;
  }
  return std::nullopt;
}

}  // namespace

Support check_cubin(std::span<const std::byte> cubin) {
  if (cubin.size() < sizeof(Elf64_Ehdr)) {
    return refuse("a cubin must have at least {} bytes, got {}", sizeof(Elf64_Ehdr), cubin.size());
  }
  const auto header = read<Elf64_Ehdr>(cubin, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    return refuse("not a cubin: it is not a 64-bit ELF image");
  }
  if (header.e_machine != kCudaMachine) {
    return refuse("not a cubin: ELF machine must be {} (CUDA), got {}", kCudaMachine, header.e_machine);
  }
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr))) {
    return refuse("damaged cubin: {} sections of {} bytes, {} segments of {}", header.e_shnum, header.e_shentsize,
                  header.e_phnum, header.e_phentsize);
  }
  if (!inside(header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr), cubin.size()) ||
      !inside(header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr), cubin.size())) {
    return refuse("cubin of {} bytes is truncated: its section and program headers begin at {} and {}", cubin.size(),
                  header.e_shoff, header.e_phoff);
  }
  return check_sections(cubin, header);
}

Module::Module(std::shared_ptr<CudaContext> context, std::span<const std::byte> cubin) : context_(std::move(context)) {
  check_cubin(cubin).or_throw();
  const ContextScope scope(*context_);
  const RelaxedCapture relaxed(context_->driver());
  context_->driver().library_load_data(&handle_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
}

Module::Module(std::shared_ptr<CudaContext> context, const std::string& ptx) : context_(std::move(context)) {
  constexpr int kErrorLogBuffer = 5, kErrorLogBytes = 6;  // CUjit_option of cuda.h
  std::array<char, 8192> log{};
  std::array<int, 2> options{kErrorLogBuffer, kErrorLogBytes};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  const ContextScope scope(*context_);
  const RelaxedCapture relaxed(context_->driver());
  try {
    context_->driver().library_load_data(&handle_, ptx.c_str(), options.data(), values.data(), 2, nullptr, nullptr, 0);
  } catch (const DriverError& error) {
    // cuda.h: CUDA_ERROR_INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, UNSUPPORTED_PTX_VERSION
    constexpr std::array kPtxErrors{200, 209, 218, 222};
    if (std::ranges::find(kPtxErrors, error.code()) == kPtxErrors.end()) throw;
    throw CompileError(fmt::format("{}: {}", error.what(), log.data()));
  }
}

Module::~Module() {
  const RelaxedCapture relaxed(context_->driver());
  release(*context_, context_->driver().library_unload, handle_);
}

KernelHandle Module::kernel(const std::string& symbol) const {
  if (!is_identifier(symbol)) {
    throw InvalidArgument(fmt::format("a kernel's symbol must be an identifier, got \"{}\"", printable(symbol)));
  }
  const ContextScope scope(*context_);
  KernelHandle kernel = nullptr;
  context_->driver().library_get_kernel(&kernel, handle_, symbol.c_str());
  return kernel;
}

CudaKernel::CudaKernel(std::shared_ptr<CudaContext> context, const Image& image, const std::string& symbol,
                       std::uint32_t dynamic_smem_bytes)
    : context_(std::move(context)),
      module_(image.cubin.empty() ? Module(context_, std::string(image.ptx)) : Module(context_, image.cubin)),
      symbol_(symbol),
      kernel_(module_.kernel(symbol)),
      parameter_count_(count_parameters(image.ptx, symbol)) {
  const ContextScope scope(*context_);
  opt_in_to_dynamic_smem(kernel_, symbol, dynamic_smem_bytes);
  limits_.threads_per_block = static_cast<std::uint32_t>(attribute(kernel_, KernelAttribute::max_threads_per_block));
  limits_.parameter_bytes = parameter_bytes(kernel_);
  context_->driver().kernel_get_function(&function_, kernel_);
}

int CudaKernel::attribute(KernelHandle kernel, KernelAttribute attribute) const {
  int value = 0;
  context_->driver().kernel_get_attribute(&value, attribute, kernel, context_->gpu());
  return value;
}

void CudaKernel::opt_in_to_dynamic_smem(KernelHandle kernel, const std::string& symbol,
                                        std::uint32_t dynamic_smem_bytes) {
  const std::int64_t static_bytes = attribute(kernel, KernelAttribute::static_smem_bytes);
  const std::int64_t limit = context_->limits().smem_per_block_bytes;
  if (static_bytes + dynamic_smem_bytes > limit) {
    throw InvalidArgument(fmt::format("{} needs {} + {} bytes of static and dynamic shared memory; {} has {} per block",
                                      symbol, static_bytes, dynamic_smem_bytes, context_->properties().name, limit));
  }
  const std::int64_t max_dynamic_bytes = limit - static_bytes;
  context_->driver().kernel_set_attribute(KernelAttribute::max_dynamic_smem_bytes, static_cast<int>(max_dynamic_bytes),
                                          kernel, context_->gpu());
  limits_.dynamic_smem_bytes = static_cast<std::uint32_t>(max_dynamic_bytes);
}

std::size_t CudaKernel::parameter_bytes(KernelHandle kernel) const {
  const auto& param_info = context_->driver().kernel_get_param_info;
  std::size_t offset = 0;
  std::size_t size = 0;
  if (!param_info.present() || param_info.raw(kernel, 0, &offset, &size) != kSuccess) return 0;
  return size;
}

void CudaKernel::query_parameter_sizes(std::size_t count) {
  std::size_t offset = 0, size = 0;
  while (parameter_sizes_.size() < count) {
    const DriverCode code =
        context_->driver().kernel_get_param_info.raw(kernel_, parameter_sizes_.size(), &offset, &size);
    if (code != kSuccess) {
      parameter_count_ = parameter_sizes_.size();
      return;
    }
    parameter_sizes_.push_back(size);
  }
}

Support CudaKernel::check_several_parameters(std::span<const std::uint16_t> given) {
  if (!context_->driver().kernel_get_param_info.present()) return {};
  const std::scoped_lock lock(parameter_mutex_);
  query_parameter_sizes(parameter_count_.value_or(given.size()));
  const std::size_t count = parameter_count_.value_or(given.size());
  return check_parameters(symbol_, std::span(parameter_sizes_).first(count), given);
}

void CudaKernel::launch(const LaunchConfig& config, std::span<const std::byte> parameters) {
  check_launch(context_->limits(), limits_, config, parameters.size()).or_throw();
  const ContextScope scope(*context_);
  if (!config.parameter_offsets.empty()) check_several_parameters(config.parameter_sizes).or_throw();

  std::array<LaunchAttribute, 3> attributes{};
  unsigned count = 0;
  if (config.cluster != Dim3{}) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = LaunchAttribute::kClusterDimension;
    attribute.cluster = config.cluster;
  }
  if (config.programmatic_stream_serialization) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = LaunchAttribute::kProgrammaticStreamSerialization;
    attribute.allowed = 1;
  }
  if (config.cooperative) {
    LaunchAttribute& attribute = attributes[count++];
    attribute.id = LaunchAttribute::kCooperative;
    attribute.allowed = 1;
  }
  const LaunchRecord record{
      .grid = config.grid,
      .block = config.block,
      .dynamic_smem_bytes = config.dynamic_smem_bytes,
      .stream = config.stream,
      .attributes = attributes.data(),
      .attribute_count = count,
  };
  // A single struct of known size is passed by its address. In a packed buffer the driver (580, CUDA 13.0) does not
  // recognise tensor maps, and TMA copies with them have no effect. The buffer is for drivers that do not report
  // parameter sizes.
  auto* const first = const_cast<std::byte*>(parameters.data());
  Driver& driver = context_->driver();
  if (!config.parameter_offsets.empty()) {
    std::vector<void*> each;
    for (const std::uint16_t offset : config.parameter_offsets) each.push_back(first + offset);
    driver.check(driver.launch_kernel.raw(&record, function_, each.data(), nullptr), driver.launch_kernel.symbol());
    return;
  }
  void* structs[] = {first};
  std::size_t parameter_bytes = parameters.size();
  void* buffer[] = {kParameterBuffer, structs[0], kParameterBufferSize, &parameter_bytes, kParameterEnd};
  const bool is_known = limits_.parameter_bytes != 0;
  driver.check(driver.launch_kernel.raw(&record, function_, is_known ? structs : nullptr,
                                        is_known || parameters.empty() ? nullptr : buffer),
               driver.launch_kernel.symbol());
}

}  // namespace tilewright::runtime
