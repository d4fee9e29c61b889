// Common part of the queue pairs of all transport services: attributes, state, work queues, completions. The engine
// passes packets, doorbells and deadlines to a queue pair, which returns packets and completions. A queue pair depends
// on no port, thread or clock. Derived classes: ReliableQueuePair (RC), UnreliableQueuePair (UC), DatagramQueuePair
// (UD), RawPacketQueuePair, XrcInitiator and XrcTarget (the two ends of XRC).
//
// Threads: post_send(), post_recv(), state() and number() may be called by any thread. Everything else requires the
// token of the worker to which the queue pair is attached.
//
// Memory layout in cache lines of 64 bytes. A reliable queue pair has ten lines, after two lines of the engine:
//
//   0  read by all threads, rarely written: state, configuration
//   1  written by posters: both work queues
//   2  written by the worker and read for each packet: session, completion queues, consumer indices of the work queues;
//      the prepared headers of the path extend into line 4
//   4  attributes; a packet needs the addresses, the peer's number and the path MTU
//   5  second half: start of the service's own state: the requester up to the middle of line 8, then the responder
//
// The slots of the work queues, and the state for repeated responses to READs and atomics, are allocated elsewhere
// (SparseArena) and get memory at the first write: an idle queue pair uses no memory except these lines.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/containers/sparse_arena.hpp"
#include "base/result.hpp"
#include "base/trace_points.hpp"
#include "transport/packet_sink.hpp"
#include "transport/queue_pair/extension_session.hpp"
#include "transport/queue_pair/send_gate.hpp"
#include "transport/queues/completion_ring.hpp"
#include "transport/queues/shared_receive_ring.hpp"
#include "transport/queues/work_queue.hpp"
#include "wire/net/link_tags.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

// Constant after creation. Exceptions: an XRC target's pd and srq are those of its last message; reactive_window.
struct QueuePairConfig {
  ibv_qp_type type = IBV_QPT_RC;
  Qpn number{0};
  void* context = nullptr;  // of the creator, for events
  PdNumber pd{0};
  uint32_t max_send_wr = 1;
  uint32_t max_recv_wr = 1;
  uint32_t window_bytes = 512 * 1024;
  SharedReceiveRing* srq = nullptr;  // replaces the queue pair's own receive queue; outlives the queue pair
  uint16_t max_inline = 0;
  uint16_t packets_per_ack = 64;  // maximum of request packets per acknowledgment (LDCP's m)
  uint8_t max_send_sge = 1;
  uint8_t max_recv_sge = 1;
  bool signal_all = false;
  // Both are accessed with the worker token only, and share a byte.
  RoceWriter::Contents contents : 2 = RoceWriter::Contents::kWhole;  // of its packets
  // Window of LossRecovery, where neither congestion control nor selective repeat is in use. May change.
  bool reactive_window : 1 = true;

  // Protection domain of the receive requests.
  [[nodiscard]] PdNumber recv_pd() const { return srq == nullptr ? pd : srq->pd(); }
};
static_assert(sizeof(QueuePairConfig) == 48);  // a cache line together with the state

inline bool is_xrc(ibv_qp_type type) { return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV; }
inline bool is_reliable(ibv_qp_type type) { return type == IBV_QPT_RC || is_xrc(type); }
// Whether a queue pair has one peer, with one path.
inline bool is_connected(ibv_qp_type type) { return type != IBV_QPT_UD && type != IBV_QPT_RAW_PACKET; }

// Attributes that modify() sets (IBTA 11.2.5.2), in internal types.
struct QueuePairAttributes {
  RocePath path;
  Qpn remote_qp{0};
  QKey qkey{0};              // UD
  uint32_t path_mtu = 1024;  // bytes; raw packets: the port's MTU
  int access = 0;            // ibv_access_flags for remote operations
  PKey pkey = kDefaultPKey;
  uint8_t timeout = 0;             // code of ack_timeout()
  uint8_t retry_count = 0;         // 0 to 7
  uint8_t rnr_retry = 0;           // 0 to 6; 7: unlimited
  uint8_t min_rnr_timer = 0;       // code of rnr_delay()
  uint8_t max_rd_atomic = 0;       // as requester: outstanding READs and atomics
  uint8_t max_dest_rd_atomic = 0;  // as responder: the same
};

// Base class of the queue pairs.
class alignas(64) QueuePairCore {
 public:
  virtual ~QueuePairCore();
  QueuePairCore(const QueuePairCore&) = delete;
  QueuePairCore& operator=(const QueuePairCore&) = delete;

  [[nodiscard]] Qpn number() const { return config.number; }
  [[nodiscard]] Accessor accessor() const { return {config.pd, config.number}; }
  [[nodiscard]] ibv_qp_state state() const { return state_.load(std::memory_order_seq_cst); }
  // Whether packets of the peer are processed in this state.
  [[nodiscard]] static bool receives(ibv_qp_state state) {
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
  }

