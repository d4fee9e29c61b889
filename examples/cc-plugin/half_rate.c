/* half_rate: additive increase, multiplicative decrease, driven by CNPs. A template for new algorithms.
 *
 *                   CNP: rate = rate * cut
 *    full ------------------------------------> recovering --.
 *     ^                                          ^           | each `period` without a cut: rate += step
 *     '------ the rate reaches the line rate ----'-----------'
 *
 * A congested switch marks packets (CE), the receiver answers with CNPs, and a CNP reduces the sender's rate by the
 * factor `cut`, at most once per `period`: packets in flight at the first CNP cause further CNPs without new
 * information. After a period without a cut, the rate increases by `step`. DCQCN extends this scheme with more
 * state; compare cc/dcqcn.cpp.
 *
 * A plugin consists of this file: a table of parameters, names of states and reasons, the state of one flow, and two
 * functions that change it. The functions are pure: they use only their arguments, so the same events give the same
 * decisions. */
#include <stddef.h>
/* The plugin interface, which documents all events and decisions. A plugin requires no other header of Rocinante. */
#include <roci/cc.h>

/* ------------------------------------------------------------------------------------------------- the parameters */

/* Parameters, which a profile of the configuration sets by name. The functions receive their values in this order. */
enum { CUT, PERIOD, STEP, LEAST_RATE, PARAMETERS };

static const struct roci_cc_parameter parameters[PARAMETERS] = {
    /* name, unit, default, minimum, maximum, meaning */
    [CUT] = {"cut", "1", 0.5, 0.01, 0.99, "fraction of the rate that remains after a CNP"},
    [PERIOD] = {"period", "ns", 50000, 1000, 1e9,
                "minimum interval between cuts, and interval between increases"},
    [STEP] = {"step", "bit/s", 1e8, 1, 1e12, "increase per step"},
    [LEAST_RATE] = {"least_rate", "bit/s", 1e7, 1, 1e12, "minimum rate"},
};

/* ------------------------------------------------------------------------------------------ the states and reasons */

/* Names for output: tools count the time in each state and the number of changes by reason. */
enum { FULL, RECOVERING, STATES };

static const struct roci_cc_label states[STATES] = {
    [FULL] = {"full", "the rate is the line rate"},
    [RECOVERING] = {"recovering", "the rate is increasing after a cut"},
};

enum { NOTHING, CUT_BY_CNP, STEPPED, RECOVERED, REASONS };

static const struct roci_cc_label reasons[REASONS] = {
    [NOTHING] = {"nothing", "no change"}, /* the first reason must be this one */
    [CUT_BY_CNP] = {"cut", "a CNP cut the rate"},
    [STEPPED] = {"stepped", "a period without a cut passed"},
    [RECOVERED] = {"recovered", "the rate reached the line rate"},
};

/* ------------------------------------------------------------------------------------------------------- the flow */

/* State of a flow; 0 before start(). Allocated by the engine; a plugin has no other memory. */
struct state {
  double rate;       /* bit/s */
  uint64_t cut_from; /* ns: CNPs before this time are ignored */
};

/* Sets the rate and the next timer. */
static void decide(const struct state* flow_state, uint64_t now, const double* values,
                   struct roci_cc_decision* decision) {
  decision->rate = (uint64_t)flow_state->rate;
  /* A timer is an absolute time, not a duration. At full rate no timer is needed. */
  decision->timer_ns[0] = decision->state == FULL ? 0 : now + (uint64_t)values[PERIOD];
}

/* Called when a flow starts. */
static void start(void* state, const struct roci_cc_flow* flow, uint64_t now, const double* values,
                  struct roci_cc_decision* decision) {
  struct state* s = state;
  s->rate = (double)flow->line_rate;
  decision->state = FULL;
  decide(s, now, values, decision);
}

/* Called for each event of a flow. One event may combine several kinds. */
static void event(void* state, const struct roci_cc_flow* flow, const struct roci_cc_event* event,
                  const double* values, struct roci_cc_decision* decision) {
  struct state* s = state;
  const double line = (double)flow->line_rate;
  const uint64_t now = event->now_ns;

  if ((event->kinds & ROCI_CC_ON_CNP) != 0 && now >= s->cut_from) {
    s->cut_from = now + (uint64_t)values[PERIOD];
    s->rate *= values[CUT];
    if (s->rate < values[LEAST_RATE]) s->rate = values[LEAST_RATE];
    if (s->rate > line) s->rate = line; /* if the line rate is below least_rate */
    decision->state = RECOVERING;
    decision->reason = CUT_BY_CNP;
    decide(s, now, values, decision);
  } else if ((event->kinds & ROCI_CC_ON_TIMER0) != 0) {
    s->rate += values[STEP];
    decision->reason = STEPPED;
    if (s->rate >= line) {
      s->rate = line;
      decision->state = FULL;
      decision->reason = RECOVERED;
    }
    decide(s, now, values, decision);
  }
  /* Fields that are not set keep their previous values. */
}

/* Validates the combination of values; each value is already within its range. Returns NULL if they are valid. */
static const char* check(const struct roci_cc_flow* flow, const double* values) {
  (void)values;
  if (flow != NULL && flow->line_rate == 0) return "the line rate is unknown";
  return NULL;
}

/* ----------------------------------------------------------------------------------------------------- the plugin */

static const struct roci_cc_plugin half_rate = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(struct roci_cc_plugin),
    .name = "half_rate",
    .summary = "halves the rate at a CNP, then increases it in steps",
    .source = "Chiu and Jain, Analysis of the Increase and Decrease Algorithms, 1989",
    /* The required input, and the fields of the decision that the plugin sets. */
    .capabilities = ROCI_CC_NEEDS_CNP | ROCI_CC_USES_RATE | ROCI_CC_USES_ECN,
    .state_bytes = sizeof(struct state),
    .parameters = parameters,
    .parameter_count = PARAMETERS,
    .state_count = STATES,
    .states = states,
    .reasons = reasons,
    .reason_count = REASONS,
    .check = check,
    .start = start,
    .event = event,
    .receive = NULL, /* no computation at the receiver */
};

/* The entry point of the shared object: its plugins, terminated by NULL. */
__attribute__((visibility("default"))) const struct roci_cc_plugin* const* roci_cc_plugins(void) {
  static const struct roci_cc_plugin* const all[] = {&half_rate, NULL};
  return all;
}
