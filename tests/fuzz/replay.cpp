// Runs a fuzz target on files and folders of inputs, then on mutations of them, and prints the number of inputs:
//   replay [--mutations N] FILE|FOLDER...
// The mutations are the same in every run, so that a failure can be repeated. They need no libFuzzer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

/// Draws mutations of inputs.
class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& inputs) : inputs_(inputs) {}

  std::string next() {
    std::string input = inputs_[below(inputs_.size())];
    for (std::size_t left = 1 + below(4); left > 0; --left) mutate(input);
    return input;
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % std::max<std::size_t>(limit, 1)); }

  /// A part of one of the inputs: most often short, as a word or a line is.
  std::string part_of(const std::string& input) {
    const std::size_t begin = below(input.size() + 1);
    return input.substr(begin, below(below(8) == 0 ? input.size() + 1 : 24));
  }

  void mutate(std::string& input) {
    const std::size_t at = below(input.size() + 1);
    switch (below(5)) {
      case 0:  // change a byte
        if (at < input.size()) input[at] = static_cast<char>(random_());
        break;
      case 1:  // remove a part
        input.erase(at, part_of(input).size());
        break;
      case 2:  // repeat a part
        input.insert(at, part_of(input));
        break;
      case 3:  // take a part of another input
        input.insert(at, part_of(inputs_[below(inputs_.size())]));
        break;
      default: {  // replace a part
        const std::string part = part_of(inputs_[below(inputs_.size())]);
        input.replace(at, part.size(), part);
      }
    }
  }

  const std::vector<std::string>& inputs_;
  std::mt19937_64 random_{1};
};

}  // namespace

int main(int argc, char** argv) {
  std::size_t mutations = 0;
  int first = 1;
  if (argc > 2 && argv[1] == std::string_view("--mutations")) {
    mutations = std::stoul(argv[2]);
    first = 3;
  }
  std::vector<std::filesystem::path> paths;
  for (int i = first; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      paths.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);  // the order of a folder differs from machine to machine
  std::vector<std::string> inputs;
  for (const auto& path : paths) inputs.push_back(read_file(path));
  for (const std::string& input : inputs) run(input);
  if (inputs.empty()) return 1;
  Mutator mutator(inputs);
  for (std::size_t i = 0; i < mutations; ++i) run(mutator.next());
  std::printf("%zu inputs, %zu mutations\n", inputs.size(), mutations);
}
