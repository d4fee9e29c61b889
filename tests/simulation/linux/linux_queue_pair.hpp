// RC queue pair of a Linux host (linux_host.hpp): requester, completer and responder of soft-RoCE, as they behave on
// the wire. Go-back-N from the oldest unacknowledged packet, one retransmission for a loss until progress is made, at
// most 128 unacknowledged PSNs, timers in ticks of the kernel, an ACK for each packet that requests one, one NAK for a
// gap, and stored responses to READs and atomics. Retry count 7 is without limit, as in Linux.
//
// Differences from Linux, where its behavior breaks connections of its own:
// - A request whose retransmission is in progress completes when an ACK covers it. Linux then continues to send its
//   packets, and may send a LAST packet without payload.
// - A fence waits for earlier READs and atomics. In Linux it waits for all, so a retransmission from a fenced READ
//   waits for itself.
// - An ACK of an earlier packet is dropped within the response to a READ, unless the network loses and reorders nothing.
//   Linux (since 6.2) then expects the start of a response, and the next MIDDLE fails the queue pair. Such an ACK
//   precedes the response to a repeated READ when both Linux and Rocinante are the responder.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sequence.hpp"
#include "simulation/linux/linux_host.hpp"
#include "simulation/traffic/rc_queue_pair.hpp"
#include "wire/headers/opcodes.hpp"

namespace roci::test {

class LinuxQueuePair final : public RcQueuePair {
 public:
  // Work completions are appended to `completions`, which must outlive the queue pair.
  LinuxQueuePair(LinuxHost& host, const ibv_qp_init_attr& init, std::deque<ibv_wc>& completions);
  ~LinuxQueuePair() override;

