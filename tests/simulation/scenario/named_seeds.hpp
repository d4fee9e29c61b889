// Named seeds: simulation seeds that found a defect, with the defect. They run in addition to any range of seeds. The
// run of a seed depends on every random draw of scenario.cpp and of the actors. After a change of those, revert the fix
// and search for a seed that finds the defect again.
#pragma once

#include <cstdint>

namespace roci::test {

struct NamedSeed {
  uint64_t seed;
  const char* found;
};

inline constexpr NamedSeed kNamedSeeds[] = {
    {208,
     "A packet that was kept behind a gap and then found no receive request stayed in the reorder buffer "
     "when it came "
     "again: the responder went on naming a gap that was closed."},
    {221,
     "A READ that the network repeated after its window had been invalidated put the responder into error, "
     "though the "
     "requester had its data."},
    {910001288,
     "A queue pair that requires extensions waited for ever: its peer had asked, and the answers to its own "
     "four requests were lost."},
    {910010702,
     "An access violation by a packet of a request that its application had ended before the window was "
     "closed: the oracle was wrong."},
    {910011234,
     "A host whose ARP request was answered by a frame that was lost acknowledged nothing until its next "
     "request, and the peer's "
     "retries ran out before."},
    {1000003703,
     "The acknowledgment of a repeated SEND waited behind the responses of a later READ, and these waited "
     "for "
     "acknowledgments of the requester, which had not received them: the requester gave up."},
    {1000008092,
     "The last acknowledgment of READ responses was lost, and nothing repeated it: a repetition of the READ "
     "waited for it "
     "at the responder, and with it the acknowledgments of later requests."},
    {1000164403,
     "A corrupted traffic class gave a UC message another priority, so that it overtook an earlier one: the "
     "oracle was wrong."},
    {10979,
     "A queue pair that insisted on extensions, and had nothing posted, went into error and told nobody."},
};

// Seeds of draw_linux_scenario().
inline constexpr NamedSeed kNamedLinuxSeeds[] = {
    {4,
     "A duplicate was acknowledged with the PSN of an atomic whose response was lost. Linux completed it "
     "without data."},
    {8, "NAKs with the PSN of an RNR NAK used up the retries of a requester whose peer answered every time."},
    {10,
     "A duplicate was acknowledged with the PSN of a READ whose response was lost. Linux completed it "
     "without data."},
    {338, "The same as seed 8, with a slow host and small port queues."},
    {231290,
     "An acknowledgment within the paced response to a READ, on a network without losses, failed the "
     "connection."},
    {233241, "The same as seed 231290, with another congestion control algorithm."},
    {230247,
     "At a full port, the worker with the port queue always sent first. Frames of the other worker waited "
     "for "
     "100 ms, and its time-outs used up the retries."},
};

}  // namespace roci::test
