/* Congestion control plugin interface, in plain C. It includes no other Rocinante header.
 *
 * A plugin is a set of constants and pure functions. The engine owns the state of each flow, merges feedback into
 * events, calls the plugin, and enforces its decisions on outgoing packets.
 *
 *        ACK, NAK, CNP, CNM, RTT, INT, time                       window, rate, gap, ECN, timers
 *   transport ---------------------> [engine] -- event --> [plugin] -- decision --> [engine] ------> packets
 *                                       flow state, parameters -^
 *
 * A flow is one direction of a queue pair. Its requests are one flow, the READ responses that it sends are another;
 * each has its own state. Calls for a flow are serialized, but may come from different threads. A plugin function must
 * not allocate, block, do I/O, read a clock or keep data outside the flow's state. The same events then give the same
 * decisions, bit for bit, in real and in virtual time, and a recorded trace can be replayed.
 *
 * docs/congestion-control.md describes how to write, load, select and monitor a plugin. */
#ifndef ROCI_CC_H
#define ROCI_CC_H

#include <stdint.h> /* NOLINT(modernize-deprecated-headers): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. Plugins with another value are rejected. */
#define ROCI_CC_ABI 1

/* --------------------------------------------------------------------------------------------------- capabilities */

/* Requirements of a plugin, bits 0 to 15. The engine checks them when a flow starts and when the negotiated extensions
 * of the peer change. If one is not met, the flow runs the profile's fallback or is refused, and the log reports it. */
enum {
  ROCI_CC_NEEDS_ACK = 1U << 0,      /* acknowledgments: not on UC; of READ responses only with extensions */
  ROCI_CC_NEEDS_CE_COUNT = 1U << 1, /* acknowledgments count the packets that arrived with CE */
  ROCI_CC_NEEDS_CNP = 1U << 2, /* the peer sends CNPs for CE: configured (peers_send_cnps), not negotiated */
  ROCI_CC_NEEDS_CNM = 1U << 3, /* this host processes congestion notification messages */
  ROCI_CC_NEEDS_RTT = 1U << 4, /* round-trip time samples */
  ROCI_CC_NEEDS_HOST_DELAY = 1U << 5, /* the samples separate the time within the peer's host */
  ROCI_CC_NEEDS_PROBE = 1U << 6,      /* the round-trip time can be measured with probes */
  ROCI_CC_NEEDS_INT = 1U << 7,        /* the peer returns in-band telemetry of the switches */
  ROCI_CC_NEEDS_BASE_RTT = 1U << 8,   /* the profile specifies the round-trip time on idle links */
  /* the receiver runs the same plugin and sends windows: only the wire extension is negotiated; that the receiver runs
   * the plugin is configured */
  ROCI_CC_NEEDS_WINDOWS = 1U << 9,

  /* Decisions that the plugin makes. The engine ignores the members of decisions that are not declared here. */
  ROCI_CC_USES_WINDOW = 1U << 16,
  ROCI_CC_USES_RATE = 1U << 17,
  ROCI_CC_USES_GAP = 1U << 18,
  ROCI_CC_USES_ECN = 1U << 19 /* packets are ECT(0), except those below roci_cc_decision.not_ect_below */
};

/* Parameter of a plugin. Values are passed as an array of double in the order of the table. Integers are exact up to
 * 2^53. */
struct roci_cc_parameter {
  const char* name; /* as in configuration files: lower case, digits, '_' */
  const char* unit; /* "bit/s", "ns", "bytes", "packets", "1" for a plain number */
  double default_value;
  double min;
  double max;
  const char* description; /* one line, with the source */
};

/* Name of a state or of a reason. */
struct roci_cc_label {
  const char* name;        /* lower case, digits, '_' */
  const char* description; /* one line */
};

/* ----------------------------------------------------------------------------------------------------------- flow */

enum { ROCI_CC_REQUESTS = 0, ROCI_CC_RESPONSES = 1 }; /* directions; responses: READ responses */

