// Ctrl-C handling of programs: they poll interrupted() and shut down in order.
#pragma once

namespace roci {

void catch_interrupts();  // SIGINT and SIGTERM; a second one ends the process at once
bool interrupted();

}  // namespace roci
