/* Accesses the files of a device with every function that the path shim intercepts; prints the functions that fail. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/uverbs0"
#define SYS "/sys/class/infiniband/roci0"
#define PCI "/sys/devices/pciffff:00/ffff:00:00.0"
#define TYPE SYS "/ports/1/gid_attrs/types/1"

/* On some machines it is a symbolic link to /dev/null, which is accepted too. */
#define IS_THERE(mode) (S_ISCHR(mode) || S_ISLNK(mode))

static int missed;

static void expect(int found, const char* what) {
  if (found) return;
  printf("missed: %s\n", what);
  ++missed;
}

static int holds(FILE* file, const char* text) {
  char line[64] = "";
  if (file == NULL) return 0;
  const int good = fgets(line, sizeof line, file) != NULL && strcmp(line, text) == 0;
  fclose(file);
  return good;
}

static int opens(int fd) {
  if (fd < 0) return 0;
  close(fd);
  return 1;
}

static int is_path(const char* path, const char* wanted) { return path != NULL && strcmp(path, wanted) == 0; }

/* Whether a call of the kind of readlink has returned this target. */
static int is_link(const char* target, ssize_t length, const char* wanted) {
  return length == (ssize_t)strlen(wanted) && memcmp(target, wanted, strlen(wanted)) == 0;
}

/* The calls with _FORTIFY_SOURCE. */
ssize_t __readlink_chk(const char* path, char* out, size_t size, size_t capacity);
ssize_t __readlinkat_chk(int folder, const char* path, char* out, size_t size, size_t capacity);

static volatile sig_atomic_t opened_by_handler;

static void open_file(int signal) {
  (void)signal;
  struct stat found;
  opened_by_handler = opens(openat(AT_FDCWD, "/proc/self/maps", O_RDONLY)) && stat("/dev/null", &found) == 0;
}

/* Calls of a signal handler with 3 KiB of stack, below which is an inaccessible page. */
static int works_on_small_stack(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 3072;
  char* memory = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) return 0;
  const stack_t stack = {.ss_sp = memory + page, .ss_size = size};
  const stack_t none = {.ss_flags = SS_DISABLE};
  struct sigaction action = {.sa_handler = open_file, .sa_flags = SA_ONSTACK};
  const int done = sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0 &&
                   raise(SIGUSR1) == 0 && opened_by_handler;
  sigaltstack(&none, NULL);
  munmap(memory, page + size);
  return done;
}

