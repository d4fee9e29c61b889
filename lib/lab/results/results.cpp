#include "lab/results/results.hpp"

#include <hdf5.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

#include "lab/results/summary.hpp"
#include "roci/version.h"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;

constexpr const char *kSummary = "summary.json", *kRun = "run.json", *kSeries = "results.h5";
std::mutex hdf5;  // Debian's HDF5 is not thread-safe

// Identifier of an HDF5 object, closed by the destructor.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle& operator=(Handle&&) = delete;
  [[nodiscard]] hid_t get() const { return id_; }
  [[nodiscard]] bool good() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

constexpr unsigned kDeflate = 4;
constexpr hsize_t kChunk = 4096;
// An attribute in the header of an object has at most 64 KiB.
constexpr size_t kMaxAttribute = 60'000;

// One name per line; names have no line breaks.
std::string lines_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += name + "\n";
  return out;
}

bool put_text(hid_t object, const char* name, const std::string& text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), std::max<size_t>(text.size(), 1));
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  const std::string bytes = text.empty() ? std::string(1, '\0') : text;
  return attribute.good() && H5Awrite(attribute.get(), type.get(), bytes.data()) >= 0;
}

// Parts of the names are in the attributes `names`, `names1`, ...
std::string names_attribute(size_t part) { return "names" + (part == 0 ? "" : std::to_string(part)); }

bool put_names(hid_t object, const std::vector<std::string>& names) {
  const std::string lines = lines_of(names);
  size_t part = 0;
  do {
    const std::string text = lines.substr(part * kMaxAttribute, kMaxAttribute);
    if (!put_text(object, names_attribute(part).c_str(), text)) return false;
  } while (++part * kMaxAttribute < lines.size());
  return true;
}

// Writes one column, or rows of equal length. The creation time is not stored, so that equal runs give equal files.
Handle put(hid_t file, const char* name, hid_t type, const void* data, const std::vector<hsize_t>& size) {
  const Handle space(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
  const Handle how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(how.get(), false);
  if (std::ranges::all_of(size, [](hsize_t n) { return n > 0; })) {
    std::vector<hsize_t> chunk(size.size(), 1);
    chunk.back() = std::min(size.back(), kChunk);
    H5Pset_chunk(how.get(), static_cast<int>(chunk.size()), chunk.data());
    H5Pset_shuffle(how.get());
    H5Pset_deflate(how.get(), kDeflate);
  }
  Handle set(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, how.get(), H5P_DEFAULT), H5Dclose);
  if (set.good() && H5Dwrite(set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) return {-1, H5Dclose};
  return set;
}

bool put_series(hid_t file, const char* name, const Series& series) {
  const size_t columns = series.values.size();
  const size_t length = columns == 0 ? 0 : series.values.front().size();
  std::vector<float> all;
  all.reserve(columns * length);
  for (const auto& column : series.values)
    for (const double value : column) all.push_back(static_cast<float>(value));
  const Handle set = put(file, name, H5T_NATIVE_FLOAT, all.data(), {columns, length});
  return set.good() && put_names(set.get(), series.names) && put_text(set.get(), "unit", series.unit);
}

template <class Value, class Rows, class Get>
bool put_column(hid_t file, const char* name, hid_t type, const Rows& rows, Get&& get) {
  std::vector<Value> column;
  column.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) column.push_back(static_cast<Value>(get(i)));
  return put(file, name, type, column.data(), {column.size()}).good();
}

