#include "roci-lab/run_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/os/interrupt.hpp"
#include "lab/exchange/ns3_results.hpp"
#include "lab/execution/experiment.hpp"
#include "lab/results/results.hpp"
#include "roci-lab/claims.hpp"
#include "roci-lab/compare_command.hpp"
#include "roci-lab/job_table.hpp"
#include "roci-lab/means.hpp"
#include "roci-lab/output_folder.hpp"
#include "roci-lab/ranks.hpp"
#include "roci-lab/text.hpp"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

unsigned threads_of(const RunOptions& options) {
  if (options.threads != 0) return options.threads;
  return std::max(1U, std::thread::hardware_concurrency() / options.jobs);
}

// Warnings below the line of a run; empty if there is nothing to report.
std::string schedule_lag_text(const Measurements& of) {
  constexpr double kSmallPart = 0.01;
  if (!of.real || of.real->late.part <= kSmallPart) return "";
  const ScheduleLag& late = of.real->late;
  return "\n  late by more than " + span(ScheduleLag::kMuch) + " for " + with_unit(late.part * 100, "") +
         " % of the time, at most by " + span(Nanos{static_cast<int64_t>(late.most_ns)}) + ": " +
         (of.real->ports.empty() ? "the results are not affected, since all links are simulated"
                                 : "the results with real ports are less accurate");
}

std::string real_port_losses_text(const Measurements& of) {
  if (!of.real) return "";
  uint64_t lost = 0;
  for (const RealPortCounts& port : of.real->ports) lost += port.rx_missed + port.dropped;
  return lost == 0 ? "" : "\n  real ports lost " + std::to_string(lost) + " frames; see run.json";
}

// Sentence about messages that failed; empty if none did.
std::string failure_text(const std::string& name, const Measurements& of) {
  if (!of.summary.contains("first_error")) return "";
  const auto failed = std::ranges::count_if(of.flows, &FlowResult::failed);
  return name + ": " +
         (failed == 0 ? "messages"
                      : std::to_string(failed) + " of " + std::to_string(of.flows.size()) + " flows") +
         " failed; the first error: " + of.summary["first_error"].get<std::string>();
}

// Executes one job and writes its results into a folder.
Result<Outcome> measure(const RunOptions& options, const Job& job, size_t number, const fs::path& folder,
                        ProgressLine& line) {
  auto scenario = read_scenario(options.file, job.changes);
  if (!scenario) return fail(scenario.error());
  line.started(number, job.name, scenario->duration);
  ExperimentOptions how;
  how.threads = threads_of(options);
  how.real = options.real;
  how.record_pauses = options.ns3_results;
  how.stops = interrupted;
  how.progress = [&](const ExperimentProgress& at) { line.show(number, at); };
  auto measured = run_experiment(*scenario, how);
  line.ended(number);
  if (!measured) return fail(measured.error().within(job.name));
  ROCI_TRY(
      write_results(folder.string(), *scenario, {job.name, job.command(options), how.threads}, *measured));
  if (options.ns3_results) ROCI_TRY(write_ns3_results(folder.string(), *scenario, *measured));
  return Outcome{.line = result_line(job.name, *measured) + real_port_losses_text(*measured) +
                         schedule_lag_text(*measured),
                 .failure = failure_text(job.name, *measured)};
}

Outcome run(const RunOptions& options, const Job& job, size_t number, const fs::path& folder,
            ProgressLine& line) {
  auto outcome = measure(options, job, number, folder, line);
  if (outcome) return *outcome;
  if (outcome.error().code == ECANCELED) return {.stopped = true};
  return {.error = outcome.error().message};
}

// Rank 0: executes all jobs, on its own threads and on the other ranks.
class Lead {
 public:
  Lead(const RunOptions& options, const Plan& plan, Ranks& ranks)
      : options_(options), plan_(plan), ranks_(ranks) {}
  int run_all();

 private:
  [[nodiscard]] fs::path folder_of(size_t job) const {
    return plan_.jobs[job].folder.empty() ? out() : out() / plan_.jobs[job].folder;
  }
  [[nodiscard]] fs::path out() const { return output_folder(options_); }
  void serve(JobTable& job_table);
  Outcome taken_in(size_t job, const Json& done) const;
  Status report(const JobTable& job_table, bool& as_expected) const;

  const RunOptions& options_;
  const Plan& plan_;
  Ranks& ranks_;
};

// Messages between ranks: a job number, or a job number with its outcome. An empty message to rank 0 requests the first
// job; an empty answer ends the rank.
Ranks::Bytes packed(size_t job) { return Json::to_cbor(Json{{"job", job}}); }
Ranks::Bytes packed(size_t job, const Outcome& outcome, const Json& files) {
  return Json::to_cbor(Json{{"job", job},
                            {"line", outcome.line},
                            {"error", outcome.error},
                            {"failure", outcome.failure},
                            {"stopped", outcome.stopped},
                            {"files", files}});
}

// Other ranks: executes jobs until rank 0 has no more.
void help(const RunOptions& options, Ranks& ranks) {
  ProgressLine line(1, false);
  // A new folder: another user could have created one with a known name.
  std::string parent = (fs::temp_directory_path() / "roci-lab-XXXXXX").string();
  const bool has_folder = ::mkdtemp(parent.data()) != nullptr;
  const fs::path folder = fs::path{parent} / "results";
  std::optional<Result<Plan>> plan;
  for (Ranks::Bytes answer = ranks.request_job({}); !answer.empty();) {
    if (!plan) plan = plan_jobs(options);
    const size_t job = Json::from_cbor(answer).at("job");
    Outcome outcome;
    Json files = Json::object();
    if (!*plan) {
      outcome.error = (*plan).error().message + " (at a rank other than the first)";
    } else if (!has_folder) {
      outcome.error = "'" + parent + "' cannot be created (at a rank other than the first)";
    } else {
      outcome = run(options, (*plan)->jobs[job], job, folder, line);
    }
    if (outcome.error.empty() && !outcome.stopped) {
      auto read = read_files(folder.string());
      if (read)
        files = std::move(*read);
      else
        outcome.error = read.error().message;
    }
    answer = ranks.request_job(packed(job, outcome, files));
  }
  std::error_code ignored;
  if (has_folder) fs::remove_all(parent, ignored);
}

