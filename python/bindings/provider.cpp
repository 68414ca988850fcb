// Providers of the kernels of registered Python classes.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/engine.hpp"
#include "python/bindings/kernel.hpp"
#include "python/bindings/read.hpp"
#include "python/bindings/unlocked.hpp"

namespace nb = nanobind;

namespace tilewright::python {
namespace {

using Generated = std::vector<std::pair<Target, std::vector<registry::KernelPtr>>>;

/// A reference to a Python class, which the destructor releases under the GIL.
struct ClassReference {
  explicit ClassReference(nb::object given) : type(std::move(given)) {}
  ClassReference(const ClassReference&) = delete;
  ClassReference& operator=(const ClassReference&) = delete;
  ~ClassReference() {
    const Locked gil;
    generated.clear();
    type.reset();
  }
  nb::object type;
  Generated generated;  // the results of generate_kernels(), which is called once per target
};

class PythonProvider final : public registry::Provider {
 public:
  explicit PythonProvider(nb::object type)
      : family_(family_of(type)), class_(std::make_unique<ClassReference>(std::move(type))) {}

  std::string family() const override { return family_; }

  /// Refuses a class without generate_kernels(): the method may be added after the class is registered.
  Support runs_on(const Target& /*target*/) const override {
    const Locked gil;
    if (nb::hasattr(class_->type, "generate_kernels")) return {};
    return refuse("{} is registered, but does not define generate_kernels() yet", family_);
  }

  std::vector<registry::KernelPtr> generate(const Target& target) const override {
    return call_python([&] { return generate_locked(target); });
  }

  nb::object type() const { return class_->type; }

 private:
  /// @pre the GIL is held
  std::vector<registry::KernelPtr> generate_locked(const Target& target) const {
    for (const auto& [made_for, kernels] : class_->generated) {
      if (made_for == target) return kernels;
    }
    const nb::object all = nb::module_::import_("tilewright._tilewright").attr("_accept_all");
    std::vector<registry::KernelPtr> kernels;
    // Classes of tilewright.cutlass_api have a generate_kernels() of another signature, and this adapter for it.
    const nb::object answer = nb::hasattr(class_->type, "_generate_for")
                                  ? class_->type.attr("_generate_for")(all, target.name())
                                  : class_->type.attr("generate_kernels")(all, nb::none(), target.name());
    if (!nb::hasattr(answer, "__iter__"))
      throw InvalidArgument(
          fmt::format("{}.generate_kernels() must return a list of kernels, got {}", family_, shown(answer)));
    for (nb::handle each : answer) {
      if (!nb::isinstance<registry::Kernel>(each)) {
        throw InvalidArgument(fmt::format("{}.generate_kernels() must return kernels, got {}", family_, shown(each)));
      }
      auto kernel = nb::cast<std::shared_ptr<registry::Kernel>>(each);
      set_target(*kernel, target);
      kernels.push_back(std::move(kernel));
    }
    class_->generated.emplace_back(target, kernels);
    return kernels;
  }

  std::string family_;
  std::unique_ptr<ClassReference> class_;  // guarded by the GIL
};

using Providers = std::vector<std::shared_ptr<const PythonProvider>>;

/// The providers of the registered classes, in the order of registration.
Providers& providers() {
  static Providers all;  // guarded by the GIL
  return all;
}

/// The provider of a family; providers().end() if no class has that name.
Providers::iterator find_provider(const std::string& family) {
  return std::ranges::find(providers(), family, [](const auto& each) { return each->family(); });
}

bool is_kernel_class(nb::handle type) {
  if (!nb::isinstance<nb::type_object>(type)) return false;
  auto* const base = reinterpret_cast<PyTypeObject*>(nb::type<registry::Kernel>().ptr());
  return PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), base) != 0;
}

// The GIL is held throughout, so that the registry and providers() get the same class if two threads register classes
// of one name. This cannot deadlock: the registry never waits for the GIL while its mutex is locked.
nb::object register_class(nb::object type) {
  if (!is_kernel_class(type)) {
    throw InvalidArgument(fmt::format("register() takes a class that derives from Kernel, got {}", shown(type)));
  }
  auto provider = std::make_shared<const PythonProvider>(type);
  const auto known = find_provider(provider->family());
  const bool is_new = known == providers().end();
  if (!is_new && (*known)->type().is(type)) return type;
  shared_registry()->replace(provider).or_throw();
  if (is_new) {
    providers().push_back(provider);
  } else {
    *known = provider;
  }
  return type;
}

bool unregister_class(nb::handle type) {
  const std::string family = family_of(type);
  const auto known = find_provider(family);
  if (known != providers().end()) {
    if (!nb::isinstance<nb::str>(type) && !(*known)->type().is(type)) return false;
    providers().erase(known);
  }
  return shared_registry()->remove(family);
}

nb::typed<nb::list, nb::type_object> registered_classes() {
  nb::typed<nb::list, nb::type_object> classes;
  for (const auto& provider : providers()) classes.append(provider->type());
  return classes;
}

}  // namespace

std::string family_of(nb::handle kernel_class) {
  constexpr const char* kWhat = "the name of a kernel class";
  if (nb::isinstance<nb::str>(kernel_class)) return read_text(kernel_class, kWhat);
  if (nb::isinstance<nb::type_object>(kernel_class)) return read_text(kernel_class.attr("__name__"), kWhat);
  throw nb::type_error(
      fmt::format("kernel_class must be a class that derives from Kernel, or its name, got {}", shown(kernel_class))
          .c_str());
}

nb::object class_of_family(const std::string& family) {
  const auto found = find_provider(family);
  return found != providers().end() ? (*found)->type() : nb::borrow(nb::type<registry::Kernel>());
}

void bind_provider(nb::module_& module) {
  module.def(
      "_accept_all", [](nb::handle) { return true; }, nb::arg("metadata"));
  module.def(
      "register", &register_class, nb::arg("kernel_class"),
      "Makes the kernels of a class derived from Kernel available to every engine. Returns the class, so that it "
      "can be used as a decorator. A registered class of the same name is replaced.");
  module.def(
      "unregister", &unregister_class, nb::arg("kernel_class"),
      "Undoes register(), for a class or for whichever class has the given name. Returns whether it was registered: a "
      "class that another one of its name replaced is not. Kernels that were found before stay usable.");
  module.def("_registered_classes", &registered_classes,
             "The classes that register() made available, in the order of registration.");
  module.def("_forget_classes", [] {
    Providers all;
    std::swap(all, providers());
    const Unlocked unlocked;
    for (const auto& provider : all) shared_registry()->remove(provider->family());
  });
}

}  // namespace tilewright::python
