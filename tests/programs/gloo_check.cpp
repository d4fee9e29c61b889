// One rank of a Gloo job with the ibverbs transport, linked with the distribution's libgloo: allreduce_ring, every
// sum verified.
//
//   gloo-check FOLDER RANK RANKS [--runs N] [--elements N] [--busy-poll]
//
// The ranks rendezvous through files in FOLDER, which is empty at the start. By default a thread of Gloo sleeps until
// a completion event; with --busy-poll the calling thread polls. Exit status 1, after one sentence, if a sum is wrong
// or a call fails.
#include <gloo/allreduce_ring.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Options {
  std::string folder;
  int rank = 0;
  int ranks = 0;
  int runs = 200;
  int elements = 65536;
  bool busy_poll = false;
};

[[noreturn]] void usage() {
  std::fprintf(stderr, "usage: gloo-check FOLDER RANK RANKS [--runs N] [--elements N] [--busy-poll]\n");
  std::exit(2);
}

Options parse(const std::vector<std::string>& words) {
  if (words.size() < 3) usage();
  Options options{.folder = words[0], .rank = std::stoi(words[1]), .ranks = std::stoi(words[2])};
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "--busy-poll") {
      options.busy_poll = true;
    } else if (words[i] == "--runs" && i + 1 < words.size()) {
      options.runs = std::stoi(words[++i]);
    } else if (words[i] == "--elements" && i + 1 < words.size()) {
      options.elements = std::stoi(words[++i]);
    } else {
      usage();
    }
  }
  return options;
}

// Gloo's algorithm does not wait for the completions of its notifications. Its buffers must not be destroyed before
// those.
class Allreduce : public gloo::AllreduceRing<std::uint64_t> {
 public:
  using AllreduceRing::AllreduceRing;
  void wait_for_notifications(int count) {
    for (int i = 0; i < count; ++i) sendNotificationBuf_->waitSend();
  }
};

std::uint64_t element(int run, int rank, int i) {
  return static_cast<std::uint64_t>(run) * 1000003 +
         static_cast<std::uint64_t>(rank + 1) * static_cast<std::uint64_t>(i);
}

void verify(const Options& options, int run, const std::vector<std::uint64_t>& sums) {
  for (int i = 0; i < options.elements; ++i) {
    std::uint64_t expected = 0;
    for (int rank = 0; rank < options.ranks; ++rank) expected += element(run, rank, i);
    const std::uint64_t sum = sums[static_cast<std::size_t>(i)];
    if (sum != expected) {
      throw std::runtime_error("run " + std::to_string(run) + ", element " + std::to_string(i) +
                               ": the sum is " + std::to_string(sum) + ", not " + std::to_string(expected));
    }
  }
}

// Gloo reports an error if a rank closes its queue pairs while another one waits for them.
void wait_for_all(const Options& options, gloo::rendezvous::FileStore& store) {
  store.set("finished" + std::to_string(options.rank), {1});
  std::vector<std::string> all;
  for (int rank = 0; rank < options.ranks; ++rank) all.push_back("finished" + std::to_string(rank));
  store.wait(all);
}

[[noreturn]] void run_rank(const Options& options) {
  const std::vector<std::string> names = gloo::transport::ibverbs::getDeviceNames();
  if (names.empty()) throw std::runtime_error("no RDMA device");
  auto device = gloo::transport::ibverbs::CreateDevice({.name = names.front(), .port = 1, .index = 1});
  gloo::rendezvous::FileStore store(options.folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.ranks);
  context->connectFullMesh(store, device);
  for (int rank = 0; options.busy_poll && rank < options.ranks; ++rank) {
    if (rank != options.rank) context->getPair(rank)->setSync(true, true);
  }
  std::vector<std::uint64_t> values(static_cast<std::size_t>(options.elements));
  Allreduce allreduce(context, {values.data()}, options.elements);
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < options.runs; ++run) {
    for (int i = 0; i < options.elements; ++i)
      values[static_cast<std::size_t>(i)] = element(run, options.rank, i);
    allreduce.run();
    verify(options, run, values);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  allreduce.wait_for_notifications(options.runs * (options.ranks - 1));  // one per round of the ring
  wait_for_all(options, store);
  std::printf("gloo: %d runs of allreduce_ring, %d ranks, %d elements, %.1f us for each\n", options.runs,
              options.ranks, options.elements, seconds.count() / options.runs * 1e6);
  // Skips destructors: Gloo destroys a pair while the device's thread may still handle one of its completions, which
  // then accesses freed memory (Pair::handleCompletionEvent).
  std::exit(0);
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse({words + 1, words + count});
  try {
    run_rank(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo rank %d: %s\n", options.rank, error.what());
    return 1;
  }
}
