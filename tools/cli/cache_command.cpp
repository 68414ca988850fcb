// tilewright cache: the kernels on disk: listed, checked, emptied, and carried from machine to machine.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

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
  ExitCode (*act)(cache::Store&, const std::string& path) = nullptr;
  std::string path;  // of a bundle, for those that take one
};

// The store that an engine would use, which needs no device.
cache::Store open_store() {
  const engine::Options options = engine::Options::from_environment();
  return cache::Store({options.cache_dir, options.cache_on_disk, options.cache_max_bytes});
}

ExitCode list(cache::Store& store, const std::string&) {
  std::int64_t total = 0;
  for (const cache::Entry& entry : store.list()) {
    total += entry.bytes;
    fmt::print("{:.12}  {}  {:>8} bytes  {:>7.1f} ms  {:<7}  {}\n", entry.key.hex(), local_time(entry.last_used_s),
               entry.bytes, entry.compile_ms, entry.target.name(), entry.name);
  }
  fmt::print("{} kernels, {} bytes, in {}\n", store.keys().size(), total, store.root());
  return ExitCode::ok;
}

ExitCode verify(cache::Store& store, const std::string&) {
  const cache::Verification verification = store.verify();
  for (const std::string& damaged : verification.damaged) fmt::print("damaged: {}\n", printable(damaged, 400));
  fmt::print("{} sound, {} damaged and set aside, in {}\n", verification.sound, verification.damaged.size(),
             store.root());
  return verification.damaged.empty() ? ExitCode::ok : ExitCode::wrong_result;
}

ExitCode clear(cache::Store& store, const std::string&) {
  fmt::print("{} bytes freed in {}\n", store.clear(), store.root());
  return ExitCode::ok;
}

void print_report(const cache::BundleReport& report, const char* verb, const std::string& path) {
  for (const std::string& refused : report.refused) fmt::print("refused: {}\n", printable(refused, 400));
  fmt::print("{} kernels {} {}\n", report.kernels, verb, path);
}

ExitCode export_to(cache::Store& store, const std::string& path) {
  check_output(path);
  print_report(cache::export_bundle(store, path), "written to", path);
  return ExitCode::ok;
}

ExitCode import_from(cache::Store& store, const std::string& path) {
  const cache::BundleReport report = cache::import_bundle(store, path).value_or_throw();
  print_report(report, "taken from", path);
  return report.refused.empty() ? ExitCode::ok : ExitCode::wrong_result;
}

}  // namespace

Command add_cache_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("cache", "the kernels on disk");
  app->require_subcommand(1);
  const auto options = std::make_shared<CacheOptions>();
  const auto add = [&](const char* name, const char* help, decltype(CacheOptions::act) act) {
    return app->add_subcommand(name, help)->callback([options, act] { options->act = act; });
  };
  add("ls", "list them, most recently used first", list);
  add("verify", "check every one; exits 1 when some are damaged, which are set aside", verify);
  add("clear", "delete them all", clear);
  add("export", "write them all to one file", export_to)
      ->add_option("file", options->path, "the bundle, such as compiled_cache.db")
      ->required();
  add("import", "take those of a bundle, whose maker you trust", import_from)
      ->add_option("file", options->path, "the bundle")
      ->required();
  return {app, [options] {
            cache::Store store = open_store();
            return options->act(store, options->path);
          }};
}

}  // namespace tilewright::cli
