// The two directions of a connected stream: a queue pair, the rings on both ends, and the credits between them. It knows neither
// threads nor calls that wait: who owns it holds its lock, except that one sender and one receiver may copy without it.
//
// Room for sending needs all of: a place in the send queue, some of our ring, a credit (a receive of the peer's), and a grant (a
// part of its ring). A received message is given back, as credit and as ring, when the program has read it.
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

// What programs choose before they connect. Defaults are rdma-core's, and so are the bounds.
struct Sizes {
  uint32_t send_ring = 1U << 17, receive_ring = 1U << 17;  // bytes
  uint32_t most_inline = 64;
  uint32_t send_queue = 384, receive_queue = 384;  // requests
  uint16_t mappings = 0;                           // that the peer may tell us of
};

using Pieces = std::array<std::span<uint8_t>, 2>;  // of a ring, around its end

class StreamLink {
 public:
  // With a queue pair for the id, receives posted. Null, and errno.
  static std::unique_ptr<StreamLink> make(rdma_cm_id* id, const Sizes& sizes);
  ~StreamLink();
  StreamLink(const StreamLink&) = delete;
  StreamLink& operator=(const StreamLink&) = delete;

  [[nodiscard]] int event_fd() const { return completions_.event_fd(); }
  [[nodiscard]] ConnectionData connection_data() const;
  void agree(const ConnectionData& peer);
  void open() { open_ = true; }  // from now on it may send

  // Takes completions, gives credits. Whether there were any.
  bool progress();
  // The next completion is an event. False: that was so already.
  bool arm();
  bool take_events() { return completions_.take_events(); }

  [[nodiscard]] bool readable() const { return unread_ > 0; }
  [[nodiscard]] bool receives() const { return receives_; }         // more may come
  [[nodiscard]] bool ended() const { return ended_; }               // the peer has said that there is no more
  [[nodiscard]] bool sends() const { return sends_; }               // more may be sent
  [[nodiscard]] bool gone() const { return gone_ || error_ != 0; }  // nobody is there any more
  [[nodiscard]] bool over() const { return gone() || (!receives_ && !sends_); }
  [[nodiscard]] int error() const { return error_; }  // why it is gone; 0: the peer has said so
  void fail(int code);

  // Bytes that can be sent now, 0 when there is no room worth it.
  [[nodiscard]] uint32_t room() const;
  // Where the next bytes are put before write() or write_at() sends them.
  Pieces outgoing(uint32_t bytes);
  bool write(uint32_t bytes);
  bool write_at(uint32_t bytes, uint64_t address, uint32_t key);
  // The same for room that no grant limits.
  [[nodiscard]] uint32_t direct_room() const;
  [[nodiscard]] const Mapping* mapping_at(uint64_t offset) const;

  [[nodiscard]] size_t unread() const { return unread_; }
  Pieces incoming(size_t skip, size_t bytes);
  void consume(size_t bytes);

  // SHUT_RD, SHUT_WR or SHUT_RDWR; the peer is told as soon as there is a place for that.
  void shut(int how);
  [[nodiscard]] bool all_sent() const;
  // An empty write, which costs the peer nothing and fails when it is no more.
  void probe();

  // Registers memory for the peer's riowrite(); it is told as soon as there is room. False, and errno.
  bool map(void* address, size_t length, bool writable, uint64_t offset);
  bool unmap(void* address, size_t length);
  [[nodiscard]] bool mappings_wait() const;

 private:
  enum class Kind : uint8_t { kReceive, kData, kDirect, kMapping, kControl, kProbe };
  struct Mapped {
    ibv_mr* region;
    uint64_t offset;
    int index;  // at the peer; below 0: it is not told
    bool told;
  };

  StreamLink(rdma_cm_id* id, const Sizes& sizes) : id_(id), sizes_(sizes) {}
  bool set_up();
  bool make_queues();
  bool register_memory();
  bool post_receives(uint32_t count);
  void on_received(const ibv_wc& completion);
  void on_word(uint32_t word);
  void on_data(uint32_t bytes);
  void on_control(Control control);
  void on_sent(const ibv_wc& completion);
  void take_grants();
  void give_credits();
  void tell_mappings();
  void say_what_is_owed();
  bool post(ibv_send_wr& wr, Kind kind, uint32_t bytes);
  bool post_outgoing(uint32_t bytes, ibv_send_wr& wr, Kind kind);
  // `content` goes along inline.
  bool post_word(Kind kind, uint32_t immediate, std::span<const uint8_t> content = {}, uint64_t address = 0,
                 uint32_t key = 0);

  rdma_cm_id* id_;
  Sizes sizes_;
  Completions completions_;
  bool open_ = false;
  bool receives_ = true, sends_ = true, ended_ = false, gone_ = false;
  int error_ = 0;
  std::optional<Control> owed_;  // not said yet

  // The peer.
  bool swap_ = false;
  Area peer_grants_;
  uint32_t peer_grant_ = 1;  // which of its list is written next; the first came with its terms
  Area peer_mappings_;

  // Sending.
  std::vector<uint8_t> send_ring_;
  ibv_mr* send_region_ = nullptr;
  uint32_t send_at_ = 0, send_free_ = 0;
  uint32_t data_places_ = 0, control_places_ = 0;
  uint16_t sent_ = 0, allowed_ = 0;  // messages
  std::deque<Area> grants_;
  uint32_t next_grant_ = 1;
  bool probing_ = false;

  // What the peer writes: grants, and mappings behind them.
  std::vector<uint64_t> told_;
  ibv_mr* told_region_ = nullptr;

  // Receiving.
  std::vector<uint8_t> receive_ring_;
  ibv_mr* receive_region_ = nullptr;
  uint32_t half_ = 0, read_at_ = 0, grant_at_ = 0;
  uint32_t freed_ = 0;    // read and not granted again
  uint32_t granted_ = 0;  // and not yet written
  size_t unread_ = 0;
  std::deque<uint32_t> messages_;    // of which that is
  uint16_t consumed_ = 0, due_ = 0;  // messages; when the next credits are
  std::list<Mapped> mapped_;
};

}  // namespace roci::rdmacm::sockets