/* Properties of a flow. They are constant from one start() to the next. */
struct roci_cc_flow {
  uint64_t line_rate;     /* of the port, bit/s */
  uint64_t base_rtt_ns;   /* round-trip time of a full packet on idle links, from the profile; 0: unknown */
  uint32_t packet_bytes;  /* full packet on the line: with headers, preamble and inter-packet gap */
  uint32_t payload_bytes; /* payload of a full packet: the path MTU */
  uint32_t direction;     /* ROCI_CC_REQUESTS or ROCI_CC_RESPONSES */
  uint32_t provides;      /* set of ROCI_CC_NEEDS_: the requirements that are met */
  uint64_t seed;          /* random seed of this flow, for jitter; the same in a replay */
};

/* --------------------------------------------------------------------------------------------------------- events */

/* Bytes are bytes on the line, with headers, preamble and inter-packet gap, except in sequences.
 * A sequence is a payload byte number of the direction (LSN) with its own start value; it does not wrap. */

enum { ROCI_CC_MAX_HOPS = 16 };

/* Telemetry of one hop: state of the egress port when the packet left the switch. */
struct roci_cc_hop {
  uint32_t node;        /* switch id, 20 bits */
  uint32_t port;        /* egress port, 12 bits */
  uint32_t time_ns;     /* departure of the packet by the switch's clock; wraps at 2^32 */
  uint32_t sent_units;  /* total sent by the port, in units of 8 bytes; wraps at 2^32 */
  uint64_t rate;        /* of the link, bit/s; 0: unknown */
  uint32_t queue_bytes; /* left in the queue after the packet */
  uint32_t reserved;
};

enum {
  ROCI_CC_PATH_DELAYED = 1,     /* covers several packets; the hops are those of the latest one */
  ROCI_CC_PATH_PROBE = 2,       /* from a probe, not from data */
  ROCI_CC_PATH_FROM_SWITCH = 4, /* one hop, sent by the congested switch itself */
  ROCI_CC_PATH_INCOMPLETE = 8   /* some hops are missing */
};

/* Telemetry of one packet. */
struct roci_cc_path {
  uint32_t hops; /* valid entries of `hop`, at most ROCI_CC_MAX_HOPS; ordered from sender to receiver */
  uint32_t flags;
  uint64_t age_ns; /* from the packet's arrival to the feedback's departure, reported by the peer */
  struct roci_cc_hop hop[ROCI_CC_MAX_HOPS];
};

/* Congestion notification message (CNM): 802.1Q 30.2 and draft-yu-tsvwg-l3qcn section 6. */
struct roci_cc_cnm {
  uint64_t point;       /* congestion point identifier (CPID) */
  int64_t queue_offset; /* bytes: queue length above its set point */
  int64_t queue_delta;  /* bytes: growth of the queue since the previous sample */
  uint64_t available;   /* bit/s available to the flow; 0: not reported */
  int64_t rate_change;  /* change of the flow's rate, bit/s, effective at once; 0: not reported */
  uint32_t feedback;    /* quantized feedback, 0 to 63; 0: the message reports other values only */
  uint32_t reserved;
};

/* Kinds of feedback. The engine may merge several into one event; counts are since the previous event.
 * The engine may omit an event that contains only kinds that the plugin does not use. */
enum {
  ROCI_CC_ON_ACK = 1U << 0,       /* packets were acknowledged */
  ROCI_CC_ON_LOSS = 1U << 1,      /* the receiver reports missing packets (NAK); they are retransmitted */
  ROCI_CC_ON_TIMEOUT = 1U << 2,   /* the retransmission time-out expired */
  ROCI_CC_ON_CNP = 1U << 3,       /* the receiver has received CE marks (IBTA A17.9) */
  ROCI_CC_ON_CNM = 1U << 4,       /* a CNM was received; `cnm` is the latest */
  ROCI_CC_ON_RTT = 1U << 5,       /* round-trip time sample */
  ROCI_CC_ON_PROBE = 1U << 6,     /* with ON_RTT: the sample answers the requested probe */
  ROCI_CC_ON_TELEMETRY = 1U << 7, /* `path` is set */
  ROCI_CC_ON_SENT = 1U << 8,      /* decision.sent_notice bytes were sent */
  ROCI_CC_ON_TIMER0 = 1U << 9,    /* decision.timer_ns[0] expired; it is 0 now */
  ROCI_CC_ON_TIMER1 = 1U << 10,   /* decision.timer_ns[1] expired; it is 0 now */
  ROCI_CC_ON_RESUME = 1U << 11,   /* the flow resumes after decision.idle_ns with no packet in flight */
  ROCI_CC_ON_WINDOW = 1U << 12    /* the receiver reported its window */
};

