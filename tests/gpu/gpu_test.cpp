// Compiles the kernels of the GPU tests.
#include "gpu_test.hpp"

#include "tilewright/compile/compiler.hpp"

namespace tilewright::runtime {

std::shared_ptr<LoadedKernel> load_kernel(Device& device, const std::string& symbol, const std::string& text,
                                          std::uint32_t dynamic_smem_bytes) {
  compile::Source source;
  source.name = symbol;
  source.symbol = symbol;
  source.text = text;
  source.target = device.properties().target;
  source.outputs.ptx = false;
  const compile::Artifact artifact = compile::make_compiler({})->compile(source);
  return device.load({.cubin = artifact.cubin, .ptx = {}}, symbol, dynamic_smem_bytes);
}

}  // namespace tilewright::runtime
