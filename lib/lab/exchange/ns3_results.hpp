// Results of a run in the formats of HPCC's ns-3 simulator: fct.txt, qlen.txt and pfc.txt.
//
//   fct.txt   sender and receiver (IPv4 address, hexadecimal), their ports, bytes, start, duration and minimum duration
//             in ns; a line per completed flow, in order of completion
//   qlen.txt  "time: NS", then a line per port: switch, interface from 1 on, and the number of samples of 0 KB, 1 KB, …
//   pfc.txt   time in ns, node, 0 (host) or 1 (switch), interface, 1 (pause) or 0 (resume); a line per received frame
//
// Nodes have the numbers of the exporter; times are those of the simulator (Scenario::time_origin).
#pragma once

#include <string>

#include "lab/execution/experiment.hpp"
#include "lab/scenario/scenario.hpp"

namespace roci::lab {

std::string ns3_fct_text(const Scenario& scenario, const Measurements& of);
std::string ns3_qlen_text(const Scenario& scenario, const Measurements& of);
std::string ns3_pfc_text(const Scenario& scenario, const Measurements& of);

// Writes the three files into a folder, which must exist.
Status write_ns3_results(const std::string& folder, const Scenario& scenario, const Measurements& of);

}  // namespace roci::lab
