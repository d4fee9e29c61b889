/* The plugin interface of congestion control: plain C, with no other header of ours.
 *
 * A plugin is a set of constants and pure functions. The engine owns everything else: it keeps the state of every flow,
 * gathers what happened into events, calls the plugin, and holds packets back as the plugin has decided.
 *
 *        ACK, NAK, CNP, CNM, RTT, INT, time                       window, rate, gap, ECN, timers
 *   transport ---------------------> [engine] -- event --> [plugin] -- decision --> [engine] ------> packets
 *                                       flow state, parameters -^
 *
 * A flow is one direction of a queue pair: its requests are one, the READ responses that it sends are another, with a
 * state of its own. Calls for a flow come one after the other, though not always from the same thread. A function of a
 * plugin must not allocate, block, do I/O, read a clock or keep anything outside the flow's state: then the same events
 * give the same decisions, bit for bit, in real and in virtual time, and a recorded trace can be replayed.
 *
 * docs/congestion-control.md tells how to write, load, select and watch one. */
#ifndef ROCI_CC_H
#define ROCI_CC_H

#include <stdint.h> /* NOLINT(modernize-deprecated-headers): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* A plugin whose number is another one is refused. */
#define ROCI_CC_ABI 1

/* ------------------------------------------------------------------------------------------------- what is needed */

/* What a plugin cannot do without. The engine checks it when a flow begins and whenever more becomes known of its peer;
 * where it is missing the flow is refused, or runs the profile's fallback, and a sentence says so. */
enum {
  ROCI_CC_NEEDS_ACK = 1U << 0, /* packets are acknowledged: not on UC; READ responses by some peers only */
  ROCI_CC_NEEDS_CE_COUNT = 1U << 1, /* acknowledgements say how many packets arrived with CE */
  ROCI_CC_NEEDS_CNP = 1U << 2, /* the peer answers CE with CNPs: no packet says so, the host's word counts */
  ROCI_CC_NEEDS_CNM = 1U << 3, /* this host listens to congestion notification messages */
  ROCI_CC_NEEDS_RTT = 1U << 4, /* samples of the round trip */
  ROCI_CC_NEEDS_HOST_DELAY = 1U << 5, /* of which the time within the peer's host is known */
  ROCI_CC_NEEDS_PROBE = 1U << 6,      /* a round trip can be asked for beside the data */
  ROCI_CC_NEEDS_INT = 1U << 7,        /* telemetry of the switches comes back */
  ROCI_CC_NEEDS_BASE_RTT = 1U << 8,   /* the profile says what the round trip is on idle links */
  ROCI_CC_NEEDS_WINDOWS = 1U << 9,    /* the peer's receiving end runs the same plugin and sends windows */

  /* What it decides. What is not declared here is not looked at. */
  ROCI_CC_USES_WINDOW = 1U << 16,
  ROCI_CC_USES_RATE = 1U << 17,
  ROCI_CC_USES_GAP = 1U << 18,
  ROCI_CC_USES_ECN = 1U << 19 /* packets are ECN-capable (ECT(0)) but for those that the decision excepts */
};

/* A knob. Values are passed as an array of double, in the order of the table; a whole number is one up to 2^53. */
struct roci_cc_parameter {
  const char* name; /* as in configuration files: lower case, digits, '_' */
  const char* unit; /* "bit/s", "ns", "bytes", "packets", "1" for a plain number */
  double standard;  /* when the profile says nothing */
  double least;
  double most;
  const char* meaning; /* one line, with the source */
};

/* The name of a state or of a reason. */
struct roci_cc_label {
  const char* name;    /* lower case, digits, '_' */
  const char* meaning; /* one line */
};

/* ------------------------------------------------------------------------------------------------------- the flow */

enum { ROCI_CC_REQUESTS = 0, ROCI_CC_RESPONSES = 1 }; /* directions; responses are READ responses */

