#include "tilewright/registry/provider.hpp"

#include <set>
#include <string>
#include <utility>

namespace tilewright::registry {
namespace {

class VectorStream final : public KernelStream {
 public:
  explicit VectorStream(std::vector<KernelPtr> kernels) : kernels_(std::move(kernels)) {}
  KernelPtr next() override { return next_ < kernels_.size() ? std::move(kernels_[next_++]) : nullptr; }

 private:
  std::vector<KernelPtr> kernels_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<KernelStream> Provider::list(const Target& target) const {
  std::vector<KernelPtr> kernels = generate(target);
  std::erase_if(kernels, [&](const KernelPtr& kernel) {
    return kernel == nullptr || !registry::runs_on(kernel->metadata(), target);
  });
  return std::make_unique<VectorStream>(std::move(kernels));
}

void Provider::discover(const op::Problem& problem, const Target& target, Discovery& found) const {
  std::vector<KernelPtr> kernels = generate(target);
  if (kernels.empty()) found.refused.push_back({family(), refuse("has no kernels for {}", target.name())});
  std::set<std::string> names;
  for (KernelPtr& kernel : kernels) {
    if (kernel == nullptr) {
      found.refused.push_back({family(), refuse("generate() returned a null kernel").as(RefusalCode::provider)});
      continue;
    }
    if (!names.insert(kernel->name()).second) {
      found.refused.push_back(
          {kernel->name(), refuse("another kernel of its provider has this name").as(RefusalCode::duplicate)});
      continue;
    }
    const Support runs = registry::runs_on(kernel->metadata(), target);
    if (const Support support = runs ? kernel->supports(problem) : runs; support) {
      found.kernels.push_back(std::move(kernel));
    } else {
      found.refused.push_back({kernel->name(), support.refusal()});
    }
  }
}

Result<plan::SumOrder> Provider::invariant_order(const op::Problem& /*problem*/, const Target& /*target*/) const {
  return refuse("its kernels have no known order of summation").as(RefusalCode::promises);
}

void Provider::discover_with_order(const op::Problem& problem, const Target& target, const plan::SumOrder& /*order*/,
                                   Discovery& found) const {
  discover(problem, target, found);
}

Result<KernelPtr> Provider::make(const op::Signature& signature, const plan::Design& design) const {
  for (KernelPtr& kernel : generate(plan::tiling(design).target)) {
    if (kernel == nullptr) continue;
    if (kernel->metadata().signature == signature && kernel->metadata().design == design) return std::move(kernel);
  }
  return refuse("has no kernel with this signature and design").as(RefusalCode::design);
}

}  // namespace tilewright::registry
