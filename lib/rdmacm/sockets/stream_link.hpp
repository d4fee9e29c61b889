// The two directions of a connected stream: a queue pair, the rings of both peers, and credits. Not thread-safe, and
// calls do not wait. The owner holds its lock, except that one sender and one receiver may copy without it.
//
// Sending requires a send queue entry, space in the send ring, a credit (a posted receive of the peer), and a grant (a
// part of the peer's ring). The receiver returns credit and ring space after the program has read the message.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rdmacm/sockets/completions.hpp"
#include "rdmacm/sockets/protocol.hpp"

namespace roci::rdmacm::sockets {

// Sizes that programs choose before they connect. Defaults and limits are those of rdma-core.
struct Sizes {
  uint32_t send_ring = 1U << 17, receive_ring = 1U << 17;  // bytes
  uint32_t most_inline = 64;
  uint32_t send_queue = 384, receive_queue = 384;  // requests
  uint16_t mappings = 0;                           // maximum number of mappings that the peer may announce
};

using Pieces = std::array<std::span<uint8_t>, 2>;  // parts of a ring before and after its end

class StreamLink {
 public:
  // Creates a queue pair for the id and posts receives. Returns null with errno on failure.
  static std::unique_ptr<StreamLink> make(rdma_cm_id* id, const Sizes& sizes);
  ~StreamLink();
  StreamLink(const StreamLink&) = delete;
  StreamLink& operator=(const StreamLink&) = delete;

  [[nodiscard]] int event_fd() const { return completions_.event_fd(); }
  [[nodiscard]] ConnectionData connection_data() const;
  void agree(const ConnectionData& peer);
  void open() { open_ = true; }  // permits sending

  // Processes completions and returns credits. Returns true if there were completions.
  bool progress();
  // Requests an event for the next completion. Returns false if it is already requested.
  bool arm();
  bool take_events() { return completions_.take_events(); }

  [[nodiscard]] bool readable() const { return unread_ > 0; }
  [[nodiscard]] bool receives() const { return receives_; }  // more data may arrive
  [[nodiscard]] bool ended() const { return ended_; }        // the peer has announced the end of its data
  [[nodiscard]] bool sends() const { return sends_; }        // more data may be sent
  [[nodiscard]] bool is_disconnected() const {
    return disconnected_ || error_ != 0;
  }  // the peer has disconnected, or an error
  [[nodiscard]] bool is_finished() const { return is_disconnected() || (!receives_ && !sends_); }
  [[nodiscard]] int error() const {
    return error_;
  }  // cause of is_disconnected(); 0: disconnected by the peer
  void fail(int code);

  // Bytes that can be sent now; 0 if the space is below kLowWater.
  [[nodiscard]] uint32_t send_space() const;
  // Space for the next bytes, to be filled before write() or write_at() sends them.
  Pieces outgoing(uint32_t bytes);
  bool write(uint32_t bytes);
  bool write_at(uint32_t bytes, uint64_t address, uint32_t key);
  // As send_space(), without the limit of a grant.
  [[nodiscard]] uint32_t direct_space() const;
  [[nodiscard]] std::optional<Mapping> mapping_at(uint64_t offset);

  [[nodiscard]] size_t unread() const { return unread_; }
  Pieces incoming(size_t skip, size_t bytes);
  void consume(size_t bytes);

  // SHUT_RD, SHUT_WR or SHUT_RDWR. The peer is notified as soon as a send queue entry is free.
  void shut(int how);
  [[nodiscard]] bool all_sent() const;
  // Sends an empty RDMA WRITE, which costs the peer nothing and fails if the peer has exited.
  void probe();

  // Registers memory for riowrite() of the peer, which is notified as soon as possible. Returns false with errno on
  // failure.
  bool map(void* address, size_t length, bool writable, uint64_t offset);
  bool unmap(void* address, size_t length);
  [[nodiscard]] bool has_unannounced_mappings() const;

 private:
  enum class Kind : uint8_t { kReceive, kData, kDirect, kMapping, kControl, kProbe };
  struct Mapped {
    ibv_mr* region;
    uint64_t offset;
    int index;  // index at the peer; negative: not announced
    bool announced;
  };

  StreamLink(rdma_cm_id* id, const Sizes& sizes) : id_(id), sizes_(sizes) {}
  bool set_up();
  bool make_queues();
  bool register_memory();
  bool post_receives(uint32_t count);
  void on_received(const ibv_wc& completion);
  void on_immediate(uint32_t word);
  void on_data(uint32_t bytes);
  void on_control(Control control);
  void on_sent(const ibv_wc& completion);
  void take_grants();
  void give_credits();
  void announce_mappings();
  void send_pending_control();
  bool post(ibv_send_wr& wr, Kind kind, uint32_t bytes);
  bool post_outgoing(uint32_t bytes, ibv_send_wr& wr, Kind kind);
  // `content` is sent inline.
  bool post_immediate(Kind kind, uint32_t immediate, std::span<const uint8_t> content = {},
                      uint64_t address = 0, uint32_t key = 0);

  rdma_cm_id* id_;
  Sizes sizes_;
  Completions completions_;
  bool open_ = false;
  bool receives_ = true, sends_ = true, ended_ = false, disconnected_ = false;
  int error_ = 0;
  std::optional<Control> pending_control_;  // not sent yet

  // State of the peer.
  bool swap_ = false;
  Area peer_grants_;
  uint32_t peer_grant_ = 1;  // next entry of its list to write; the connection data contained the first grant
  Area peer_mappings_;

  // Sending.
  std::vector<uint8_t> send_ring_;
  ibv_mr* send_region_ = nullptr;
  uint32_t send_at_ = 0, send_free_ = 0;
  uint32_t free_data_slots_ = 0, free_control_slots_ = 0;
  uint16_t sent_ = 0, allowed_ = 0;  // number of messages
  std::deque<Area> grants_;
  uint32_t next_grant_ = 1;
  bool probing_ = false;

  // Memory that the peer writes: grants, then mappings.
  std::vector<uint64_t> peer_written_;
  ibv_mr* peer_written_region_ = nullptr;

  // Receiving.
  std::vector<uint8_t> receive_ring_;
  ibv_mr* receive_region_ = nullptr;
  uint32_t half_ = 0, read_at_ = 0, grant_at_ = 0;
  uint32_t freed_ = 0;    // bytes read and not granted again
  uint32_t granted_ = 0;  // bytes granted and not yet written
  size_t unread_ = 0;
  std::deque<uint32_t> messages_;    // unread bytes of each message
  uint16_t consumed_ = 0, due_ = 0;  // messages; due_: value of consumed_ at which credits are returned
  std::list<Mapped> mapped_;
};

}  // namespace roci::rdmacm::sockets
