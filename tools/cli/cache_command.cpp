// tilewright cache: lists, checks and deletes the kernels on disk, and moves them between machines.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/text.hpp"
#include "tilewright/cache/bundle.hpp"
#include "tilewright/cache/store.hpp"
#include "tilewright/engine/options.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/local_time.hpp"
#include "tools/cli/output_file.hpp"

namespace tilewright::cli {
namespace {

struct CacheOptions {
  ExitCode (*act)(cache::Store&, const CacheOptions&) = nullptr;
  std::string path;                  // path of the bundle that is exported or imported
  std::string signing_key;           // PEM file
  std::vector<std::string> trusted;  // PEM files
  bool json = false;
};

// The store that an engine would use. Opening it needs no device.
cache::Store open_store() {
  const engine::Options options = engine::Options::from_environment();
  cache::StoreOptions store;
  store.root = options.cache_dir;
  store.on_disk = options.cache_on_disk;
  store.max_bytes = options.cache_max_bytes;
  return cache::Store(store);
}

void list_json(cache::Store& store) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const cache::Entry& entry : store.list()) {
    kernels.push_back({{"key", entry.key.name()},
                       {"name", entry.name},
                       {"target", entry.target.name()},
                       {"bytes", entry.bytes},
                       {"compile_ms", entry.compile_ms},
                       {"last_used", entry.last_used_s}});
  }
  const nlohmann::ordered_json json{{"folder", store.root()}, {"kernels", kernels}};
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

ExitCode list(cache::Store& store, const CacheOptions& options) {
  if (options.json) {
    list_json(store);
    return ExitCode::ok;
  }
  std::int64_t total = 0;
  for (const cache::Entry& entry : store.list()) {
    total += entry.bytes;
    fmt::print("{:.12}  {}  {:>8} bytes  {:>7.1f} ms  {:<7}  {}\n", entry.key.name(), local_time(entry.last_used_s),
               entry.bytes, entry.compile_ms, entry.target.name(), entry.name);
  }
  fmt::print("{} kernels, {} bytes, in {}\n", store.keys().size(), total, store.root());
  return ExitCode::ok;
}

ExitCode verify(cache::Store& store, const CacheOptions& options) {
  const cache::Verification verification = store.verify();
  if (options.json) {
    const nlohmann::ordered_json json{{"folder", store.root()},
                                      {"intact", verification.intact},
                                      {"damaged", verification.damaged},
                                      {"unusable", verification.unusable}};
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return verification.damaged.empty() && verification.unusable.empty() ? ExitCode::ok : ExitCode::wrong_result;
  }
  for (const std::string& damaged : verification.damaged) fmt::print("damaged: {}\n", printable(damaged, 400));
  for (const std::string& unusable : verification.unusable) fmt::print("not usable: {}\n", printable(unusable, 400));
  fmt::print("{} intact, {} damaged and set aside, {} not usable, in {}\n", verification.intact,
             verification.damaged.size(), verification.unusable.size(), store.root());
  const bool is_sound = verification.damaged.empty() && verification.unusable.empty();
  return is_sound ? ExitCode::ok : ExitCode::wrong_result;
}

ExitCode clear(cache::Store& store, const CacheOptions&) {
  fmt::print("{} bytes freed in {}\n", store.clear(), store.root());
  return ExitCode::ok;
}

void print_report(const cache::BundleReport& report, const char* verb, const std::string& path) {
  for (const std::string& refused : report.refused) fmt::print("refused: {}\n", printable(refused, 400));
  fmt::print("{} kernels {} {}\n", report.kernels, verb, path);
}

ExitCode export_to(cache::Store& store, const CacheOptions& options) {
  check_output(options.path);
  std::optional<cache::SigningKey> key;
  if (!options.signing_key.empty()) key = cache::SigningKey::read(options.signing_key);
  print_report(cache::export_bundle(store, options.path, key ? &*key : nullptr), "written to", options.path);
  return ExitCode::ok;
}

ExitCode import_from(cache::Store& store, const CacheOptions& options) {
  std::vector<cache::TrustedKey> trusted;
  for (const std::string& path : options.trusted) trusted.push_back(cache::TrustedKey::read(path));
  const cache::BundleReport report = cache::import_bundle(store, options.path, trusted).value_or_throw();
  print_report(report, "taken from", options.path);
  return report.refused.empty() ? ExitCode::ok : ExitCode::wrong_result;
}

}  // namespace

Command add_cache_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("cache", "work with the kernels that are cached on disk");
  app->require_subcommand(1);
  const auto options = std::make_shared<CacheOptions>();
  const auto add = [&](const char* name, const char* help, decltype(CacheOptions::act) act) {
    return app->add_subcommand(name, help)->callback([options, act] { options->act = act; });
  };
  const char* const kJson = "print the result as JSON";
  add("ls", "list the kernels, most recently used first", list)->add_flag("--json", options->json, kJson);
  add("verify",
      "check every kernel, and rename damaged ones so that nothing uses them; exit 1 if a kernel is damaged or cannot "
      "be used",
      verify)
      ->add_flag("--json", options->json, kJson);
  add("clear", "delete all kernels", clear);
  CLI::App* const exporting = add("export", "write all kernels to one file (a bundle), for another machine", export_to);
  exporting->add_option("file", options->path, "the bundle to write, such as kernels.db")->required();
  exporting->add_option("--sign", options->signing_key, "sign each kernel with this Ed25519 private key (a PEM file)")
      ->type_name("KEY");
  CLI::App* const importing = add(
      "import", "add the kernels of a bundle to the cache; kernels are code: import only bundles whose maker you trust",
      import_from);
  importing->add_option("file", options->path, "the bundle to read")->required();
  importing
      ->add_option(
          "--trust", options->trusted,
          "refuse kernels that are not signed with the private key of this Ed25519 public key (a PEM file); repeatable")
      ->type_name("KEY");
  return {app, [options] {
            cache::Store store = open_store();
            return options->act(store, *options);
          }};
}

}  // namespace tilewright::cli
