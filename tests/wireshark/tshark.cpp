#include "wireshark/tshark.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

namespace roci::test {
namespace {

struct Done {
  int status = 0;
  std::string output;  // stdout and stderr
};

// Temporary home directory, so that installed scripts and preferences have no effect.
struct Home {
  std::string path = testing::TempDir() + "roci-wireshark-" + std::to_string(getpid());
  Home() {
    std::filesystem::create_directory(path);
    std::filesystem::copy(std::string(ROCI_SOURCE_DIR) + "/config/wireshark/roci.lua", path);
  }
  ~Home() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
};
const std::string& home() {
  static const Home home;
  return home.path;
}

Done run(const std::string& arguments) {
  // Wireshark 4.4 loads no Lua scripts for root.
  const std::string as_user =
      geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all " : "";
  const std::string command =
      "HOME=" + home() + " WIRESHARK_CONFIG_DIR=" + home() + " " + as_user + "tshark " + arguments + " 2>&1";
  Done done;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {.status = -1, .output = "no shell"};
  char part[1 << 16];
  for (size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) done.output.append(part, n);
  done.status = pclose(pipe);
  return done;
}

std::string with_script() {
  return " -X lua_script:" + home() + "/roci.lua ";  // the user may have no access to the source folder
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) out.push_back(part);
  return out;
}

std::string normal(const std::string& text) {
  if (text == "True") return "1";
  if (text == "False") return "0";
  if (text.starts_with("0x")) return std::to_string(std::stoull(text, nullptr, 16));
  return text;
}

}  // namespace

InstalledScript::InstalledScript() {
  const std::filesystem::path folder = home() + "/.local/lib/wireshark/plugins";
  std::filesystem::create_directories(folder);
  std::filesystem::copy(std::string(ROCI_SOURCE_DIR) + "/config/wireshark/roci.lua", folder / "roci.lua");
}
InstalledScript::~InstalledScript() {
  std::error_code ignored;
  std::filesystem::remove_all(home() + "/.local", ignored);
}

CaptureFile::CaptureFile(const std::string& name)
    : path_(testing::TempDir() + "roci-" + name + "-" + std::to_string(getpid()) + ".pcap") {
  const uint32_t header[] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 0xffff, 1};  // microseconds, Ethernet
  bytes_.resize(sizeof header);
  std::memcpy(bytes_.data(), header, sizeof header);
}

CaptureFile::~CaptureFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void CaptureFile::add(const Bytes& frame, size_t captured) {
  const auto kept = static_cast<uint32_t>(std::min(frame.size(), captured));
  const uint32_t header[] = {0, 0, kept, static_cast<uint32_t>(frame.size())};
  const size_t at = bytes_.size();
  bytes_.resize(at + sizeof header + kept);
  std::memcpy(bytes_.data() + at, header, sizeof header);
  if (kept > 0) std::memcpy(bytes_.data() + at + sizeof header, frame.data(), kept);
}

void CaptureFile::save() const {
  FILE* file = std::fopen(path_.c_str(), "wb");
  ASSERT_NE(file, nullptr) << path_;
  EXPECT_EQ(std::fwrite(bytes_.data(), 1, bytes_.size(), file), bytes_.size()) << path_;
  EXPECT_EQ(std::fclose(file), 0) << path_;
}

bool Tshark::is_usable() {
  static const std::string why = [] {
    const Done version = run("--version");
    if (version.status != 0) return "tshark is not installed; './roci deps' installs it\n" + version.output;
    const Done loaded = run("-G protocols" + with_script());
    if (loaded.output.find("Lua: Error") == std::string::npos &&
        loaded.output.find("\troci.l3cnm") != std::string::npos)
      return std::string();
    return "tshark does not take config/wireshark/roci.lua\n" + loaded.output.substr(0, 500);
  }();
  if (!why.empty()) ADD_FAILURE() << why;
  return why.empty();
}

const std::vector<std::string>& Tshark::own_fields() {
  static const std::vector<std::string> fields = [] {
    std::set<std::string> names;  // a field may be registered twice, for two kinds of hops
    for (const std::string& line : split(run("-G fields" + with_script()).output, '\n')) {
      if (line.find("\troci.") == std::string::npos) continue;
      const auto columns = split(line, '\t');  // F, label, filter name, type, …
      if (columns.size() > 3 && columns[0] == "F" && columns[2].starts_with("roci.") &&
          columns[3] != "FT_NONE")
        names.insert(columns[2]);
    }
    return std::vector<std::string>(names.begin(), names.end());
  }();
  return fields;
}

std::map<uint64_t, std::string> Tshark::value_names(const std::string& field) {
  std::map<uint64_t, std::string> names;
  for (const std::string& line : split(run("-G values" + with_script()).output, '\n')) {
    if (line.find(field) == std::string::npos) continue;
    const auto columns = split(line, '\t');  // V, filter name, value, name
    if (columns.size() > 3 && columns[0] == "V" && columns[1] == field)
      names[std::stoull(columns[2], nullptr, 0)] = columns[3];
  }
  return names;
}

std::vector<Reading> Tshark::read(const std::string& path, const std::vector<std::string>& fields) const {
  std::error_code ignored;  // of files that another user owns
  std::filesystem::permissions(path, std::filesystem::perms::others_read, std::filesystem::perm_options::add,
                               ignored);
  std::string arguments = "-n -r " + path + with_script() + options_ +
                          " -T fields -E separator=/t -E occurrence=a -E 'aggregator=;' -E header=y";
  for (const std::string& field : fields) arguments += " -e " + field;
  const Done done = run(arguments);
  EXPECT_TRUE(done.status == 0 && done.output.find("Lua: Error") == std::string::npos)
      << done.output.substr(0, 2000);
  std::vector<Reading> out;
  bool begun = false;  // after the heading line; stderr output precedes it
  for (const std::string& line : split(done.output, '\n')) {
    if (!begun) {
      begun = line.starts_with(fields.front());
      continue;
    }
    Reading& reading = out.emplace_back();
    const auto columns = split(line, '\t');
    for (size_t i = 0; i < columns.size() && i < fields.size(); ++i) {
      for (const std::string& value : split(columns[i], ';')) reading[fields[i]].push_back(normal(value));
    }
  }
  EXPECT_TRUE(begun) << done.output.substr(0, 2000);
  return out;
}

}  // namespace roci::test
