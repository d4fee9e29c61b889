/* Accesses the files of a device with every function that the path shim intercepts; prints the functions that fail. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/uverbs0"
#define SYS "/sys/class/infiniband/roci0"
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
  expect(realpath(SYS, path) != NULL, "realpath");

  int listed = 0;
  DIR* folder = opendir("/sys/class/infiniband");
  for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;)
    listed |= strcmp(entry->d_name, "roci0") == 0;
  if (folder != NULL) closedir(folder);
  expect(listed, "opendir");

  /* Paths that the shim does not redirect. */
  expect(stat("/dev/infiniband/uverbs7", &found) != 0, "no other device");
  expect(stat("/sys/class/infiniband/roci9", &found) != 0, "no other device in /sys");
  expect(stat("/dev/infinibandit", &found) != 0, "no other folder");
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
