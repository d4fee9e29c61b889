// Attribute of functions that C programs may call with values outside an enumeration.
#pragma once

#define ROCI_ANY_VALUE __attribute__((no_sanitize("enum")))