// Ends the other ranks without a job.
void dismiss(Ranks& ranks) {
  for (int remaining = ranks.count() - 1; remaining > 0; --remaining)
    ranks.answer(ranks.next_request().rank, {});
}

Outcome Lead::taken_in(size_t job, const Json& done) const {
  Outcome outcome{done.at("line"), done.at("error"), done.at("failure"), done.at("stopped")};
  if (!outcome.error.empty() || outcome.stopped) return outcome;
  Status written = write_files(folder_of(job).string(), done.at("files"));
  return written ? outcome : Outcome{.error = written.error().message};
}

// Distributes jobs and collects results until all other ranks have received an empty answer.
void Lead::serve(JobTable& job_table) {
  for (int working = ranks_.count() - 1; working > 0;) {
    const Ranks::Request request = ranks_.next_request();
    bool continues = true;
    if (!request.bytes.empty()) {
      const Json done = Json::from_cbor(request.bytes);
      const size_t job = done.at("job");
      job_table.done(job, taken_in(job, done));
      continues = !done.at("stopped");  // an interrupted rank would stop further jobs at once
    }
    const auto job = continues ? job_table.take() : std::nullopt;
    ranks_.answer(request.rank, job ? packed(*job) : Ranks::Bytes{});
    if (!job) --working;
  }
}

Status Lead::report(const JobTable& job_table, bool& as_expected) const {
  std::vector<std::string> folders;  // of the succeeded runs
  std::vector<const Job*> jobs;
  for (size_t job = 0; job < plan_.jobs.size(); ++job) {
    if (!job_table.succeeded(job)) continue;
    folders.push_back(folder_of(job).string());
    jobs.push_back(&plan_.jobs[job]);
  }
  if (folders.empty()) return {};
  std::printf("results: %s\n", out().string().c_str());
  auto results = read_folders(folders);
  if (!results) return fail(results.error());
  if (options_.seeds > 1) std::printf("%s", means_table(jobs, *results).c_str());
  const Claims claims = evaluate_all(plan_.expectations, jobs, *results);
  print(claims);
  ROCI_TRY(write_claims((out() / "claims.json").string(), claims));
  as_expected = claims.as_expected();
  return write_shown_report((out() / "report.html").string(), *results, claims.evaluated);
}

int Lead::run_all() {
  std::printf("%s\n", result_heading().c_str());
  ProgressLine line(plan_.jobs.size(), !options_.quiet);
  JobTable job_table(plan_.jobs.size(), line);
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < options_.jobs; ++i) {
      workers.emplace_back([&] {
        while (const auto job = job_table.take())
          job_table.done(*job, run(options_, plan_.jobs[*job], *job, folder_of(*job), line));
      });
    }
    serve(job_table);
  }
  bool good = true;
  size_t ended = 0;
  for (size_t job = 0; job < plan_.jobs.size(); ++job) {
    good = good && job_table.without_failure(job);
    ended += job_table.ended(job) ? 1 : 0;
  }
  bool as_expected = true;
  if (Status done = report(job_table, as_expected); !done) {
    line.complain(done.error().message);
    good = false;
  }
  if (ended < plan_.jobs.size()) {
    line.complain("stopped: " + std::to_string(ended) + " of " + std::to_string(plan_.jobs.size()) +
                  " runs were complete; the results of the others were not written");
    return 130;
  }
  return good && as_expected ? 0 : 1;
}

// Why these options cannot be combined; empty if they can.
std::string conflict_of(const RunOptions& options, const Ranks& ranks) {
  if (options.ns3_results && ranks.count() > 1)
    return "--ns3-results requires one process; there are " + std::to_string(ranks.count());
  if (!options.real) return "";
  if (ranks.count() > 1)
    return "--real requires one process; " + std::to_string(ranks.count()) + " would delay each other";
  if (options.jobs > 1)
    return "--real executes one run at a time; " + std::to_string(options.jobs) +
           " jobs would delay each other";
  return "";
}

}  // namespace

int run_command(const RunOptions& options) {
  auto ranks = Ranks::join();
  if (!ranks) {
    std::fprintf(stderr, "roci-lab: %s\n", ranks.error().message.c_str());
    return 2;
  }
  if (const std::string why = conflict_of(options, *ranks); !why.empty()) {
    if (ranks->is_first()) std::fprintf(stderr, "roci-lab: %s\n", why.c_str());
    return 2;
  }
  catch_interrupts();
  if (!ranks->is_first()) {
    help(options, *ranks);
    return 0;
  }
  const auto plan = plan_jobs(options);
  const Status ready = plan ? prepare_output(options, *plan) : Status{fail(plan.error())};
  if (!ready) {
    std::fprintf(stderr, "roci-lab: %s\n", ready.error().message.c_str());
    dismiss(*ranks);
    return 2;
  }
  const int status = Lead(options, *plan, *ranks).run_all();
  std::error_code not_empty;
  fs::remove(output_folder(options), not_empty);  // if no run has results
  return status;
}

}  // namespace roci::lab
