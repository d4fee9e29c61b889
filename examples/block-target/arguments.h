/* Command-line options of the programs: `--name value`, or `--name` for switches. */
#ifndef BLOCK_TARGET_ARGUMENTS_H
#define BLOCK_TARGET_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct option_value {
  const char* name;
  const char** text; /* one of text, number and on is set, the others are NULL */
  uint64_t* number;  /* a value up to `most` */
  bool* on;          /* a switch without a value */
  uint64_t most;
};

/* Parses options up to the first word that is not an option. Returns the index of that word, or -1 after printing an
 * error. */
int take_options(const char* program, int count, char** words, const struct option_value* options,
                 int option_count);
/* Parses the whole word as a number up to `most`. */
bool to_number(const char* word, uint64_t most, uint64_t* number);

#endif
