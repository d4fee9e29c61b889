// Ctrl-C: the running test ends as soon as a wait notices, and everything is taken down in order.
#pragma once

namespace roci::perf {

void catch_interrupts();  // SIGINT and SIGTERM; a second one ends the process at once
bool interrupted();

}  // namespace roci::perf
