// Draws the operands, runs the kernels in batches of forms, and compares register by register.
#include "comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "form_kernel.hpp"
#include "tilewright/base/error.hpp"

namespace tilewright::differential {
namespace {

using Registers = std::vector<std::vector<std::uint64_t>>;  // [register][sample]

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::uint64_t low_bits(int count) { return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1; }

/// Replaces some second and third operands by ones near the first, so that sums cancel and comparisons are equal.
void relate(const std::vector<OperandKind>& kinds, Registers& registers, std::size_t sample, Random& random) {
  if (kinds.size() < 2 || kinds.size() > 3 || random.below(8) != 0) return;
  const OperandKind& kind = kinds[0];
  if (kinds[1].name != kind.name || kind.values != Values::all || kind.format == NumberFormat::predicate) return;
  const std::uint64_t near = random() & 3;
  const std::uint64_t sign = random.below(2) != 0 ? kind.sign_bits() : 0;
  if (kinds.size() == 2) {
    registers[1][sample] = ((registers[0][sample] ^ sign) + near) & low_bits(kind.register_bits);
    return;
  }
  const bool is_wide = kind.format == NumberFormat::f32 || kind.format == NumberFormat::f64;
  if (kinds[2].name != kind.name || !is_wide) return;
  const double product = to_number(kind.format, registers[0][sample]) * to_number(kind.format, registers[1][sample]);
  std::uint64_t bits = 0;
  if (kind.format == NumberFormat::f64) {
    std::memcpy(&bits, &product, sizeof product);
  } else {
    const auto rounded = static_cast<float>(product);
    std::memcpy(&bits, &rounded, sizeof rounded);
  }
  registers[2][sample] = ((bits ^ kind.sign_bits()) + near) & low_bits(kind.register_bits);
}

Registers draw(const InstructionForm& form, const ComparisonSettings& settings) {
  const std::vector<OperandKind> kinds = form.source_registers();
  Random random(settings.seed ^ hash_of(form.text));
  Registers registers(kinds.size(), std::vector<std::uint64_t>(settings.samples));
  // First all combinations of special values, as many as fit into half of the samples.
  std::size_t combinations = 1;
  for (const OperandKind& kind : kinds) {
    const std::uint64_t count = special_count(kind);
    combinations = count == 0 ? 0 : std::min<std::size_t>(combinations * count, std::size_t{1} << 40);
  }
  const bool is_scalar = std::ranges::none_of(form.sources, &OperandGroup::is_vector);
  if (!is_scalar) combinations = 0;
  const bool is_exhaustive =
      kinds.size() == 1 && kinds[0].register_bits == 16 && settings.samples == std::size_t{1} << 16;
  const std::size_t specials = std::min(combinations, settings.samples / 2);
  for (std::size_t sample = 0; sample < settings.samples; ++sample) {
    std::size_t rest = specials == combinations ? sample : random() % std::max<std::size_t>(combinations, 1);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (is_exhaustive) {
        registers[i][sample] = sample;
      } else if (sample < specials) {
        const std::uint64_t count = special_count(kinds[i]);
        registers[i][sample] = special_register(kinds[i], rest % count, random);
        rest /= count;
      } else {
        registers[i][sample] = random_register(kinds[i], random);
      }
    }
    if (sample >= specials && is_scalar) relate(kinds, registers, sample, random);
  }
  return registers;
}

struct Addresses {
  runtime::DeviceAddress sources, destinations;
};

std::vector<Registers> run_batch(const std::shared_ptr<runtime::Device>& device, std::span<const InstructionForm> forms,
                                 std::span<const Registers> sources, std::size_t samples) {
  const FormMemory memory = lay_out(forms, samples);
  const std::string text = form_kernel(forms, memory);
  const auto kernel = device->load(runtime::Image{{}, text}, std::string(kFormKernelName), 0);
  std::vector<std::byte> bytes(memory.source_bytes);
  for (std::size_t f = 0; f < forms.size(); ++f) {
    const std::vector<OperandKind> kinds = forms[f].source_registers();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const auto width = static_cast<std::size_t>(kinds[i].register_bits / 8);
      std::byte* to = bytes.data() + memory.sources[f][i];
      for (std::size_t s = 0; s < samples; ++s) std::memcpy(to + s * width, &sources[f][i][s], width);
    }
  }
  const runtime::DeviceBuffer in(device, std::max<std::size_t>(bytes.size(), 1));
  const runtime::DeviceBuffer out(device, memory.destination_bytes);
  device->copy_in(in.address(), bytes.data(), bytes.size(), nullptr);
  device->fill(out.address(), 0xa5, memory.destination_bytes, nullptr);
  runtime::LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(samples / kBlockThreads), 1, 1};
  config.block = {kBlockThreads, 1, 1};
  const Addresses addresses{in.address(), out.address()};
  kernel->launch(config, std::as_bytes(std::span(&addresses, 1)));
  bytes.resize(memory.destination_bytes);
  device->copy_out(bytes.data(), out.address(), bytes.size(), nullptr);
  device->synchronize(nullptr);
  std::vector<Registers> results;
  for (std::size_t f = 0; f < forms.size(); ++f) {
    const std::vector<OperandKind> kinds = forms[f].destination_registers();
    Registers& registers = results.emplace_back(kinds.size(), std::vector<std::uint64_t>(samples));
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const auto width = static_cast<std::size_t>(kinds[i].register_bits / 8);
      const std::byte* from = bytes.data() + memory.destinations[f][i];
      for (std::size_t s = 0; s < samples; ++s) std::memcpy(&registers[i][s], from + s * width, width);
    }
  }
  return results;
}

