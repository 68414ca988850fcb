#include "tilewright/emulator/global_memory_checks.hpp"

namespace tilewright::emulator {
namespace {

thread_local int scopes = 0;

}  // namespace

GlobalMemoryChecks::GlobalMemoryChecks() { ++scopes; }
GlobalMemoryChecks::~GlobalMemoryChecks() { --scopes; }

bool GlobalMemoryChecks::are_active() { return scopes > 0; }

}  // namespace tilewright::emulator