/* What is known of a flow. It stays the same from one start() to the next. */
struct roci_cc_flow {
  uint64_t line_rate;     /* of the port, bit/s */
  uint64_t base_rtt_ns;   /* round trip of a full packet on idle links, as the profile says; 0: it does not */
  uint32_t packet_bytes;  /* of a full packet on the line: headers, preamble and gap included */
  uint32_t payload_bytes; /* of these, payload: the path MTU */
  uint32_t direction;     /* ROCI_CC_REQUESTS or ROCI_CC_RESPONSES */
  uint32_t provides;      /* set of ROCI_CC_NEEDS_: what there is */
  uint64_t seed;          /* of this flow, for jitter; replays give the same */
};

/* ----------------------------------------------------------------------------------------------------- the events */

/* Bytes are bytes on the line, with headers, preamble and gap, unless they are called a sequence.
 * A sequence counts the payload of the direction (its LSN), from a start of its own; it does not wrap. */

enum { ROCI_CC_MOST_HOPS = 16 };

/* What a switch says of the port by which a packet left it. */
struct roci_cc_hop {
  uint32_t node;        /* of the switch: 20 bits */
  uint32_t port;        /* of the switch: 12 bits */
  uint32_t time_ns;     /* when the packet left, by the switch's clock; wraps at 2^32 */
  uint32_t sent_units;  /* everything that the port has sent, in units of 8 bytes; wraps at 2^32 */
  uint64_t rate;        /* of the link, bit/s; 0 when it is not known */
  uint32_t queue_bytes; /* behind the packet */
  uint32_t reserved;
};

enum {
  ROCI_CC_PATH_DELAYED = 1,     /* stands for several packets; these are the hops of the latest of them */
  ROCI_CC_PATH_PROBE = 2,       /* of a probe, not of data */
  ROCI_CC_PATH_FROM_SWITCH = 4, /* one hop, which the congested switch has sent itself */
  ROCI_CC_PATH_INCOMPLETE = 8   /* there were hops that are not here */
};

/* Telemetry of one packet. */
struct roci_cc_path {
  uint32_t hops; /* in `hop`, at most ROCI_CC_MOST_HOPS; from the sender to the receiver */
  uint32_t flags;
  uint64_t age_ns; /* between the packet's arrival and the feedback's departure, as the peer says */
  struct roci_cc_hop hop[ROCI_CC_MOST_HOPS];
};

/* What a congested queue has said (CNM): 802.1Q 30.2, and draft-yu-tsvwg-l3qcn section 6. */
struct roci_cc_notice {
  uint64_t point;       /* the congestion point's number (CPID) */
  int64_t queue_offset; /* bytes: the queue beyond where it should be */
  int64_t queue_delta;  /* bytes: its growth since the sample before */
  uint64_t available;   /* bit/s that the flow may take; 0 when it does not say */
  int64_t rate_change;  /* bit/s by which the flow shall go up, or down, at once; 0 when it does not say */
  uint32_t feedback;    /* quantised, 0 to 63; 0 when something else is to be said */
  uint32_t reserved;
};

/* What has happened. Several may come in one event when the engine had much to do; numbers are since the event before.
 * An event with nothing else than what the plugin can do nothing with may be left out. */
enum {
  ROCI_CC_ON_ACK = 1U << 0,       /* packets were acknowledged */
  ROCI_CC_ON_LOSS = 1U << 1,      /* the receiver says that packets are missing (NAK); they are sent again */
  ROCI_CC_ON_TIMEOUT = 1U << 2,   /* nothing was heard for a time-out; everything in flight is sent again */
  ROCI_CC_ON_CNP = 1U << 3,       /* the receiver has seen CE (IBTA A17.9) */
  ROCI_CC_ON_NOTICE = 1U << 4,    /* a congested queue has spoken; `notice` is the latest */
  ROCI_CC_ON_RTT = 1U << 5,       /* a sample of the round trip */
  ROCI_CC_ON_PROBE = 1U << 6,     /* together with ON_RTT: it answers the probe that was asked for */
  ROCI_CC_ON_TELEMETRY = 1U << 7, /* `path` is there */
  ROCI_CC_ON_SENT = 1U << 8,      /* as many bytes were sent as decision.sent_notice says */
  ROCI_CC_ON_TIMER0 = 1U << 9,    /* decision.timer_ns[0] has come, and is 0 now */
  ROCI_CC_ON_TIMER1 = 1U << 10,   /* likewise [1] */
  ROCI_CC_ON_RESUME =
      1U << 11, /* the flow is about to send again after decision.idle_ns without a packet in flight */
  ROCI_CC_ON_WINDOW = 1U << 12 /* the receiver has said how much may be in flight */
};

