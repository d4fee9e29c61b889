// Network key: secret of the hosts that authenticate each other (ExtensionConfig::network_key), in a file of its own.
#pragma once

#include <string>

#include "base/result.hpp"
#include "wire/extensions/siphash.hpp"

namespace roci {

// Reads the key from a file with 32 hexadecimal digits, optionally followed by a newline. The file must be a regular
// file with an absolute path, no symbolic link, owned by the effective user or root, and accessible by its owner only
// (mode 0600 or 0400).
Result<SipKey> read_network_key(const std::string& file);

}  // namespace roci
