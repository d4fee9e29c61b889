// Of a function that a program in C may call with any number for a value of an enumeration.
#pragma once

#define ROCI_ANY_VALUE __attribute__((no_sanitize("enum")))