bool put_flows(hid_t file, const Measurements& of) {
  const Handle group(H5Gcreate2(file, "flows", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  const auto& plans = of.plan.flows;
  const hid_t in = group.get();
  return put_column<uint32_t>(in, "traffic", H5T_NATIVE_UINT32, plans,
                              [&](size_t i) { return plans[i].traffic; }) &&
         put_column<uint32_t>(in, "from", H5T_NATIVE_UINT32, plans,
                              [&](size_t i) { return plans[i].from; }) &&
         put_column<uint32_t>(in, "to", H5T_NATIVE_UINT32, plans, [&](size_t i) { return plans[i].to; }) &&
         put_column<uint64_t>(in, "bytes", H5T_NATIVE_UINT64, plans,
                              [&](size_t i) { return plans[i].bytes; }) &&
         put_column<int64_t>(in, "start_ns", H5T_NATIVE_INT64, plans,
                             [&](size_t i) { return plans[i].start.count(); }) &&
         put_column<int64_t>(
             in, "end_ns", H5T_NATIVE_INT64, plans,
             [&](size_t i) { return of.flows[i].end == kNever ? -1 : of.flows[i].end.count(); }) &&
         put_column<double>(in, "ideal_ns", H5T_NATIVE_DOUBLE, plans, [&](size_t i) { return of.ideal[i]; });
}

bool put_loops(hid_t file, const Measurements& of) {
  const Handle group(H5Gcreate2(file, "loops", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  const auto& loops = of.loops;
  const hid_t in = group.get();
  return put_column<uint32_t>(in, "loop", H5T_NATIVE_UINT32, loops,
                              [&](size_t i) { return loops[i].loop; }) &&
         put_column<uint64_t>(in, "bytes", H5T_NATIVE_UINT64, loops,
                              [&](size_t i) { return loops[i].bytes; }) &&
         put_column<int64_t>(in, "start_ns", H5T_NATIVE_INT64, loops,
                             [&](size_t i) { return loops[i].start.count(); }) &&
         put_column<int64_t>(in, "end_ns", H5T_NATIVE_INT64, loops,
                             [&](size_t i) { return loops[i].end.count(); });
}

Status make_folder(const std::string& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return fail("'" + folder + "' cannot be created: " + failure.message());
  return {};
}

// Bytes of names that are not UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// An incomplete file is removed.
Status write_text(const fs::path& path, const std::string& text) {
  std::ofstream out{path, std::ios::binary};
  out << text;
  out.close();
  if (out) return {};
  const int code = errno;
  std::error_code ignored;
  fs::remove(path, ignored);
  return fail("'" + path.string() + "' cannot be written: " + std::generic_category().message(code), code);
}

// The content of results.h5. The file is made in memory, because HDF5 does not recover from a write error.
Result<std::string> series_file(const Measurements& of) {
  const std::lock_guard lock(hdf5);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // disables the error output of HDF5
  constexpr size_t kIncrement = 1U << 20;
  const Handle in_memory(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(in_memory.get(), kIncrement, false);
  const Handle file(H5Fcreate(kSeries, H5F_ACC_TRUNC, H5P_DEFAULT, in_memory.get()), H5Fclose);
  const auto failed = [] { return fail("HDF5 cannot encode the results", ENOMEM); };
  if (!file.good() || !put_series(file.get(), "queue_most", of.queue_most) ||
      !put_series(file.get(), "queue_mean", of.queue_mean) ||
      !put_series(file.get(), "goodput", of.goodput) || !put_flows(file.get(), of) ||
      !put_loops(file.get(), of) || H5Fflush(file.get(), H5F_SCOPE_GLOBAL) < 0)
    return failed();
  const ssize_t size = H5Fget_file_image(file.get(), nullptr, 0);
  if (size < 0) return failed();
  std::string bytes(static_cast<size_t>(size), '\0');
  if (H5Fget_file_image(file.get(), bytes.data(), bytes.size()) != size) return failed();
  return bytes;
}

Result<std::string> read_text(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in)
    return fail("'" + path.string() + "' cannot be read; a folder with the results of a run is required");
  return text.str();
}

Result<nlohmann::ordered_json> read_json(const fs::path& path) {
  auto text = read_text(path);
  if (!text) return fail(text.error());
  auto json = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (json.is_discarded()) return fail("'" + path.string() + "' is not JSON");
  return json;
}

std::string get_text(hid_t object, const char* name) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.good()) return "";
  const Handle type(H5Aget_type(attribute.get()), H5Tclose);
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) return "";
  return text == std::string(1, '\0') ? "" : text;
}

bool get_series(hid_t file, const char* name, Series& out) {
  const Handle set(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
  if (!set.good()) return false;
  const Handle space(H5Dget_space(set.get()), H5Sclose);
  std::array<hsize_t, 2> size{};
  if (H5Sget_simple_extent_ndims(space.get()) != 2 ||
      H5Sget_simple_extent_dims(space.get(), size.data(), nullptr) != 2)
    return false;
  std::vector<float> all(size[0] * size[1]);
  if (!all.empty() && H5Dread(set.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()) < 0)
    return false;
  out.unit = get_text(set.get(), "unit");
  std::string text;
  for (size_t part = 0; H5Aexists(set.get(), names_attribute(part).c_str()) > 0; ++part)
    text += get_text(set.get(), names_attribute(part).c_str());
  std::istringstream names{text};
  for (std::string line; std::getline(names, line);) out.names.push_back(line);
  out.values.assign(size[0], {});
  for (size_t column = 0; column < size[0]; ++column) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(column * size[1]);
    out.values[column].assign(from, from + static_cast<std::ptrdiff_t>(size[1]));
  }
  return out.names.size() == out.values.size();
}

template <class Value>
bool get_column(hid_t file, const char* name, hid_t type, std::vector<Value>& out) {
  const Handle set(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
  if (!set.good()) return false;
  const Handle space(H5Dget_space(set.get()), H5Sclose);
  const hssize_t size = H5Sget_simple_extent_npoints(space.get());
  if (size < 0) return false;
  out.resize(static_cast<size_t>(size));
  return out.empty() || H5Dread(set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) >= 0;
}

bool get_flows(hid_t file, std::vector<StoredFlow>& out) {
  std::vector<uint64_t> bytes;
  std::vector<int64_t> starts;
  std::vector<double> ideals;
  if (!get_column(file, "flows/bytes", H5T_NATIVE_UINT64, bytes) ||
      !get_column(file, "flows/start_ns", H5T_NATIVE_INT64, starts) ||
      !get_column(file, "flows/ideal_ns", H5T_NATIVE_DOUBLE, ideals) || starts.size() != bytes.size() ||
      ideals.size() != bytes.size())
    return false;
  for (size_t i = 0; i < bytes.size(); ++i) out.push_back({bytes[i], Nanos{starts[i]}, ideals[i]});
  return true;
}

void put_real(nlohmann::ordered_json& run, const RealRun& of) {
  run["late"] = {{"mean_ns", to_digits(of.late.mean_ns, 4)},
                 {"p99_ns", of.late.p99_ns},
                 {"most_ns", of.late.most_ns},
                 {"much_ns", ScheduleLag::kMuch.count()},
                 {"part_of_time_late_by_much", to_digits(of.late.part, 4)}};
  nlohmann::ordered_json ports = nlohmann::ordered_json::array();
  for (const RealPortCounts& port : of.ports)
    ports.push_back({{"cable", port.cable},
                     {"device", port.device},
                     {"rx_packets", port.rx_packets},
                     {"tx_packets", port.tx_packets},
                     {"rx_missed", port.rx_missed},
                     {"dropped", port.dropped}});
  run["ports"] = std::move(ports);
}

}  // namespace

Status write_results(const std::string& folder, const Scenario& scenario, const RunInfo& info,
                     const Measurements& of) {
  ROCI_TRY(make_folder(folder));
  const fs::path path(folder);
  ROCI_TRY(write_text(path / kSummary, json_text(of.summary) + "\n"));
  nlohmann::ordered_json run = {{"name", info.name},
                                {"file", scenario.file},
                                {"about", scenario.about},
                                {"source", scenario.source},
                                {"command", info.command},
                                {"version", ROCI_VERSION},
                                {"threads", info.threads},
                                {"seconds", of.seconds},
                                {"packet_hops", of.packet_hops},
                                {"bin_ns", of.bin.count()},
                                {"mode", of.real ? "real" : "virtual"}};
  if (of.real) put_real(run, *of.real);
  ROCI_TRY(write_text(path / kRun, json_text(run) + "\n"));
  auto series = series_file(of);
  if (!series) return fail(series.error().within((path / kSeries).string()));
  return write_text(path / kSeries, *series);
}

Result<nlohmann::ordered_json> read_files(const std::string& folder) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const char* name : {kSummary, kRun, kSeries}) {
    auto text = read_text(fs::path(folder) / name);
    if (!text) return fail(text.error());
    out[name] = nlohmann::ordered_json::binary({text->begin(), text->end()});
  }
  return out;
}

