// A fake libnvrtc.so.13 that executes commands in the source text, so that tests have a compiler that crashes, hangs or
// exhausts memory. A command is a line "//! NAME [ARGUMENT]":
//   log FILE      append a byte to FILE                  sleep MS    sleep for that time
//   kill SIGNAL   send the signal to this process        exit CODE   exit with that code
//   eat MIB       allocate that much memory              fail        report a compile error
// The compile returns the text itself as PTX and cubin.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

namespace {

struct Program {
  std::string text;
  std::string log;
};

enum Result { success = 0, compilation = 6 };

// Executes one command; false for `fail`.
bool execute(const std::string& command, const std::string& argument) {
  if (command == "log") {
    std::ofstream(argument, std::ios::app) << 'x';
  } else if (command == "sleep") {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(argument)));
  } else if (command == "kill") {
    ::kill(::getpid(), std::stoi(argument));
    std::this_thread::sleep_for(std::chrono::seconds(5));
  } else if (command == "exit") {
    ::_exit(std::stoi(argument));
  } else if (command == "eat") {
    const std::size_t bytes = std::stoul(argument) << 20;
    const std::string eaten(bytes, 'x');
    return eaten[std::strlen(argument.c_str())] == 'x';  // keeps the compiler from removing the allocation
  }
  return command != "fail";
}

int copy(const std::string& bytes, char* to) {
  std::memcpy(to, bytes.data(), bytes.size());
  return success;
}
int copy_size(const std::string& bytes, std::size_t* size) {
  *size = bytes.size();
  return success;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return success;
}
EXPORT const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
EXPORT int nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*,
                              const char* const*) {
  *program = new Program{text, {}};
  return success;
}
EXPORT int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return success;
}
EXPORT int nvrtcCompileProgram(Program* program, int, const char* const*) {
  std::istringstream lines(program->text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, command, argument;
    words >> mark >> command >> argument;
    if (mark == "//!" && !execute(command, argument)) {
      program->log = "error: as commanded";
      return compilation;
    }
  }
  return success;
}
EXPORT int nvrtcGetProgramLogSize(Program* program, std::size_t* size) { return copy_size(program->log, size); }
EXPORT int nvrtcGetProgramLog(Program* program, char* log) { return copy(program->log, log); }
EXPORT int nvrtcGetPTXSize(Program* program, std::size_t* size) { return copy_size(program->text, size); }
EXPORT int nvrtcGetPTX(Program* program, char* ptx) { return copy(program->text, ptx); }
EXPORT int nvrtcGetCUBINSize(Program* program, std::size_t* size) { return copy_size(program->text, size); }
EXPORT int nvrtcGetCUBIN(Program* program, char* cubin) { return copy(program->text, cubin); }
