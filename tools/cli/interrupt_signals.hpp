// Ctrl-C and SIGTERM: the command stops at its next interruption check and cleans up.
#pragma once

namespace tilewright::cli {

/// Installs handlers that record SIGINT and SIGTERM instead of ending the process. A second signal of the same kind
/// ends it at once. A signal that the parent process set to be ignored stays ignored.
void catch_interrupt_signals();

/// The first signal that was caught, or 0.
int caught_signal();

/// The interrupt check of this thread (base/interruption.hpp). @throws Interrupted after a signal was caught
void throw_if_interrupted();

}  // namespace tilewright::cli
