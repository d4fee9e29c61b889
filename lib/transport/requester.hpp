// The requester of a queue pair: turns send work requests into request packets, and responses into completions
// (IBTA 9.7.3, 9.7.6, 9.7.7). Losses are repaired by going back to the oldest unacknowledged packet.
//
//   done                    una                 cursor            posted
//    |<--- acknowledged ---->|<--- in flight ---->|<--- to send --->|        (send queue, packets)
//
// A retry moves the cursor back to una. `sent_end` remembers how far it has ever been, to tell acknowledgements of
// packets that were sent from ghosts.
#pragma once

#include <cstdint>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "transport/packet_sink.hpp"
#include "transport/work_queue.hpp"
#include "wire/frame.hpp"

namespace roci {

class QueuePairCore;

class alignas(64) Requester {
 public:
  explicit Requester(QueuePairCore& qp) : qp_(qp) {}

  void reset(Psn first);
  bool transmit(TransportContext& context, uint32_t& budget);
  void on_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame);

  [[nodiscard]] Nanos deadline() const { return deadline_; }
  void on_deadline(TransportContext& context);

  // Completes the oldest request with an error and puts the queue pair into the error state.
  void fail_oldest(TransportContext& context, ibv_wc_status status);
  // Completes everything posted as flushed.
  void flush(TransportContext& context);

  // For the checks of the tests and for telemetry.
  [[nodiscard]] Psn next_psn() const { return next_psn_; }
  [[nodiscard]] Psn oldest_unacknowledged() const { return una_; }
  [[nodiscard]] Lsn sent_lsn() const { return next_lsn_; }
  void set_first_lsn(Lsn lsn) { next_lsn_ = lsn; }  // before anything is posted

 private:
  // At most 2^23 PSNs may be open (IBTA 9.7.2), else old and new cannot be told apart.
  static constexpr uint32_t kMaxOpenPsns = Psn::kHalf;

  // What ended an attempt to send the packet under the cursor.
  enum class Step : uint8_t {
    kSent,    // and the cursor moved on
    kWait,    // for a response, a window, or an earlier request
    kNoRoom,  // for a buffer or room in the port
    kFailed,  // the request has a local error, which ends it when it is the oldest
  };

  // completer.cpp
  void on_acknowledge(TransportContext& context, const FrameView& view);
  // The data of READs and atomics. The oldest of them is the one whose response is due; null when the packet is
  // none of its, and then it has been dealt with.
  SendWqe* due_request(TransportContext& context, const FrameView& view);
  void on_read_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  void on_atomic_response(TransportContext& context, const FrameView& view);
  // Takes everything before `end` as acknowledged, completing what is whole. Returns false when a READ whose
  // responses have not all come stands in the way: its response was lost.
  bool acknowledge_before(TransportContext& context, Psn end);
  void on_negative(TransportContext& context, Psn psn, ibv_wc_status status);
  void note_progress(Nanos now);
  void complete_oldest(TransportContext& context);
  // Goes back to the oldest unacknowledged packet, at the cost of one retry.
  void retry(TransportContext& context);
  // The same for a gap seen in the responses: once per gap, since every response behind it shows it again.
  void retry_gap(TransportContext& context);

  // requester.cpp
  Step send_one(TransportContext& context);
  Step start(TransportContext& context, SendWqe& wqe);
  Step send_message_packet(TransportContext& context, SendWqe& wqe);
  Step send_read_request(TransportContext& context, SendWqe& wqe);
  Step send_atomic_request(TransportContext& context, SendWqe& wqe);
  void note_sent(TransportContext& context, Psn psn, uint32_t count);
  void rewind();
  [[nodiscard]] bool outstanding() const { return !(una_ == sent_end_); }
  [[nodiscard]] Psn cursor_psn();
  [[nodiscard]] uint64_t in_flight_bytes();
  [[nodiscard]] Nanos timeout() const;

  QueuePairCore& qp_;

  uint32_t cursor_index_ = 0;   // send queue index of the request under the cursor
  uint32_t cursor_packet_ = 0;  // packet within it
  Psn next_psn_;                // first PSN of the next request to be started
  Psn una_;                     // oldest unacknowledged
  Psn sent_end_;                // one past the highest ever sent
  Lsn next_lsn_;                // first LSN of the next request to be started
  uint64_t read_bytes_outstanding_ = 0;
  uint32_t reads_outstanding_ = 0;  // and atomics
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  bool waits_for_rnr_ = false;  // silent until the deadline, as the responder asked
  bool gap_retried_ = false;    // a gap at gap_psn_ has been repaired once
  Psn gap_psn_;
  Nanos deadline_ = kNever;  // of the oldest unacknowledged packet, or of the RNR wait
};

}  // namespace roci
