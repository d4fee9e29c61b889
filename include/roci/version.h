/* Version of Rocinante, defined only here; CMake parses these lines. For C and C++. */
#ifndef ROCI_VERSION_H
#define ROCI_VERSION_H

#define ROCI_VERSION_MAJOR 0
#define ROCI_VERSION_MINOR 2
#define ROCI_VERSION_PATCH 0

#define ROCI_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define ROCI_VERSION_TEXT(major, minor, patch) ROCI_VERSION_TEXT_(major, minor, patch)
#define ROCI_VERSION ROCI_VERSION_TEXT(ROCI_VERSION_MAJOR, ROCI_VERSION_MINOR, ROCI_VERSION_PATCH)

#endif
