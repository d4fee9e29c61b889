/* half_rate: additive increase, multiplicative decrease, on CNPs. An algorithm to begin from.
 *
 *                   CNP: rate = rate * cut
 *    full ------------------------------------> recovering --.
 *     ^                                          ^           | each `period` without a CNP: rate += step
 *     '------ the rate is the line's again ------'-----------'
 *
 * A congested switch marks packets (CE), the receiver answers with CNPs, and each CNP halves the sender's rate, but only once
 * per `period`: what is in flight at the first CNP causes more of them, which say nothing new. When a period has passed
 * without one, the rate rises by a fixed step. DCQCN does the same with more memory; compare cc/dcqcn.cpp.
 *
 * A plugin is this file: a table of parameters, names of states and reasons, the state of one flow, and two functions that
 * change it. The functions are pure: whatever they know is in their arguments, so the same events give the same decisions. */
#include <stddef.h>
/* The interface, with every event and decision explained; nothing else of Rocinante is needed. */
#include <roci/cc.h>

/* ------------------------------------------------------------------------------------------------- the parameters */

/* Knobs, which a profile of the configuration sets by name. Functions get the values in this order. */
enum { CUT, PERIOD, STEP, LEAST_RATE, PARAMETERS };

static const struct roci_cc_parameter parameters[PARAMETERS] = {
    /* name, unit, standard value, least, most, meaning */
    [CUT] = {"cut", "1", 0.5, 0.01, 0.99, "fraction of the rate that remains after a CNP"},
    [PERIOD] = {"period", "ns", 50000, 1000, 1e9,
                "minimum interval between cuts, and interval between increases"},
    [STEP] = {"step", "bit/s", 1e8, 1, 1e12, "increase per step"},
    [LEAST_RATE] = {"least_rate", "bit/s", 1e7, 1, 1e12, "minimum rate"},
};

/* -------------------------------------------------------------------------------------------- the states and reasons */

/* Names for people: tools count the time in each state and how often there was each reason. */
enum { FULL, RECOVERING, STATES };

static const struct roci_cc_label states[STATES] = {
    [FULL] = {"full", "the rate is the line rate"},
    [RECOVERING] = {"recovering", "the rate is increasing after a cut"},
};

enum { NOTHING, CUT_BY_CNP, STEPPED, RECOVERED, REASONS };

static const struct roci_cc_label reasons[REASONS] = {
    [NOTHING] = {"nothing", "no change"}, /* the first one is always this */
    [CUT_BY_CNP] = {"cut", "a CNP cut the rate"},
    [STEPPED] = {"stepped", "a period without a CNP passed"},
    [RECOVERED] = {"recovered", "the rate reached the line rate"},
};

/* ------------------------------------------------------------------------------------------------------- the flow */

/* What is remembered of a flow; all 0 before start(). The engine keeps it, and this is all the memory that there is. */
struct state {
  double rate;       /* bit/s */
  uint64_t cut_from; /* ns: a CNP before this time says nothing new */
};

/* Tells the engine what the rate is and when to call again. */
static void decide(const struct state* flow_state, uint64_t now, const double* values,
                   struct roci_cc_decision* decision) {
  decision->rate = (uint64_t)flow_state->rate;
  /* A timer is a time, not a duration. With the whole rate there is nothing to wait for but CNPs. */
  decision->timer_ns[0] = decision->state == FULL ? 0 : now + (uint64_t)values[PERIOD];
}

/* A flow begins. */
static void start(void* state, const struct roci_cc_flow* flow, uint64_t now, const double* values,
                  struct roci_cc_decision* decision) {
  struct state* s = state;
  s->rate = (double)flow->line_rate;
  decision->state = FULL;
  decide(s, now, values, decision);
}

/* Something has happened to it. Several things may come in one event. */
static void event(void* state, const struct roci_cc_flow* flow, const struct roci_cc_event* event,
                  const double* values, struct roci_cc_decision* decision) {
  struct state* s = state;
  const double line = (double)flow->line_rate;
  const uint64_t now = event->now_ns;

  if ((event->kinds & ROCI_CC_ON_CNP) != 0 && now >= s->cut_from) {
    s->cut_from = now + (uint64_t)values[PERIOD];
    s->rate *= values[CUT];
    if (s->rate < values[LEAST_RATE]) s->rate = values[LEAST_RATE];
    if (s->rate > line) s->rate = line; /* a line that is slower than least_rate */
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
  /* Whatever is not set stays as it was decided before. */
}

/* Whether the values fit together; null when they do. Each is in its range already. */
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
    /* What it cannot do without, and what it decides. */
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
    .receive = NULL, /* nothing is computed at the receiving end */
};

/* What a device looks for in the shared object: its plugins, and behind the last a null pointer. */
__attribute__((visibility("default"))) const struct roci_cc_plugin* const* roci_cc_plugins(void) {
  static const struct roci_cc_plugin* const all[] = {&half_rate, NULL};
  return all;
}