  [[nodiscard]] uint32_t qp_num() const override { return number_; }
  [[nodiscard]] ibv_qp_state state() const override { return state_; }
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad) override;
  int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) override;
  void connect(const ibv_gid& peer, uint32_t remote_qp, const ConnectOptions& options) override;
  void move_to(ibv_qp_state state) override;
  [[nodiscard]] bool send_queue_empty() const { return requests_.empty(); }

  // For the host.
  void receive(const Packet& packet, const OpcodeInfo& opcode);
  bool run();  // timers, requester and completer; returns whether there was work
  [[nodiscard]] Nanos next_deadline() const;
  void queued_frame() { ++frames_queued_; }
  void sent_frame() { --frames_queued_; }
  void queue_has_room() { runnable_ |= std::exchange(waits_for_queue_, false); }

 private:
  static constexpr int32_t kUnackedPsns = 128;
  static constexpr uint32_t kQueuedFrames = 64;      // in the transmit queue of the host
  static constexpr uint32_t kPacketsPerAckReq = 64;  // within a message, the 66th packet requests an ACK
  static constexpr uint8_t kEndlessRetries = 7;

  struct Request {
    // Posted: not started, or to be sent again. Sending: some packets were sent. Sent: all were.
    enum class State : uint8_t { kPosted, kSending, kSent };
    ibv_send_wr wr{};
    std::vector<ibv_sge> pieces;
    ByteVector inline_data;
    uint32_t length = 0;
    uint32_t left = 0;  // bytes that were not sent, or of a READ, not received
    State state = State::kPosted;
    Psn first, last;
    bool has_read_slot = false;
    [[nodiscard]] bool is_read() const { return wr.opcode == IBV_WR_RDMA_READ; }
    [[nodiscard]] bool is_atomic() const {
      return wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    }
    [[nodiscard]] bool is_write() const {
      return wr.opcode == IBV_WR_RDMA_WRITE || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    }
    [[nodiscard]] bool has_answer() const { return is_read() || is_atomic(); }
  };
  struct Receive {
    uint64_t wr_id = 0;
    std::vector<ibv_sge> pieces;
    uint32_t capacity = 0;
  };
  // Stored response to a READ or an atomic.
  struct Resource {
    bool used = false;
    bool read = false;
    Psn first{}, last{};
    MemoryKey key{};
    uint64_t address = 0;  // lowest address that a repeated READ may request
    uint32_t length = 0;
    uint64_t original = 0;  // of an atomic
  };

  // linux_requester.cpp
  void request_packets();
  bool send_request_packet();
  [[nodiscard]] bool is_fenced() const;
  [[nodiscard]] Opcode opcode_for(const Request& request, bool first, bool last) const;
  void go_back();
  bool complete_responses();
  void on_response(const Packet& packet, const OpcodeInfo& opcode);
  void on_fitting_response(const Packet& packet, const OpcodeInfo& opcode);
  void on_acknowledge(const Packet& packet);
  void advance(Psn psn, bool ends);
  void complete_head(ibv_wc_status status);
  void retry(bool after_timeout);
  void restart_timer();
  void reset_retries();
  void fail_request(ibv_wc_status status);
  void unfit(const Packet& packet, const OpcodeInfo& opcode);

  // linux_responder.cpp
  void on_request(const Packet& packet, const OpcodeInfo& opcode);
  void on_duplicate(const Packet& packet, const OpcodeInfo& opcode);
  [[nodiscard]] bool follows(const OpcodeInfo& opcode) const;
  [[nodiscard]] bool length_fits(const Packet& packet, const OpcodeInfo& opcode) const;
  [[nodiscard]] bool access_granted(const Packet& packet, const OpcodeInfo& opcode);
  bool execute(const Packet& packet, const OpcodeInfo& opcode);
  void execute_atomic(const Packet& packet, const OpcodeInfo& opcode);
  void answer_read(const Packet& request, const Resource& resource);
  void answer_atomic(Psn psn, uint64_t original);
  void acknowledge(uint8_t syndrome, Psn psn);
  void refuse(uint8_t syndrome, ibv_wc_status status, const Packet& packet, const OpcodeInfo& opcode);
  Resource& next_resource();
  [[nodiscard]] Resource* find_resource(Psn psn);

  // linux_queue_pair.cpp
  void clear();
  void enter_error();
  void flush();
  void send(Packet packet);
  void add_completion(uint64_t wr_id, ibv_wc_status status, ibv_wc_opcode opcode, uint32_t bytes,
                      std::optional<uint32_t> imm);
  static void gather(const Request& request, uint32_t offset, uint32_t length, ByteVector& out);
  static void scatter(const std::vector<ibv_sge>& pieces, uint32_t offset, const ByteVector& bytes);

  LinuxHost& host_;
  std::deque<ibv_wc>& completions_;
  bool signal_all_;
  uint32_t max_send_;
  uint32_t number_;
  ibv_qp_state state_ = IBV_QPS_RESET;
  IpAddress peer_;
  Qpn peer_number_;
  uint32_t mtu_ = 0;
  uint8_t traffic_class_ = 0;
  uint16_t source_port_ = 0;
  uint8_t min_rnr_timer_ = 0;
  uint8_t retry_count_ = 0;
  uint8_t rnr_retry_ = 0;
  int64_t timeout_ticks_ = 0;
  bool runnable_ = false;
  bool waits_for_queue_ = false;
  uint32_t frames_queued_ = 0;

  // Requester.
  std::deque<Request> requests_;
  size_t next_ = 0;  // index of the next request to send from
  Psn next_psn_;
  uint32_t packets_since_ack_request_ = 0;
  uint32_t read_slots_ = 0;  // free ones
  bool need_retry_ = false;
  bool rnr_wait_ = false;
  Nanos retransmit_at_ = kNever;
  Nanos rnr_at_ = kNever;

  // Completer.
  struct Response {
    Packet packet;
    const OpcodeInfo* opcode = nullptr;
  };
  std::deque<Response> responses_;
  Psn acked_;                 // the oldest PSN without a response
  bool within_read_ = false;  // the last response was FIRST or MIDDLE
  bool timed_out_ = false;
  bool retry_started_ = false;
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;

  // Responder.
  std::deque<Receive> receives_;
  Psn expected_;
  Psn acknowledged_;  // the PSN after the last executed SEND, WRITE or atomic
  uint32_t msn_ = 0;
  bool gap_named_ = false;
  const OpcodeInfo* last_opcode_ = nullptr;  // of the previous request; null: none, or a READ
  uint32_t message_bytes_ = 0;               // of the current SEND
  uint8_t* write_to_ = nullptr;
  uint32_t write_left_ = 0;
  uint32_t write_length_ = 0;
  std::vector<Resource> resources_;
  size_t next_resource_ = 0;
};

}  // namespace roci::test