  // Any thread. Returns 0 or an errno, as ibv_post_send. The caller rings the doorbell afterwards.
  enum class Posting : uint8_t {
    kUntilRejected,  // the requests before the first one that is rejected
    kAllOrNothing,
  };
  int post_send(ibv_send_wr* list, ibv_send_wr** bad, Posting posting = Posting::kUntilRejected);
  int post_recv(ibv_recv_wr* list, ibv_recv_wr** bad);

  // Interface for the engine.
  //
  // A packet for this queue pair, with a correct ICRC. `frame` is read only.
  virtual void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) = 0;
  // A frame that a flow rule directs to this raw packet queue pair. Other services have no flow rules.
  virtual void on_frame(TransportContext& /*context*/, const rte_mbuf& /*frame*/) {}
  // Destination of a packet's payload, to which the caller copies it before it has checked the ICRC. If the ICRC is
  // correct, on_packet() gets the packet with `placed` set. Null when the destination is not known. It is known when
  // the packet is the next expected one in the middle of a message, no unverified field of it is needed to determine
  // the destination, and the destination is contiguous. Applications must not read the buffer before the message is
  // complete. A packet with a wrong ICRC does not advance the expected PSN, so its data is overwritten.
  virtual uint8_t* payload_target(const MemoryTable& /*memory*/, const FrameView& /*view*/) {
    return nullptr;
  }
  // Sends at most `budget` packets. True when more can be sent as soon as there is budget, a buffer and space in the
  // port. False when the queue pair waits for its peer, its application or its deadline.
  virtual bool transmit(TransportContext& context, uint32_t budget) = 0;
  [[nodiscard]] virtual Nanos deadline() const = 0;
  virtual void on_deadline(TransportContext& context) = 0;
  // The queue pair was paused (PFC), so that it could neither send nor be acknowledged. Restarts its time-out.
  virtual void note_resumed(Nanos /*now*/) {}
  // Sender state of the requests or of the READ responses; null where the service has none.
  [[nodiscard]] virtual const SendFlow* flow(Direction /*of*/) const { return nullptr; }
  // Receiver state of the peer's requests; null where the service does not count.
  [[nodiscard]] virtual const ReceiveFlow* received_requests() const { return nullptr; }
  // Receiver state of the READ responses; null where the service has none.
  [[nodiscard]] virtual const ReceiveFlow* received_responses() const { return nullptr; }
  // Requests a round trip measurement without data (probe), which replaces an outstanding one. False when not
  // supported.
  virtual bool request_probe(Nanos /*now*/) { return false; }
  // Whether posted requests have not been sent completely, so that an acknowledgment may permit further packets.
  [[nodiscard]] virtual bool waits_to_send() const { return false; }
  // Whether packets of the responder are due, in the error state too.
  [[nodiscard]] virtual bool has_pending_responses() const { return false; }
  // Whether an acknowledgment, a NAK or a response to a probe is due that may be sent before the data of other queue
  // pairs: no READ response of this queue pair precedes it.
  [[nodiscard]] virtual bool owes_acknowledgment() const { return false; }
  // Sends them.
  virtual void acknowledge(TransportContext& /*context*/) {}
  // Ends all READ responses, so that no more memory is read.
  virtual void discard_responses() {}
  // The peer's process has exited: outstanding requests fail as with exhausted retries.
  virtual void on_peer_exit(TransportContext& /*context*/) {}
  // Address resolution of the peer has failed: queued requests fail as with exhausted retries.
  virtual void on_unreachable(TransportContext& context) = 0;

  // State changes. The caller holds the worker's token.
  void to_init() { set_state(IBV_QPS_INIT); }
  void to_ready_to_receive(Psn expected);
  void to_ready_to_send(Psn first);
  void resume_sending() { set_state(IBV_QPS_RTS); }  // from SQE or SQD, with the next PSN
  // Enters SQD: no further request is started. With `notify`, an event is raised when the outstanding ones have
  // completed (IBTA 10.3.1.5). Reception continues.
  void drain_sends(bool notify, EventSink& events, Counters& counters);
  [[nodiscard]] bool draining() const { return state() == IBV_QPS_SQD && draining_; }
  void to_error() { set_state(IBV_QPS_ERR); }  // the next transmit() flushes the queues
  void to_reset();
  // Enters the error state for a reason that no completion reports, and raises an event.
  void fail_for_good(TransportContext& context);
  // Allocates state to repeat the responses of `reads` READs and atomics (max_dest_rd_atomic). Stored ones are kept.
  // Returns 0, EBUSY while a response is being sent, or ENOMEM.
  [[nodiscard]] virtual int remember_reads(uint32_t /*reads*/) { return 0; }
  // The arena that contains the work queues.
  [[nodiscard]] SparseArena& arena() const { return SparseArena::of(send_queue.storage()); }
  // False when there was no memory for the work queues; the queue pair must not be used then.
  [[nodiscard]] bool complete() const {
    return send_queue.storage() != nullptr && recv_queue.storage() != nullptr;
  }
  // PSN of the next packet to be sent, and of the next packet expected.
  [[nodiscard]] virtual Psn send_psn() const = 0;
  [[nodiscard]] virtual Psn receive_psn() const = 0;

  void change_path() { path_ready_ = false; }  // its MAC address must be resolved again
  // Whether a packet with these extras may be written into a direct buffer: it is final once written, and not read
  // before it is sent. Excluded are telemetry and a CN-TAG, which are inserted afterwards, and hops, whose number is
  // read from the packet. All packets of a queue pair whose order matters have the same result.
  [[nodiscard]] bool sends_direct(const PacketExtras& extras) const {
    if (cn_flow != 0 || (extras.types & bit_of(ExtensionType::kIntEcho)) != 0) return false;
    return session == nullptr || session->telemetry == nullptr ||
           (gates == nullptr && !session->telemetry->inserts_header(HopsOf::kRequests));
  }
  // Sets the resolved MAC address of the next hop.
  void set_peer_mac(const MacAddress& mac);
  // The path with the DSCP and ECN field of congestion control, as in sent packets.
  [[nodiscard]] RocePath sent_path() const;
  [[nodiscard]] bool path_ready() const { return path_ready_; }

  // The queue pair in asynchronous events.
  [[nodiscard]] EventObject object() const {
    return {EventSource::kQueuePair, config.number.value(), config.context};
  }
  // Raises an asynchronous event of this queue pair.
  void raise(TransportContext& context, ibv_event_type type) const;

  // Completes the oldest send or receive request and removes it from its queue. Its slot is free before the completion
  // is visible: the program may post as soon as it has polled the completion. UD: release_address() first.
  void complete_send(TransportContext& context, const SendWqe& oldest, ibv_wc_status status);
  void complete_recv(TransportContext& context, ibv_wc& completion, bool solicited);

  // Whether a receive request is available for a message that needs one. The request is the head of recv_queue until
  // complete_recv(). With a shared receive queue, the request is moved into recv_queue, which then has one slot.
  bool take_receive(TransportContext& context) { return !recv_queue.empty() || take_shared_receive(context); }
  // Completes all receive requests with a flush error, that of the current message first. Requests in a shared receive
  // queue stay there, and one event reports that this queue pair takes no more of them (IBTA 11.6.3.1).
  void flush_receives(TransportContext& context);

  // Line 0, with the virtual table pointer.
 private:
  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};
  bool path_ready_ = false;
  bool established_ = false;  // a packet has arrived, and its event has been raised
  bool fatal_raised_ = false;
  bool draining_ = false;  // in SQD: requests are outstanding

 public:
  QueuePairConfig config;
  // Line 1.
  WorkRing<SendWqe> send_queue;
  WorkRing<RecvWqe> recv_queue;
  // Line 2.
  // Null: standard packets only.
  std::unique_ptr<ExtensionSession> session;
  SendGates* gates = nullptr;  // owned by the engine; null: no congestion control
  CompletionRing& send_cq;
  CompletionRing* recv_cq;

 private:
  std::atomic<uint32_t> send_done_{0}, recv_done_{0};  // of the queues

 public:
  RoceWriter writer;
  // The negotiation is in progress: packets with an extension block cannot be parsed.
  bool extensions_undecided = false;
  bool refuses_plain = false;    // authentication is required: packets are accepted only with a session
  bool granted = false;          // the peer may place WRITEs (port/placement.hpp)
  const TransportClass service;  // class of its opcodes
  uint16_t cn_flow = 0;          // in the CN-TAG of requests and READ responses; 0: no CN-TAG

 private:
  bool notify_drained_ = false;       // in SQD: raise an event when no request is outstanding
  bool last_receive_raised_ = false;  // since the error state was entered

 public:
  QueuePairAttributes attributes;

 protected:
  // Allocates the work queues in `arena`, which outlives the queue pair.
  QueuePairCore(SparseArena& arena, const QueuePairConfig& config, CompletionRing& send_cq,
                CompletionRing& recv_cq);

  // Resets the state of all earlier requests and starts at the given PSN.
  virtual void reset_requester(Psn first) = 0;
  virtual void reset_responder(Psn expected) = 0;
  // Whether a request has been started and not completed.
  [[nodiscard]] virtual bool is_sending() const { return false; }
  // Ends draining in SQD. Called when no request is outstanding.
  void on_drained(TransportContext& context);
  // The request completes and no longer uses its address handle.
  static void release_address(const SendWqe& request);
  // Unreliable services: the oldest send request completes with a local error, which stops the send queue only (IBTA
  // 10.3.1.6). Later requests are flushed.
  void stop_sending(TransportContext& context, ibv_wc_status status);
  void flush_sends(TransportContext& context);
  // Start of transmit() for services whose requests are one packet: flushes in the states ERR and SQE, and ends draining.
  // Returns false in ERR.
  bool begin_single_packets(TransportContext& context);
  // Whether a packet is a CNP or of `transport`, and has the partition key and addresses of the connection. Counted
  // when not.
  [[nodiscard]] bool is_from_peer(TransportContext& context, const FrameView& view,
                                  TransportClass transport) const;
  // The same for packets of `transport`, without counting.
  [[nodiscard]] bool may_be_from_peer(const FrameView& view, TransportClass transport) const {
    return view.opcode->transport == transport &&
           ((view.bth().pkey.get() ^ attributes.pkey.value()) & 0x7fff) == 0 &&
           view.is_between(attributes.path.destination_ip, attributes.path.source_ip);
  }
  void take_cnp(TransportContext& context);
  // Enters the error state when one of the completion queues has lost a completion, of any queue pair.
  void check_completion_queues(TransportContext& context);
  // Records a packet of the peer. The first one in RTR raises an event on connected services (IBTA 11.6.3.1).
  void note_communication(TransportContext& context);
  // For the error state, `order` is seq_cst: the store precedes the load of the queues, and in post_recv() the reverse.
  // Either the flush completes a request that is being posted, or its poster reads the state and rings the doorbell.
  void set_state(ibv_qp_state state, std::memory_order order = std::memory_order_relaxed) {
    state_.store(state, order);
  }

 private:
  void on_overflow(TransportContext& context, CompletionRing& ring);
  bool take_shared_receive(TransportContext& context);
  int check_datagram(const ibv_send_wr& wr) const;
  [[nodiscard]] bool fits_a_packet(const ibv_send_wr& wr, uint64_t length) const;
  int check_send(const ibv_send_wr& wr, uint64_t* length) const;
  [[nodiscard]] ibv_wc_status local_error_of(const ibv_send_wr& wr, uint64_t length) const;
  int check_list(const ibv_send_wr* list);
};

