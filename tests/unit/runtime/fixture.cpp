// Images that tests load.
#include "fixture.hpp"

#include <elf.h>

namespace tilewright::runtime {

std::vector<std::byte> minimal_cubin(unsigned sections) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 190;
  header.e_shoff = sizeof header;
  header.e_shnum = static_cast<Elf64_Half>(sections);
  header.e_shentsize = sizeof(Elf64_Shdr);
  std::vector<std::byte> image(sizeof header + sections * sizeof(Elf64_Shdr));
  std::memcpy(image.data(), &header, sizeof header);
  return image;
}

}  // namespace tilewright::runtime