Status write_files(const std::string& folder, const nlohmann::ordered_json& files) {
  ROCI_TRY(make_folder(folder));
  for (const char* name : {kSummary, kRun, kSeries}) {
    const auto& bytes = files.at(name).get_binary();
    ROCI_TRY(write_text(fs::path(folder) / name, {bytes.begin(), bytes.end()}));
  }
  return {};
}

Result<StoredRun> read_results(const std::string& folder) {
  StoredRun out;
  auto summary = read_json(fs::path(folder) / kSummary);
  if (!summary) return fail(summary.error());
  auto run = read_json(fs::path(folder) / kRun);
  if (!run) return fail(run.error());
  out.summary = std::move(*summary);
  out.run = std::move(*run);
  out.bin = Nanos{out.run.value("bin_ns", int64_t{0})};
  const std::string file_name = (fs::path(folder) / kSeries).string();
  const std::lock_guard lock(hdf5);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // disables the error output of HDF5
  const Handle file(H5Fopen(file_name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file.good() || !get_series(file.get(), "queue_most", out.queue_most) ||
      !get_series(file.get(), "queue_mean", out.queue_mean) ||
      !get_series(file.get(), "goodput", out.goodput) || !get_flows(file.get(), out.flows))
    return fail("'" + file_name + "' does not contain the results of a run");
  return out;
}

}  // namespace roci::lab
