/* Options of the programs: `--name value`, or `--name` alone for those that are switched on. */
#ifndef BLOCK_TARGET_ARGUMENTS_H
#define BLOCK_TARGET_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct option_value {
  const char* name;
  const char** text; /* one of these three is set: a text, */
  uint64_t* number;  /* a number up to `most`, */
  bool* on;          /* or a switch */
  uint64_t most;
};

/* Takes options until a word that is none. The index of that word, or -1 after a sentence on standard error. */
int take_options(const char* program, int count, char** words, const struct option_value* options,
                 int option_count);
/* The whole word as a number. */
bool to_number(const char* word, uint64_t most, uint64_t* number);

#endif
