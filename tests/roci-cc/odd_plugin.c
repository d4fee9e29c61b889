/* A correct plugin, and plugins with one error each, selected by compile definitions (CMakeLists.txt). */
#include "roci/cc.h"

#ifndef ABI
#define ABI ROCI_CC_ABI
#endif
#ifndef NAME
#define NAME "odd"
#endif
#ifndef STANDARD
#define STANDARD 1
#endif

static void start(void* state, const struct roci_cc_flow* flow, uint64_t now_ns, const double* parameters,
                  struct roci_cc_decision* decision) {
  (void)state;
  (void)now_ns;
  decision->rate = (uint64_t)((double)flow->line_rate * parameters[0]);
}

static void event(void* state, const struct roci_cc_flow* flow, const struct roci_cc_event* event,
                  const double* parameters, struct roci_cc_decision* decision) {
  (void)state;
  (void)flow;
  (void)event;
  (void)parameters;
  (void)decision;
}

#ifdef CHECK
static const char* check(const struct roci_cc_flow* flow, const double* parameters) {
  (void)flow;
  (void)parameters;
  return "nothing pleases it";
}
#endif

static const struct roci_cc_parameter kParameters[] = {
    {"part", "1", STANDARD, 0, 1, "of the line | its rate"}};
static const struct roci_cc_label kStates[] = {{"fixed", "the limit stays as it is"}};
static const struct roci_cc_label kReasons[] = {{"nothing", "nothing was changed"}};

static const struct roci_cc_plugin kPlugin = {
    .abi = ABI,
    .size = sizeof(struct roci_cc_plugin),
    .name = NAME,
    .summary = "a part of the line",
    .source = "none",
    .capabilities = ROCI_CC_USES_RATE,
    .parameters = kParameters,
    .parameter_count = 1,
    .state_count = 1,
    .states = kStates,
    .reasons = kReasons,
    .reason_count = 1,
#ifdef CHECK
    .check = check,
#endif
    .start = start,
    .event = event,
};

#ifndef ENTRY
#define ENTRY roci_cc_plugins
#endif
const struct roci_cc_plugin* const* ENTRY(void);
const struct roci_cc_plugin* const* ENTRY(void) {
  static const struct roci_cc_plugin* const kAll[] = {&kPlugin, 0};
  return kAll;
}