// Writes and sends one packet of `qp`, with an extension block if `extras` has types. fill(open, block) is called with
// the headers and an empty block in place. It writes the extended headers, the block and the payload, or returns false
// to discard the packet (the buffer is freed).
template <class Fill>
SendOutcome send_packet(TransportContext& context, QueuePairCore& qp, BthFields bth, uint32_t payload_length,
                        PacketExtras extras, Fill&& fill) {
  const uint32_t block_bytes =
      extras.types == 0 ? 0 : fixed_block_bytes(extras.types) + extras.hops * uint32_t{sizeof(IntHop)};
  bth.extensions = extras.types != 0;
  if (qp.gates != nullptr && qp.gates->decides_ecn) [[unlikely]]
    bth.ect = !extras.not_ect;
  payload_length += block_bytes;
  const uint32_t bytes = qp.writer.frame_bytes(opcode_info(bth.opcode), payload_length);
  rte_mbuf* frame = context.direct && qp.sends_direct(extras)
                        ? context.sink.allocate_direct(qp.attributes.path.destination_mac, bytes)
                        : context.sink.allocate();
  if (frame == nullptr) return SendOutcome::kBackpressure;
  auto* start = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes)));
  // Unreachable in practice: the pool's buffers fit the port's MTU, against which path_mtu is checked.
  if (start == nullptr) {
    rte_pktmbuf_free(frame);
    return SendOutcome::kAborted;
  }
  RoceWriter::Open open = qp.writer.begin(start, bth, payload_length);
  bool filled = false;
  if (extras.types == 0) {
    filled = fill(open, kNoExtensions);
  } else {
    const ExtensionView block = lay_out_block(open.payload, extras.types, extras.hops);
    open.payload += block_bytes;
    filled = fill(open, block);
    if (filled && block.has(ExtensionType::kAuth)) {
      qp.session->sign_feedback(open.view, block);
      open.discard_sum();
    }
  }
  if (!filled) {
    rte_pktmbuf_free(frame);
    return SendOutcome::kAborted;
  }
  trace::packet_built(qp.number().value(), bth.psn.value(), static_cast<uint8_t>(bth.opcode), payload_length);
  RoceWriter::finish(open);
  if (extras.begin_int) qp.session->telemetry->begin(context, *frame);
  if (qp.cn_flow != 0 && open.view.opcode->is_data()) put_cn_tag(*frame, open.view.l3_offset, qp.cn_flow);
  context.sink.send(frame);
  return SendOutcome::kSent;
}

}  // namespace roci
