// A fake libtilewright_mlir.so that executes commands in the text: a line "//! kill SIGNAL" sends the signal to this
// process, "//! sleep MS" sleeps. It returns the text as PTX. FAKE_ABI and FAKE_LLVM are the versions that it claims.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>

#include "tilewright/compile/mlir_shim/abi.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int tilewright_mlir_abi(void) { return FAKE_ABI; }
EXPORT const char* tilewright_mlir_llvm_version(void) { return FAKE_LLVM; }
EXPORT void tilewright_mlir_compile(const TilewrightMlirInput* input, TilewrightMlirOutput* output) {
  std::istringstream words(input->text);
  for (std::string word; words >> word;) {
    int number = 0;
    if (word == "kill" && words >> number) ::kill(::getpid(), number);
    if (word == "sleep" && words >> number) std::this_thread::sleep_for(std::chrono::milliseconds(number));
  }
  *output = {};
  output->ptx = ::strdup(input->text);
  output->ptx_bytes = input->text_bytes;
  output->log = ::strdup("");
}
EXPORT void tilewright_mlir_free(TilewrightMlirOutput* output) {
  std::free(output->ptx);
  std::free(output->log);
}