struct roci_cc_event {
  uint64_t now_ns;         /* does not decrease from one event of a flow to the next */
  uint32_t kinds;          /* set of ROCI_CC_ON_ */
  uint32_t cnps;           /* ON_CNP: number received */
  uint64_t acked;          /* sequence: all bytes below it have arrived */
  uint64_t next;           /* sequence: next byte never sent; its packet may be held back by the gate */
  uint64_t in_flight;      /* bytes sent and not acknowledged; a retransmission does not count again */
  uint64_t acked_bytes;    /* ON_ACK */
  uint32_t acked_packets;  /* ON_ACK */
  uint32_t marked_packets; /* of acked_packets: arrived with CE (ROCI_CC_NEEDS_CE_COUNT) */
  uint64_t sent_bytes;     /* retransmissions included */
  uint32_t sent_packets;
  uint32_t losses;            /* ON_LOSS: number of reports by the receiver */
  uint32_t timeouts;          /* ON_TIMEOUT: number of time-outs */
  uint32_t rtt_ns;            /* ON_RTT: without the peer's known delay (peer_delay_ns) */
  uint32_t least_rtt_ns;      /* minimum of all samples of the flow; 0 before the first */
  uint32_t peer_delay_ns;     /* ON_RTT: time within the peer's host; not part of rtt_ns */
  uint32_t hops;              /* number in the latest telemetry; 0: unknown */
  uint32_t receiver_window;   /* ON_WINDOW: bytes of payload */
  uint32_t flows_at_receiver; /* flows that share the receiver's link, reported by it; 0: not reported */
  uint32_t reserved;
  struct roci_cc_cnm cnm;          /* ON_CNM */
  const struct roci_cc_path* path; /* ON_TELEMETRY, else null; valid during the call */
};

/* ------------------------------------------------------------------------------------------------------- decision */

#define ROCI_CC_NO_LIMIT UINT64_MAX

enum {
  ROCI_CC_SEND_PROBE = 1,     /* send an RTT probe now; it replaces an unanswered one */
  ROCI_CC_TELEMETRY_NEXT = 2, /* insert a telemetry header into the next packet */
  /* insert telemetry headers only into packets requested with TELEMETRY_NEXT, for any configuration; the engine does
   * not clear this bit */
  ROCI_CC_TELEMETRY_ONLY_ASKED = 4
};

/* Decision of a plugin. It stays in force until it is changed: each call receives the current one and may change it. */
struct roci_cc_decision {
  /* bytes that may be in flight. A packet may always leave when none are: a rate below one packet per
   * round trip is expressed with gap_ns */
  uint64_t window;
  uint64_t rate; /* bit/s; the gate raises values below 100,000 to 100,000 */
  /* minimum time between the departures of two packets, limited to 10 s. For READ responses the effective interval
   * is at most 1 ms, for any rate and gap_ns, because the requester has a time-out */
  uint64_t gap_ns;
  /* sequence: new packets below it are Not-ECT, so that switches drop them instead of marking them
   * (draft-dai-tsvwg-pfc-free-congestion-control 2.3). Exceptions: the last packet before the window or the work is
   * exhausted, and retransmissions, are always ECT(0) */
  uint64_t not_ect_below;
  uint64_t timer_ns[2]; /* expiry of ON_TIMER0 and ON_TIMER1 in the time of now_ns; 0: not set */
  /* bytes until the next ON_SENT, counted from the previous ON_SENT or the start; 0: never */
  uint64_t sent_notice;
  uint64_t idle_ns; /* ON_RESUME: minimum time without packets in flight; 0: never */
  /* set of ROCI_CC_SEND_PROBE etc.; executed after the call. The engine clears SEND_PROBE and TELEMETRY_NEXT before
   * the next call */
  uint32_t requests;
  uint16_t state; /* index into the plugin's states; the engine measures the time in each */
  /* index into the plugin's reasons: why this call changed the decision. Set to 0 ("nothing") before each call; the
   * engine counts occurrences */
  uint16_t reason;
};

