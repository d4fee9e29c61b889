// Ctrl-C for programs that end in order: whoever waits or works asks now and then, and takes down what is there.
#pragma once

namespace roci {

void catch_interrupts();  // SIGINT and SIGTERM; a second one ends the process at once
bool interrupted();

}  // namespace roci