struct roci_cc_event {
  uint64_t now_ns; /* never goes back from one event of a flow to the next */
  uint32_t kinds;  /* set of ROCI_CC_ON_ */
  uint32_t cnps;   /* ON_CNP: how many came */
  uint64_t acked;  /* sequence: everything below has arrived */
  uint64_t next;   /* sequence: of the next byte that was never sent; it may belong to a packet held back */
  uint64_t in_flight;      /* bytes sent and not acknowledged; what was sent twice counts once */
  uint64_t acked_bytes;    /* ON_ACK */
  uint32_t acked_packets;  /* ON_ACK */
  uint32_t marked_packets; /* of these, arrived with CE (ROCI_CC_NEEDS_CE_COUNT) */
  uint64_t sent_bytes;     /* with those sent again */
  uint32_t sent_packets;
  uint32_t losses;            /* ON_LOSS: how often the receiver said so */
  uint32_t timeouts;          /* ON_TIMEOUT */
  uint32_t rtt_ns;            /* ON_RTT: without what the peer is known to have held back */
  uint32_t least_rtt_ns;      /* of all samples of the flow; 0 before the first */
  uint32_t peer_delay_ns;     /* ON_RTT: within the peer's host, which is not in rtt_ns */
  uint32_t hops;              /* of the latest telemetry; 0 when none is known */
  uint32_t receiver_window;   /* ON_WINDOW: bytes of payload */
  uint32_t flows_at_receiver; /* that share its link, as it says; 0 when it does not */
  uint32_t reserved;
  struct roci_cc_notice notice;    /* ON_NOTICE */
  const struct roci_cc_path* path; /* ON_TELEMETRY; else null. Lent for the call */
};

/* --------------------------------------------------------------------------------------------------- the decision */

#define ROCI_CC_NO_LIMIT UINT64_MAX

enum {
  ROCI_CC_SEND_PROBE = 1, /* ask for a round trip now; one that is not answered is given up for the new one */
  ROCI_CC_TELEMETRY_NEXT = 2, /* the next packet begins telemetry */
  ROCI_CC_TELEMETRY_ONLY_ASKED =
      4 /* and no other one, whatever the host's configuration says; this one stays set */
};

/* In force until it is changed. Every call gets the one in force and changes what it wants to. */
struct roci_cc_decision {
  uint64_t
      window; /* bytes that may be in flight. When none are, a packet may always leave: less than a packet is said
                      with a gap */
  uint64_t rate; /* bit/s; 0 counts as 1 */
  uint64_t
      gap_ns; /* least time between the departures of two packets; of READ responses at most 1 ms, whatever rate and
                      gap say: whoever waits for them gives up some time */
  uint64_t
      not_ect_below; /* sequence: new packets below it leave as Not-ECT, so that switches drop rather than mark them
                             (draft-dai-tsvwg-pfc-free-congestion-control 2.3), but for the last one before the window or the work runs
                             out. Packets sent again are always ECN-capable */
  uint64_t timer_ns[2]; /* when the next ON_TIMERs are due, in now_ns's time; 0: not set */
  uint64_t
      sent_notice; /* bytes after which ON_SENT is due, counted from the ON_SENT before, or the start; 0: never */
  uint64_t idle_ns;  /* ON_RESUME: how long nothing must have been in flight; 0: never */
  uint32_t requests; /* set of ROCI_CC_SEND_PROBE, …; taken after the call, and cleared for the next one */
  uint16_t state;    /* index into the plugin's states; time is counted by it */
  uint16_t
      reason; /* index into the plugin's reasons: why this call changed something. Set to 0, "nothing", before each
                             call; occurrences are counted */
};

