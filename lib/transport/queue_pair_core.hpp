// What the queue pairs of all transport services have: attributes, a state, work queues, completions. The engine gives
// a queue pair packets, doorbells and deadlines; it gives back packets and completions. It knows no port, no thread and
// no clock. The services derive from it: ReliableQueuePair (RC), UnreliableQueuePair (UC), DatagramQueuePair (UD),
// XrcInitiator and XrcTarget (the two ends of XRC).
//
// Ownership: everything but post_send(), post_recv(), state() and number() belongs to whoever holds the token of the
// worker that the queue pair is attached to.
//
// In memory, cache line by cache line (64 bytes); a reliable queue pair is ten of them, behind two of the engine's:
//
//   0  read by everybody, hardly ever written: state, what stays the same
//   1  what posters write: both work queues
//   2  what the worker writes, and reads for each packet: session, completion queues, how far the work queues are done,
//      and into line 4 the headers laid out for the path
//   4  attributes, of which a packet needs the addresses, the peer's number and the path MTU
//   5  from the middle on the service's own: the requester up to the middle of line 8, then the responder
//
// The work queues' slots, and what READs and atomics need to be answered again, lie elsewhere and are not touched before
// they are needed (SparseArena): an idle queue pair has no memory but these lines.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.hpp"
#include "base/sparse_arena.hpp"
#include "transport/completion_ring.hpp"
#include "transport/extension_session.hpp"
#include "transport/packet_sink.hpp"
#include "transport/send_gate.hpp"
#include "transport/shared_receive_ring.hpp"
#include "transport/work_queue.hpp"
#include "wire/link_tags.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

// What stays the same for a queue pair's life; of an XRC target, pd and srq are those of the message that came last.
struct QueuePairConfig {
  ibv_qp_type type = IBV_QPT_RC;
  Qpn number{0};
  void* context = nullptr;  // the maker's, for events
  PdNumber pd{0};
  uint32_t max_send_wr = 1;
  uint32_t max_recv_wr = 1;
  uint32_t window_bytes = 512 * 1024;
  SharedReceiveRing* srq = nullptr;  // instead of a receive queue of its own; outlives the queue pair
  uint16_t max_inline = 0;
  uint16_t packets_per_ack = 64;  // one acknowledgement for at most so many request packets (LDCP's m)
  uint8_t max_send_sge = 1;
  uint8_t max_recv_sge = 1;
  bool signal_all : 1 = false;
  bool reactive_window : 1 =
      true;  // LossRecovery's, where neither congestion control nor selective repeat is in use
  RoceWriter::Contents contents = RoceWriter::Contents::kWhole;  // of its packets

  // Whose memory the receive requests name.
  [[nodiscard]] PdNumber recv_pd() const { return srq == nullptr ? pd : srq->pd(); }
};
static_assert(sizeof(QueuePairConfig) == 48);  // a cache line together with the state

inline bool is_xrc(ibv_qp_type type) { return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV; }
inline bool is_reliable(ibv_qp_type type) { return type == IBV_QPT_RC || is_xrc(type); }

// What modify() sets (IBTA 11.2.5.2), in our types.
struct QueuePairAttributes {
  RocePath path;
  Qpn remote_qp{0};
  QKey qkey{0};              // UD
  uint32_t path_mtu = 1024;  // bytes
  int access = 0;            // ibv_access_flags that remote operations need
  PKey pkey = kDefaultPKey;
  uint8_t timeout = 0;             // code of ack_timeout()
  uint8_t retry_count = 0;         // 0 to 7
  uint8_t rnr_retry = 0;           // 0 to 6; 7 is without limit
  uint8_t min_rnr_timer = 0;       // code of rnr_delay()
  uint8_t max_rd_atomic = 0;       // READs that may be under way as requester
  uint8_t max_dest_rd_atomic = 0;  // the same as responder
};

class alignas(64) QueuePairCore {
 public:
  virtual ~QueuePairCore();
  QueuePairCore(const QueuePairCore&) = delete;
  QueuePairCore& operator=(const QueuePairCore&) = delete;

  [[nodiscard]] Qpn number() const { return config.number; }
  [[nodiscard]] Accessor accessor() const { return {config.pd, config.number}; }
  [[nodiscard]] ibv_qp_state state() const { return state_.load(std::memory_order_seq_cst); }

  // Any thread. 0 or an errno, as ibv_post_send; the caller rings the doorbell afterwards.
  int post_send(ibv_send_wr* list, ibv_send_wr** bad);
  int post_recv(ibv_recv_wr* list, ibv_recv_wr** bad);
  // All of the list or, where any request of it cannot be taken, nothing.
  int post_send_all(ibv_send_wr* list);

