#include "arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool to_number(const char* word, uint64_t most, uint64_t* number) {
  char* end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(word, &end, 10);
  if (word[0] < '0' || word[0] > '9' || *end != 0 || errno != 0 || value > most) return false;
  *number = value;
  return true;
}

static const struct option_value* find(const char* word, const struct option_value* options, int count) {
  for (int i = 0; i < count; i++) {
    if (strcmp(options[i].name, word) == 0) return &options[i];
  }
  return NULL;
}

int take_options(const char* program, int count, char** words, const struct option_value* options,
                 int option_count) {
  int i = 1;
  for (; i < count && strncmp(words[i], "--", 2) == 0; i++) {
    const struct option_value* option = find(words[i], options, option_count);
    if (option == NULL) {
      fprintf(stderr, "%s: unknown option %s\n", program, words[i]);
      return -1;
    }
    if (option->on != NULL) {
      *option->on = true;
      continue;
    }
    if (++i == count) {
      fprintf(stderr, "%s: %s requires a value\n", program, option->name);
      return -1;
    }
    if (option->text != NULL) {
      *option->text = words[i];
    } else if (!to_number(words[i], option->most, option->number)) {
      fprintf(stderr, "%s: %s %s is not a number from 0 to %" PRIu64 "\n", program, option->name, words[i],
              option->most);
      return -1;
    }
  }
  return i;
}