/* ------------------------------------------------------------------------------------------------------- receiver */

/* Arrival of packets of the peer's flow. */
struct roci_cc_arrival {
  uint64_t now_ns;
  uint64_t received; /* sequence of the peer's flow: all bytes below it have arrived */
  uint32_t packets;  /* since the previous call */
  uint32_t marked;   /* of these packets, with CE */
  uint64_t bytes;    /* payload of these packets */
  uint32_t flows;    /* that recently sent to this host */
  uint32_t reserved;
  const struct roci_cc_path* path; /* latest telemetry, else null; valid during the call */
};

/* Window that the receiver grants to the sender. */
struct roci_cc_grant {
  uint64_t window; /* bytes of payload in flight; sent with the next feedback if `send` is set */
  uint32_t send;   /* set to 0 before each call */
  uint16_t reason; /* as roci_cc_decision.reason */
  uint16_t reserved;
};

/* --------------------------------------------------------------------------------------------------------- plugin */

enum {
  ROCI_CC_MAX_STATE = 256, /* bytes */
  ROCI_CC_MAX_PARAMETERS = 48,
  ROCI_CC_MAX_LABELS = 32 /* of states, and of reasons */
};

struct roci_cc_plugin {
  uint32_t abi;          /* ROCI_CC_ABI */
  uint32_t size;         /* sizeof(struct roci_cc_plugin) */
  const char* name;      /* for selection: lower case, digits, '_' */
  const char* summary;   /* one line */
  const char* source;    /* paper or draft */
  uint32_t capabilities; /* set of ROCI_CC_NEEDS_ and ROCI_CC_USES_ */
  /* state of a flow at the sender, at most ROCI_CC_MAX_STATE; aligned to 8, zeroed before start() */
  uint16_t state_bytes;
  uint16_t receiver_state_bytes; /* state at the receiver, as above; 0 without receive() */

  const struct roci_cc_parameter* parameters;
  uint32_t parameter_count;
  uint32_t state_count;
  const struct roci_cc_label* states;  /* at least one */
  const struct roci_cc_label* reasons; /* the first is "nothing" */
  uint32_t reason_count;
  uint32_t reserved;

  /* Checks a combination of values; each value is within its range. Returns null or one sentence with the error.
   * `flow` is null when it is not known yet, and has seed 0. An error for a flow has the effect of an unmet
   * requirement. The pointer may be null. */
  const char* (*check)(const struct roci_cc_flow* flow, const double* parameters);
  /* Starts a flow. `decision` is preset to no limits and no timers. start() may set timers and request a probe. */
  void (*start)(void* state, const struct roci_cc_flow* flow, uint64_t now_ns, const double* parameters,
                struct roci_cc_decision* decision);
  void (*event)(void* state, const struct roci_cc_flow* flow, const struct roci_cc_event* event,
                const double* parameters, struct roci_cc_decision* decision);
  /* Receiver part; may be null. `flow` describes the peer's flow, as far as this host knows it. */
  void (*receive)(void* state, const struct roci_cc_flow* flow, const struct roci_cc_arrival* arrival,
                  const double* parameters, struct roci_cc_grant* grant);
};

/* Entry point that a shared object exports, and that returns the built-in plugins: an array terminated by a null
 * pointer. */
#define ROCI_CC_ENTRY "roci_cc_plugins"
const struct roci_cc_plugin* const* roci_cc_plugins(void);

/* Returns a random number in [0, 2^64) and advances the state (splitmix64). For jitter. */
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
