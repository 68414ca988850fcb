// Any file of tuning records is read or refused with a reason; a record that is written to it can be read back.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tilewright/cache/tuning_records.hpp"

namespace {

using namespace tilewright;

/// The folder of the file: in /dev/shm if that exists, because every input is written to a file. Removed at exit.
class Folder {
 public:
  Folder() : path_(std::filesystem::exists("/dev/shm") ? "/dev/shm/records_XXXXXX" : "/tmp/records_XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void write(const std::uint8_t* data, std::size_t size) const {
    for (const char* name : {"/tuning_records.db", "/tuning_records.db-journal", "/tuning_records.db.bad"}) {
      ::unlink((path_ + name).c_str());
    }
    std::FILE* const file = std::fopen((path_ + "/tuning_records.db").c_str(), "wb");
    if (file == nullptr || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) std::abort();
  }

 private:
  std::string path_;
};

template <class T>
bool is_read(const Result<T>& result) {
  if (!result && result.reason().empty()) std::abort();
  return static_cast<bool>(result);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  folder.write(data, size);
  const cache::TuningRecords records(folder.path());
  is_read(records.list());
  is_read(records.choices("device", "library"));
  is_read(records.faults());

  const cache::TuningRecord record{.key = {"device", "library", "problem", "kernels"},
                                   .winner = "winner",
                                   .median_us = 1.0,
                                   .report = "{}",
                                   .measured_s = 1};
  if (!records.remember(record)) return 0;  // files of another format are not changed
  static_cast<void>(records.note({"device", "library", "source", "kernel", "problem", "reason", 1, true}));
  static_cast<void>(records.forget("device", "another problem"));
  is_read(records.choices("device", "library"));
  return 0;
}