/* ------------------------------------------------------------------------------------------------ the receiving end */

/* Packets of the peer's flow have arrived. */
struct roci_cc_arrival {
  uint64_t now_ns;
  uint64_t received; /* sequence of the peer's flow: everything below has arrived */
  uint32_t packets;  /* since the call before */
  uint32_t marked;   /* of these, with CE */
  uint64_t bytes;    /* payload of these */
  uint32_t flows;    /* that have sent to this host lately */
  uint32_t reserved;
  const struct roci_cc_path* path; /* the latest telemetry; null when none came. Lent for the call */
};

/* What the receiving end tells the sender. */
struct roci_cc_grant {
  uint64_t window; /* bytes of payload in flight; goes out with the next feedback when `send` is set */
  uint32_t send;   /* set to 0 before each call */
  uint16_t reason; /* as in a decision */
  uint16_t reserved;
};

/* ----------------------------------------------------------------------------------------------------- the plugin */

enum {
  ROCI_CC_MOST_STATE = 256, /* bytes */
  ROCI_CC_MOST_PARAMETERS = 48,
  ROCI_CC_MOST_LABELS = 32 /* states, and likewise reasons */
};

struct roci_cc_plugin {
  uint32_t abi;          /* ROCI_CC_ABI */
  uint32_t size;         /* sizeof(struct roci_cc_plugin) */
  const char* name;      /* by which it is chosen: lower case, digits, '_' */
  const char* summary;   /* one line */
  const char* source;    /* the paper or draft */
  uint32_t capabilities; /* set of ROCI_CC_NEEDS_ and ROCI_CC_USES_ */
  uint16_t
      state_bytes; /* of a flow at the sending end, at most ROCI_CC_MOST_STATE; aligned to 8, all 0 before start() */
  uint16_t receiver_state_bytes; /* likewise at the receiving end; 0 without receive() */

  const struct roci_cc_parameter* parameters;
  uint32_t parameter_count;
  uint32_t state_count;
  const struct roci_cc_label* states;  /* at least one */
  const struct roci_cc_label* reasons; /* the first is "nothing" */
  uint32_t reason_count;
  uint32_t reserved;

  /* Null when the values fit together, else one sentence that says what does not; each value is in its range. May be
   * null. `flow` is null when it is not known yet. */
  const char* (*check)(const struct roci_cc_flow* flow, const double* parameters);
  /* A flow begins. The decision is "no limit" of everything, with no timer; it may ask for a probe at once. */
  void (*start)(void* state, const struct roci_cc_flow* flow, uint64_t now_ns, const double* parameters,
                struct roci_cc_decision* decision);
  void (*event)(void* state, const struct roci_cc_flow* flow, const struct roci_cc_event* event,
                const double* parameters, struct roci_cc_decision* decision);
  /* The receiving end; may be null. `flow` is the peer's, as far as it is known here. */
  void (*receive)(void* state, const struct roci_cc_flow* flow, const struct roci_cc_arrival* arrival,
                  const double* parameters, struct roci_cc_grant* grant);
};

/* What a shared object of plugins exports, and what holds the ones that are built in: its plugins, and behind the last of
 * them a null pointer. */
#define ROCI_CC_ENTRY "roci_cc_plugins"
const struct roci_cc_plugin* const* roci_cc_plugins(void);

/* A number in [0, 2^64) and the next state, for jitter (splitmix64). */
static inline uint64_t roci_cc_random(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

#ifdef __cplusplus
}
#endif

#endif