/// The sources with all signs cleared, whose results bound the sums.
Registers magnitudes(const InstructionForm& form, Registers sources) {
  const std::vector<OperandKind> kinds = form.source_registers();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (std::uint64_t& value : sources[i]) value &= ~kinds[i].sign_bits();
  }
  return sources;
}

/// The largest difference that the tolerance allows between two numbers.
double allowed(const Tolerance& tolerance, NumberFormat format, double a, double b, double sum) {
  const double larger = std::max(std::fabs(a), std::fabs(b));
  double bound = std::max(tolerance.absolute, tolerance.relative * larger);
  if (tolerance.ulp > 0) bound = std::max(bound, tolerance.ulp * unit_in_last_place(format, larger));
  if (tolerance.of_sum > 0) bound = std::max(bound, tolerance.of_sum * sum);
  return bound;
}

class Comparison {
 public:
  Comparison(FormReport& report, const Registers& sources) : report_(report), sources_(sources) {}

  void compare(const Registers& reference, const Registers& actual, const Registers& sums) {
    const std::vector<OperandKind> kinds = report_.form->destination_registers();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      for (std::size_t s = 0; s < reference[i].size(); ++s) {
        double error = 0;
        const int elements = kinds[i].elements;
        report_.results += static_cast<std::uint64_t>(elements);
        if (reference[i][s] == actual[i][s]) {
          report_.equal += static_cast<std::uint64_t>(elements);
          continue;
        }
        for (int e = 0; e < elements; ++e) {
          const int shift = e * kinds[i].element_bits();
          const std::uint64_t mask = low_bits(kinds[i].element_bits());
          const std::uint64_t sum = sums.empty() ? 0 : sums[i][s] >> shift & mask;
          error = std::max(
              error, error_of(kinds[i].format, reference[i][s] >> shift & mask, actual[i][s] >> shift & mask, sum));
        }
        note(s, i, reference[i][s], actual[i][s], error);
      }
    }
  }

 private:
  /// The difference as a multiple of the tolerance; infinity where no difference is allowed.
  double error_of(NumberFormat format, std::uint64_t a, std::uint64_t b, std::uint64_t sum) {
    if (a == b) {
      ++report_.equal;
      return 0;
    }
    const Tolerance& tolerance = report_.form->tolerance;
    const bool a_is_nan = is_nan(format, a), b_is_nan = is_nan(format, b);
    if (tolerance.is_exact() || !is_float(format) || a_is_nan != b_is_nan) return HUGE_VAL;
    if (a_is_nan) return 0;
    const double x = to_number(format, a), y = to_number(format, b);
    const double difference = std::fabs(x - y);
    if (difference == 0) return 0;  // zeros of different sign
    const double magnitude = is_nan(format, sum) ? 0 : std::fabs(to_number(format, sum));
    return difference / allowed(tolerance, format, x, y, magnitude);
  }

  void note(std::size_t sample, std::size_t destination, std::uint64_t reference, std::uint64_t actual, double error) {
    const bool is_worst = error > report_.largest_error;
    report_.largest_error = std::max(report_.largest_error, error);
    if (!(error > 1)) return;
    Mismatch mismatch{sample, destination, {}, reference, actual};
    for (const auto& source : sources_) mismatch.sources.push_back(source[sample]);
    if (report_.mismatches++ == 0) {
      report_.first = mismatch;
      report_.worst = mismatch;
    } else if (is_worst || (std::isinf(error) && report_.mismatches % 64 == 0)) {
      report_.worst = mismatch;  // of those without a measure of the error, another one
    }
  }

  FormReport& report_;
  const Registers& sources_;
};

std::string hexadecimal(std::uint64_t value, int bits) {
  return fmt::format("{:#0{}x}", value & low_bits(bits), bits / 4 + 2);
}