int main(void) {
  struct stat found;
  struct stat64 found64;
  struct statx foundx;
  char path[PATH_MAX];
  expect(stat(DEVICE, &found) == 0 && S_ISCHR(found.st_mode), "stat");
  expect(lstat(DEVICE, &found) == 0 && IS_THERE(found.st_mode), "lstat");
  expect(stat64(DEVICE, &found64) == 0 && S_ISCHR(found64.st_mode), "stat64");
  expect(lstat64(DEVICE, &found64) == 0 && IS_THERE(found64.st_mode), "lstat64");
  expect(fstatat(AT_FDCWD, DEVICE, &found, 0) == 0 && S_ISCHR(found.st_mode), "fstatat");
  expect(fstatat64(AT_FDCWD, DEVICE, &found64, 0) == 0 && S_ISCHR(found64.st_mode), "fstatat64");
  expect(statx(AT_FDCWD, DEVICE, 0, STATX_TYPE, &foundx) == 0 && S_ISCHR(foundx.stx_mode), "statx");
  expect(access(DEVICE, R_OK | W_OK) == 0, "access");
  expect(eaccess(DEVICE, R_OK | W_OK) == 0, "eaccess");
  expect(faccessat(AT_FDCWD, DEVICE, R_OK | W_OK, 0) == 0, "faccessat");
  expect(opens(open(DEVICE, O_RDWR)), "open");
  expect(opens(open64(DEVICE, O_RDWR)), "open64");
  expect(opens(openat(AT_FDCWD, DEVICE, O_RDWR)), "openat");
  expect(opens(openat64(AT_FDCWD, DEVICE, O_RDWR)), "openat64");
  expect(holds(fopen(TYPE, "r"), "RoCE v2\n"), "fopen");
  expect(holds(fopen64(TYPE, "r"), "RoCE v2\n"), "fopen64");
  expect(holds(fopen(SYS "/device/numa_node", "r"), "-1\n"), "numa_node");
  expect(holds(fopen(SYS "/ports/1/gid_attrs/ndevs/0", "r"), "lo\n"), "ndevs");

  /* The virtual PCI function, with the domain of a machine that does not have the domain 0xffff. */
  const int root = open("/", O_PATH | O_DIRECTORY);
  expect(is_path(realpath(SYS, path), PCI "/infiniband/roci0"), "realpath");
  expect(is_path(realpath(SYS "/device", path), PCI), "realpath of device");
  expect(is_path(realpath("/sys/bus/pci/devices/ffff:00:00.0", path), PCI), "realpath of the bus's link");
  expect(is_path(realpath("/sys/class/pci_bus/ffff:00/../../ffff:00:00.0", path), PCI),
         "path through the bus");
  char* made_path = canonicalize_file_name(SYS "/device");
  expect(is_path(made_path, PCI), "canonicalize_file_name");
  free(made_path);
  expect(is_path(realpath("/sys/class/../class", path), "/sys/class"), "realpath of other paths");
  expect(is_link(path, readlink(SYS "/device", path, sizeof path - 1), "../../../ffff:00:00.0"), "readlink");
  expect(is_link(path, readlinkat(AT_FDCWD, SYS "/device", path, sizeof path - 1), "../../../ffff:00:00.0"),
         "readlinkat");
  expect(is_link(path, readlinkat(root, SYS "/device" + 1, path, sizeof path - 1), "../../../ffff:00:00.0"),
         "readlinkat from the root folder");
  expect(is_link(path, __readlink_chk(SYS "/device", path, sizeof path - 1, sizeof path),
                 "../../../ffff:00:00.0"),
         "__readlink_chk");
  expect(is_link(path, __readlinkat_chk(root, SYS "/device" + 1, path, sizeof path - 1, sizeof path),
                 "../../../ffff:00:00.0"),
         "__readlinkat_chk");
  expect(opens(openat(root, PCI "/class" + 1, O_RDONLY)), "openat from the root folder");
  expect(fstatat(root, PCI "/vendor" + 1, &found, 0) == 0 && S_ISREG(found.st_mode),
         "fstatat from the root folder");
  expect(lstat(SYS "/device", &found) == 0 && S_ISLNK(found.st_mode), "device is a link");
  expect(holds(fopen(SYS "/device/vendor", "r"), "0xffff\n"), "vendor");
  expect(holds(fopen(PCI "/device", "r"), "0x0000\n"), "device");
  expect(holds(fopen("/sys/bus/pci/devices/ffff:00:00.0/class", "r"), "0x020000\n"), "class");
  expect(access(PCI "/local_cpus", R_OK) == 0 && access(PCI "/local_cpulist", R_OK) == 0, "local_cpus");

  int listed = 0;
  DIR* folder = opendir("/sys/class/infiniband");
  for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;)
    listed |= strcmp(entry->d_name, "roci0") == 0;
  if (folder != NULL) closedir(folder);
  expect(listed, "opendir");

  expect(works_on_small_stack(), "calls of a signal handler");

  /* Paths that the shim does not redirect. */
  expect(stat("/dev/infiniband/uverbs7", &found) != 0, "no other device");
  expect(stat("/sys/class/infiniband/roci9", &found) != 0, "no other device in /sys");
  expect(stat("/dev/infinibandit", &found) != 0, "no other folder");
  expect(stat("/sys/devices/pciffff:00/ffff:00:01.0", &found) != 0, "no other PCI function");
  expect(fstatat(open("/dev", O_PATH), PCI + 1, &found, 0) != 0, "a folder that is not the root folder");
  int has_function = 0;
  folder = opendir("/sys/bus/pci/devices");
  for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;)
    has_function |= strcmp(entry->d_name, "ffff:00:00.0") == 0;
  if (folder != NULL) closedir(folder);
  expect(!has_function, "the PCI bus lists the machine's functions only");
  expect(stat("/dev/null", &found) == 0 && S_ISCHR(found.st_mode), "others as they are");
  snprintf(path, sizeof path, "%s/made", getenv("LOOK_FOLDER") == NULL ? "/tmp" : getenv("LOOK_FOLDER"));
  const int made = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
  expect(made >= 0 && fstat(made, &found) == 0 && (found.st_mode & 0777) == 0640,
         "open makes files with their mode");
  if (made >= 0) close(made);
  unlink(path);
  if (missed == 0) puts("all found");
  return missed;
}