  // The engine's side.
  // A packet for this queue pair with a right ICRC. `frame` is only read.
  virtual void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) = 0;
  // Where the payload of a packet goes if its ICRC turns out to be right; then on_packet() gets it with `placed` set. Null
  // when that cannot be said: it can when the packet is the next one of a message under way, has nothing of its own that
  // must be believed to know the place, and goes into one piece of memory. What lies there is nobody's to look at before
  // the message is whole, and a packet with a wrong ICRC leaves the next one expected, which overwrites it.
  virtual uint8_t* place_of(const MemoryTable& /*memory*/, const FrameView& /*view*/) { return nullptr; }
  // Sends what is due, at most `budget` packets. True when more could be sent at once if there were budget, buffers
  // and room; false when the queue pair waits for its peer, its application or its deadline.
  virtual bool transmit(TransportContext& context, uint32_t budget) = 0;
  [[nodiscard]] virtual Nanos deadline() const = 0;
  virtual void on_deadline(TransportContext& context) = 0;
  // It was held back for a time in which nothing could be sent, and its peer not be heard because of that: what it waits for
  // has as much time as if it had been sent now.
  virtual void note_resumed(Nanos /*now*/) {}
  // What is known of the requests' way and of the READ responses'; null where the service has none of it.
  [[nodiscard]] virtual const SendFlow* flow(Direction /*of*/) const { return nullptr; }
  // What has arrived of the peer's requests; null where the service does not count.
  [[nodiscard]] virtual const ReceiveFlow* received_requests() const { return nullptr; }
  // And of READ responses.
  [[nodiscard]] virtual const ReceiveFlow* received_responses() const { return nullptr; }
  // Asks the peer for a round trip beside the data, instead of one that has not been answered. False where that cannot be.
  virtual bool request_probe(Nanos /*now*/) { return false; }
  // Whether requests are posted that can be sent only when the peer has acknowledged others.
  [[nodiscard]] virtual bool waits_to_send() const { return false; }
  // Whether packets of the responder are to be sent, in the error state too.
  [[nodiscard]] virtual bool owes_answers() const { return false; }
  // The peer's process has exited: what is under way fails as if its retries had run out.
  virtual void on_peer_exit(TransportContext& /*context*/) {}
  // Nobody answers for the peer's address: what is queued fails as if its retries had run out.
  virtual void on_unreachable(TransportContext& context) = 0;

  // State changes, made with the worker's token in hand.
  void to_init() { set_state(IBV_QPS_INIT); }
  void to_ready_to_receive(Psn expected);
  void to_ready_to_send(Psn first);
  void resume_sending() { set_state(IBV_QPS_RTS); }  // out of SQE or SQD, with the next PSN
  // Into SQD: no request is begun any more; when those under way have ended and `notify` is set, an event tells it
  // (IBTA 10.3.1.5). Receiving goes on.
  void drain_sends(bool notify);
  [[nodiscard]] bool draining() const { return state() == IBV_QPS_SQD && draining_; }
  void to_error() { set_state(IBV_QPS_ERR); }  // the next transmit() flushes
  void to_reset();
  // Into the error state for a reason that no completion tells, so an event does.
  void fail_for_good(TransportContext& context);
  // Provides for so many READs and atomics to be answered again (max_dest_rd_atomic); those remembered stay so. 0, or
  // EBUSY while any is being answered, or ENOMEM.
  [[nodiscard]] virtual int remember_reads(uint32_t /*reads*/) { return 0; }
  // Where its memory comes from.
  [[nodiscard]] SparseArena& arena() const { return SparseArena::of(send_queue.storage()); }
  // Whether there was memory for the work queues; else it must not be used.
  [[nodiscard]] bool complete() const {
    return send_queue.storage() != nullptr && recv_queue.storage() != nullptr;
  }
  // The PSNs of the next packet to be sent and to be received.
  [[nodiscard]] virtual Psn send_psn() const = 0;
  [[nodiscard]] virtual Psn receive_psn() const = 0;

  void change_path() { path_ready_ = false; }  // its MAC is to be found
  // Whether a packet with these extras is final once written, and read by nobody before it is sent: neither telemetry nor a CN-TAG
  // is put in behind, and no hops, whose number is read from the packet. Packets of a queue pair whose order matters have the
  // same answer.
  [[nodiscard]] bool sends_direct(const PacketExtras& extras) const {
    if (cn_flow != 0 || (extras.types & bit_of(ExtensionType::kIntEcho)) != 0) return false;
    return session == nullptr || session->telemetry == nullptr ||
           (gates == nullptr && !session->telemetry->begins(HopsOf::kRequests));
  }
  // The peer's MAC is known (again).
  void set_peer_mac(const MacAddress& mac);
  [[nodiscard]] bool path_ready() const { return path_ready_; }

  // Tells the application what no completion does.
  void raise(TransportContext& context, ibv_event_type type) const;

  // Makes a completion of this queue pair's send or receive queue.
  void complete_send(TransportContext& context, const SendWqe& wqe, ibv_wc_status status);
  void complete_recv(TransportContext& context, ibv_wc& completion, bool solicited);

  // Whether there is a receive request for the message that needs one now; it is the head of recv_queue from then until
  // complete_recv(). With a shared receive queue, recv_queue is the one slot that a request is moved into here.
  bool take_receive(TransportContext& context) { return !recv_queue.empty() || take_shared_receive(context); }
  // Completes everything posted as flushed, the message under way first. What waits in a shared receive queue stays
  // there, and the application is told once that this queue pair takes nothing more from it (IBTA 11.6.3.1).
  void flush_receives(TransportContext& context);

  // Line 0, with the address of the virtual functions.
 private:
  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};
  bool path_ready_ = false;
  bool established_ = false;  // a packet has come, and its event has been raised
  bool fatal_raised_ = false;
  bool draining_ = false;  // in SQD: requests are still under way

 public:
  QueuePairConfig config;
  // Line 1.
  WorkRing<SendWqe> send_queue;
  WorkRing<RecvWqe> recv_queue;
  // Line 2.
  // Null: the standard and nothing else.
  std::unique_ptr<ExtensionSession> session;
  SendGates* gates = nullptr;  // the engine's; null: nothing but the protocol holds it back
  CompletionRing& send_cq;
  CompletionRing* recv_cq;

 private:
  std::atomic<uint32_t> send_done_{0}, recv_done_{0};  // the queues'

 public:
  RoceWriter writer;
  // It is not known yet what the peer speaks: a packet that says it has an extension block cannot be read.
  bool extensions_undecided = false;
  bool granted = false;          // the peer may place WRITEs (port/placement.hpp)
  const TransportClass service;  // whose opcodes its packets have
  uint16_t cn_flow = 0;          // in the CN-TAG of requests and READ responses; 0: they have none

 private:
  bool notify_drained_ = false;       // in SQD: the application wants to know when no request is under way
  bool last_receive_raised_ = false;  // since the error state was entered

 public:
  QueuePairAttributes attributes;

 protected:
  // Takes the memory of the work queues from `arena`, which outlives the queue pair.
  QueuePairCore(SparseArena& arena, const QueuePairConfig& config, CompletionRing& send_cq,
                CompletionRing& recv_cq);

  // Forgets everything about earlier requests and starts counting from this PSN.
  virtual void reset_requester(Psn first) = 0;
  virtual void reset_responder(Psn expected) = 0;
  [[nodiscard]] static bool receives(ibv_qp_state state) {
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
  }
  // In SQD, once no request is under way any more.
  void note_drained(TransportContext& context);
  // Takes the oldest send request out of its queue.
  void retire_send();
  // Unreliable services: the oldest send request has a local error, which stops the send queue and nothing else (IBTA
  // 10.3.1.6). What is behind it is flushed.
  void stop_sending(TransportContext& context, ibv_wc_status status);
  void flush_sends(TransportContext& context);
  // Whether a packet of `transport`, or a CNP, comes from where it must; counted when not.
  [[nodiscard]] bool is_from_peer(TransportContext& context, const FrameView& view,
                                  TransportClass transport) const;
  // The same, without counting.
  [[nodiscard]] bool may_be_from_peer(const FrameView& view, TransportClass transport) const {
    return view.opcode->transport == transport &&
           ((view.bth().pkey.get() ^ attributes.pkey.value()) & 0x7fff) == 0 &&
           view.is_between(attributes.path.destination_ip, attributes.path.source_ip);
  }
  void take_cnp(TransportContext& context);
  // Puts the queue pair into error when a completion of one of its queues has been lost, be it another queue pair's.
  void check_completion_queues(TransportContext& context);
  // A packet of the peer has come: the first one in RTR is an event of connected services (IBTA 11.6.3.1).
  void note_communication(TransportContext& context);
  // The store of the error state comes before the look at the queues, as in post_recv() the other way round: either
  // a flush takes a request that is being posted, or its poster sees the state and rings.
  void set_state(ibv_qp_state state, std::memory_order order = std::memory_order_relaxed) {
    state_.store(state, order);
  }

 private:
  void on_overflow(TransportContext& context, CompletionRing& ring);
  bool take_shared_receive(TransportContext& context);
  int check_datagram(const ibv_send_wr& wr, uint64_t length) const;
  int check_send(const ibv_send_wr& wr, uint64_t* length) const;
  int post_send_locked(ibv_send_wr* list, ibv_send_wr** bad);
};

// Writes and sends one packet of `qp`, with an extension block if `extras` has types. fill(open, block) is called with the frame's headers and an empty block in place, to fill the extended headers, the block and the payload, and
// returns false to give the packet up (the buffer is freed).
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
  if (frame == nullptr) return SendOutcome::kNoRoom;
  auto* start = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes)));
  if (start ==
      nullptr) {  // the pool's buffers are sized for the port's MTU, and path_mtu is checked against that
    rte_pktmbuf_free(frame);
    return SendOutcome::kGivenUp;
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
      open.forget_sum();
    }
  }
  if (!filled) {
    rte_pktmbuf_free(frame);
    return SendOutcome::kGivenUp;
  }
  RoceWriter::finish(open);
  if (extras.begin_int) qp.session->telemetry->begin(context, *frame);
  if (qp.cn_flow != 0 && open.view.opcode->is_data()) put_cn_tag(*frame, open.view.l3_offset, qp.cn_flow);
  context.sink.send(frame);
  return SendOutcome::kSent;
}

}  // namespace roci