std::string describe(const InstructionForm& form, const Mismatch& mismatch) {
  const std::vector<OperandKind> sources = form.source_registers();
  std::string inputs;
  constexpr std::size_t kMaxShown = 5;
  for (std::size_t i = 0; i < std::min(sources.size(), kMaxShown); ++i) {
    inputs += fmt::format("{}{}", i == 0 ? "" : " ", hexadecimal(mismatch.sources[i], sources[i].register_bits));
  }
  if (sources.size() > kMaxShown) inputs += " ...";
  const OperandKind kind = form.destination_registers()[mismatch.destination];
  const std::string which =
      form.destination_registers().size() > 1 ? fmt::format(" in %d{}", mismatch.destination) : "";
  return fmt::format("inputs {} (sample {}): emulator {}, GPU {}{}", inputs, mismatch.sample,
                     hexadecimal(mismatch.reference, kind.register_bits),
                     hexadecimal(mismatch.actual, kind.register_bits), which);
}

}  // namespace

std::vector<Registers> draw_sources(std::span<const InstructionForm> forms, const ComparisonSettings& settings) {
  std::vector<Registers> all;
  for (const InstructionForm& form : forms) all.push_back(draw(form, settings));
  return all;
}

std::vector<Registers> execute(const std::shared_ptr<runtime::Device>& device, std::span<const InstructionForm> forms,
                               std::span<const Registers> sources, std::size_t samples) {
  return run_batch(device, forms, sources, samples);
}

std::vector<FormReport> compare(const std::shared_ptr<runtime::Device>& reference,
                                const std::shared_ptr<runtime::Device>& actual, std::span<const InstructionForm> forms,
                                const ComparisonSettings& settings) {
  std::vector<FormReport> reports;
  for (std::size_t first = 0; first < forms.size(); first += settings.forms_per_kernel) {
    const auto batch = forms.subspan(first, std::min(settings.forms_per_kernel, forms.size() - first));
    std::vector<InstructionForm> altered(batch.begin(), batch.end());
    if (settings.altered) std::ranges::transform(batch, altered.begin(), settings.altered);
    const std::vector<Registers> sources = draw_sources(batch, settings);
    try {
      const std::vector<Registers> expected = run_batch(reference, batch, sources, settings.samples);
      const std::vector<Registers> results = run_batch(actual, altered, sources, settings.samples);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        FormReport report;
        report.form = &batch[i];
        Registers sums;
        if (batch[i].tolerance.of_sum > 0) {
          const std::vector<Registers> absolute{magnitudes(batch[i], sources[i])};
          sums = run_batch(reference, batch.subspan(i, 1), absolute, settings.samples)[0];
        }
        Comparison(report, sources[i]).compare(expected[i], results[i], sums);
        reports.push_back(std::move(report));
      }
    } catch (const Error& error) {
      if (batch.size() == 1) {
        FormReport& report = reports.emplace_back();
        report.form = batch.data();
        report.failure = error.what();
        continue;
      }
      ComparisonSettings singly = settings;  // finds out which form it is
      singly.forms_per_kernel = 1;
      std::ranges::move(compare(reference, actual, batch, singly), std::back_inserter(reports));
    }
  }
  return reports;
}

std::string describe_mismatch(const FormReport& report) {
  if (!report.failure.empty()) {
    return fmt::format("cannot run {}: {}", report.form->text, report.failure.substr(0, 300));
  }
  if (report.mismatches == 0) return {};
  std::string text = fmt::format("differs: {}: {} of {} results; {}", report.form->text, report.mismatches,
                                 report.results, describe(*report.form, report.first));
  if (report.mismatches > 1 && report.worst.sample != report.first.sample) {
    text += "\n    also " + describe(*report.form, report.worst);
  }
  return text;
}

std::string summarise(std::span<const FormReport> reports) {
  struct Row {
    std::size_t forms = 0, differing = 0;
    std::uint64_t results = 0, equal = 0;
    double largest_error = 0;
  };
  std::map<std::string, Row> rows;
  Row total;
  for (const FormReport& report : reports) {
    const std::string& opcode = report.form->opcode;
    std::string name = opcode.substr(0, opcode.find('.'));
    if (!report.form->tolerance.is_exact()) name += fmt::format(" (within {})", report.form->tolerance_text);
    for (Row* row : {&rows[name], &total}) {
      ++row->forms;
      row->differing += report.matches() ? 0U : 1U;
      row->results += report.results;
      row->equal += report.equal;
      if (!report.form->tolerance.is_exact()) row->largest_error = std::max(row->largest_error, report.largest_error);
    }
  }
  const auto line = [](const std::string& name, const Row& row) {
    std::string text = fmt::format("{:<40} {:>5} forms {:>10} results", name, row.forms, row.results);
    if (row.equal != row.results) {
      text +=
          fmt::format("  {:.4f} % equal", 100.0 * static_cast<double>(row.equal) / static_cast<double>(row.results));
    }
    if (row.largest_error > 0) text += fmt::format("  largest error {:.3g} of the tolerance", row.largest_error);
    if (row.differing > 0) text += fmt::format("  {} forms DIFFER", row.differing);
    return text + "\n";
  };
  std::string text;
  for (const auto& [name, row] : rows) text += line(name, row);
  return text + line("total", total);
}

}  // namespace tilewright::differential
