// Ctrl-C and SIGTERM: the work ends at its next check, and cleans up after itself.
#pragma once

namespace tilewright::cli {

/// Notes SIGINT and SIGTERM from now on instead of dying of them; a second one of a kind kills at once. A signal that
/// the caller of the command has ignored stays so.
void catch_interrupt_signals();

/// The first of them that came; 0: none.
int caught_signal();

/// What the work of this thread checks: see base/interruption.hpp. @throws Interrupted after a signal
void throw_if_interrupted();

}  // namespace tilewright::cli
