/* Path shim: shows a Rocinante device in /dev/infiniband and /sys/class/infiniband to the process into which it is
 * preloaded, without root and without changing these folders. Some programs (UCX) check for a device's files in
 * addition to libibverbs, and ignore devices without files.
 *
 * ROCI_PATHS is a tree with `sys/class/infiniband/NAME` and `dev/infiniband/NAME`. NAME is a symbolic link to the
 * device below a virtual PCI function in `sys/devices/pciDOMAIN:00`; `sys/bus/pci/devices` and `sys/class/pci_bus` have
 * links to it, as on a real machine. A path in one of these folders is redirected if the tree contains it and the real
 * path does not exist or is not accessible. The folders themselves are redirected only in /sys/class/infiniband and
 * /dev/infiniband, so that programs which list the PCI bus see the bus of the machine. Paths in /sys are redirected into
 * the tree. Paths in /dev are redirected to /dev/null, a character device that can be read and written. Existing
 * accessible files stay visible.
 *
 * Relative paths are redirected only if they are relative to a descriptor of the root folder (hwloc). realpath() returns
 * paths in the tree without the folder of the tree. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char kSys[] = "/sys/class/infiniband";
static const char kDev[] = "/dev/infiniband";
/* Prefixes of the paths of the virtual PCI function. */
static const char* const kPci[] = {"/sys/devices/pci", "/sys/bus/pci/devices/", "/sys/class/pci_bus/"};

/* Does not call access(), which this file replaces. */
static int may(const char* path, int mode) { return syscall(SYS_faccessat, AT_FDCWD, path, mode) == 0; }

static int is_below(const char* path, const char* folder, size_t length) {
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static int is_in_pci(const char* path) {
  for (size_t i = 0; i < sizeof kPci / sizeof kPci[0]; ++i) {
    const size_t length = strlen(kPci[i]);
    if (strncmp(path, kPci[i], length) == 0 && path[length] != '\0') return 1;
  }
  return 0;
}

static const char* tree_folder(void) {
  const char* tree = secure_getenv("ROCI_PATHS");
  return tree == NULL || tree[0] == '\0' ? NULL : tree;
}

static int is_in_sys(const char* path) { return is_below(path, kSys, sizeof kSys - 1) || is_in_pci(path); }

/* Whether the path may be redirected. */
static int is_absolute_candidate(const char* path) {
  return path != NULL && path[0] == '/' && (is_in_sys(path) || is_below(path, kDev, sizeof kDev - 1));
}
static int is_candidate(const char* path) {
  return path != NULL && (path[0] == '/' ? is_absolute_candidate(path)
                                         : strncmp(path, "sys/", 4) == 0 || strncmp(path, "dev/", 4) == 0);
}

/* Returns the path to use: `path`, "/dev/null", or a path in `buffer`, which has PATH_MAX bytes if the path is a
 * candidate. Does not change errno. */
static const char* redirect(const char* path, char* buffer) {
  if (!is_absolute_candidate(path)) return path;
  const int in_sys = is_in_sys(path);
  const int in_dev = !in_sys;
  const char* tree = tree_folder();
  if (tree == NULL) return path;
  const int before = errno;
  const char* instead = path;
  if (!may(path, in_sys ? R_OK : R_OK | W_OK)) {
    const int length = snprintf(buffer, PATH_MAX, "%s%s", tree, path);
    if (length > 0 && length < PATH_MAX && may(buffer, F_OK)) {
      const int is_device = in_dev && path[sizeof kDev - 1] == '/' && path[sizeof kDev] != '\0';
      instead = is_device ? "/dev/null" : buffer;
    }
  }
  errno = before;
  return instead;
}

static int is_root(int folder) {
  struct stat one, root;
  return syscall(SYS_newfstatat, folder, "", &one, AT_EMPTY_PATH) == 0 &&
         syscall(SYS_newfstatat, AT_FDCWD, "/", &root, 0) == 0 && one.st_dev == root.st_dev &&
         one.st_ino == root.st_ino;
}

__attribute__((noinline)) static const char* redirect_relative(int folder, const char* path, char* buffer) {
  char absolute[PATH_MAX];
  const int before = errno;
  const int length = snprintf(absolute, sizeof absolute, "/%s", path);
  const int below_root = length > 0 && length < PATH_MAX && tree_folder() != NULL && is_root(folder);
  errno = before;
  if (!below_root) return path;
  const char* instead = redirect(absolute, buffer);
  return instead == absolute ? path : instead;
}

/* The same for a path relative to `folder`. */
static const char* redirect_at(int folder, const char* path, char* buffer) {
  if (folder < 0 || !is_candidate(path) || path[0] == '/') return redirect(path, buffer);
  return redirect_relative(folder, path, buffer);
}

/* The replaced functions of libc. */
/* clang-format off */
#define FUNCTIONS(X) \
  X(stat) X(stat64) X(lstat) X(lstat64) X(fstatat) X(fstatat64) X(statx) X(__xstat) \
  X(__xstat64) X(__lxstat) X(__lxstat64) X(access) X(eaccess) X(euidaccess) X(faccessat) \
  X(open) X(open64) X(openat) X(openat64) X(__open_2) X(__open64_2) X(__openat_2) \
  X(__openat64_2) X(readlink) X(readlinkat) X(__readlink_chk) X(__readlinkat_chk) X(getxattr) \
  X(lgetxattr) X(listxattr) X(llistxattr) X(fopen) X(fopen64) X(opendir) X(realpath) \
  X(__realpath_chk)
/* clang-format on */

#define INDEX(name) k_##name,
#define NAME(name) #name,
enum { FUNCTIONS(INDEX) kFunctions };
static const char* const kNames[] = {FUNCTIONS(NAME)};
static void* functions[kFunctions];

static void* function(unsigned index) {
  if (functions[index] == NULL) functions[index] = dlsym(RTLD_NEXT, kNames[index]);
  return functions[index];
}

/* Programs call these functions in signal handlers, in which dlsym() is not permitted. Constructors of other libraries
 * may call them before this one. */
__attribute__((constructor)) static void find_functions(void) {
  for (unsigned index = 0; index < kFunctions; ++index) (void)function(index);
  (void)dlerror(); /* of functions that this libc does not have */
}

/* Declares libc's function of this name, and a buffer of PATH_MAX bytes if `path` is a candidate: signal handlers, and
 * threads of languages with small stacks, have few KiB of stack. */
#define REAL(result, name, ...)               \
  void* const found = function(k_##name);     \
  if (found == NULL) {                        \
    errno = ENOSYS;                           \
    return FAILED;                            \
  }                                           \
  result (*real)(__VA_ARGS__);                \
  memcpy((void*)&real, &found, sizeof found); \
  char buffer[is_candidate(path) ? PATH_MAX : 1]

#define FAILED (-1)

EXPORT int stat(const char* path, struct stat* out) {
  REAL(int, stat, const char*, struct stat*);
  return real(redirect(path, buffer), out);
}
EXPORT int stat64(const char* path, struct stat64* out) {
  REAL(int, stat64, const char*, struct stat64*);
  return real(redirect(path, buffer), out);
}
EXPORT int lstat(const char* path, struct stat* out) {
  REAL(int, lstat, const char*, struct stat*);
  return real(redirect(path, buffer), out);
}
EXPORT int lstat64(const char* path, struct stat64* out) {
  REAL(int, lstat64, const char*, struct stat64*);
  return real(redirect(path, buffer), out);
}
EXPORT int fstatat(int folder, const char* path, struct stat* out, int flags) {
  REAL(int, fstatat, int, const char*, struct stat*, int);
  return real(folder, redirect_at(folder, path, buffer), out, flags);
}
EXPORT int fstatat64(int folder, const char* path, struct stat64* out, int flags) {
  REAL(int, fstatat64, int, const char*, struct stat64*, int);
  return real(folder, redirect_at(folder, path, buffer), out, flags);
}
EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* out) {
  REAL(int, statx, int, const char*, int, unsigned, struct statx*);
  return real(folder, redirect_at(folder, path, buffer), flags, mask, out);
}
/* Used by programs that were built with a glibc before 2.33. */
EXPORT int __xstat(int version, const char* path, struct stat* out) {
  REAL(int, __xstat, int, const char*, struct stat*);
  return real(version, redirect(path, buffer), out);
}
EXPORT int __xstat64(int version, const char* path, struct stat64* out) {
  REAL(int, __xstat64, int, const char*, struct stat64*);
  return real(version, redirect(path, buffer), out);
}
EXPORT int __lxstat(int version, const char* path, struct stat* out) {
  REAL(int, __lxstat, int, const char*, struct stat*);
  return real(version, redirect(path, buffer), out);
}
EXPORT int __lxstat64(int version, const char* path, struct stat64* out) {
  REAL(int, __lxstat64, int, const char*, struct stat64*);
  return real(version, redirect(path, buffer), out);
}

EXPORT int access(const char* path, int mode) {
  REAL(int, access, const char*, int);
  return real(redirect(path, buffer), mode);
}
EXPORT int eaccess(const char* path, int mode) {
  REAL(int, eaccess, const char*, int);
  return real(redirect(path, buffer), mode);
}
EXPORT int euidaccess(const char* path, int mode) {
  REAL(int, euidaccess, const char*, int);
  return real(redirect(path, buffer), mode);
}
EXPORT int faccessat(int folder, const char* path, int mode, int flags) {
  REAL(int, faccessat, int, const char*, int, int);
  return real(folder, redirect_at(folder, path, buffer), mode, flags);
}

/* open() has a third argument if it may create a file. */
#define MODE_BEHIND(flags)                                          \
  mode_t mode = 0;                                                  \
  if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    mode = va_arg(more, mode_t);                                    \
    va_end(more);                                                   \
  }

EXPORT int open(const char* path, int flags, ...) {
  REAL(int, open, const char*, int, ...);
  MODE_BEHIND(flags)
  return real(redirect(path, buffer), flags, mode);
}
EXPORT int open64(const char* path, int flags, ...) {
  REAL(int, open64, const char*, int, ...);
  MODE_BEHIND(flags)
  return real(redirect(path, buffer), flags, mode);
}
EXPORT int openat(int folder, const char* path, int flags, ...) {
  REAL(int, openat, int, const char*, int, ...);
  MODE_BEHIND(flags)
  return real(folder, redirect_at(folder, path, buffer), flags, mode);
}
EXPORT int openat64(int folder, const char* path, int flags, ...) {
  REAL(int, openat64, int, const char*, int, ...);
  MODE_BEHIND(flags)
  return real(folder, redirect_at(folder, path, buffer), flags, mode);
}
/* Variants of the calls above with _FORTIFY_SOURCE. */
EXPORT int __open_2(const char* path, int flags) {
  REAL(int, __open_2, const char*, int);
  return real(redirect(path, buffer), flags);
}
EXPORT int __open64_2(const char* path, int flags) {
  REAL(int, __open64_2, const char*, int);
  return real(redirect(path, buffer), flags);
}

EXPORT int __openat_2(int folder, const char* path, int flags) {
  REAL(int, __openat_2, int, const char*, int);
  return real(folder, redirect_at(folder, path, buffer), flags);
}
EXPORT int __openat64_2(int folder, const char* path, int flags) {
  REAL(int, __openat64_2, int, const char*, int);
  return real(folder, redirect_at(folder, path, buffer), flags);
}

EXPORT ssize_t readlink(const char* path, char* out, size_t size) {
  REAL(ssize_t, readlink, const char*, char*, size_t);
  return real(redirect(path, buffer), out, size);
}
EXPORT ssize_t readlinkat(int folder, const char* path, char* out, size_t size) {
  REAL(ssize_t, readlinkat, int, const char*, char*, size_t);
  return real(folder, redirect_at(folder, path, buffer), out, size);
}

EXPORT ssize_t __readlink_chk(const char* path, char* out, size_t size, size_t capacity) {
  REAL(ssize_t, __readlink_chk, const char*, char*, size_t, size_t);
  return real(redirect(path, buffer), out, size, capacity);
}
EXPORT ssize_t __readlinkat_chk(int folder, const char* path, char* out, size_t size, size_t capacity) {
  REAL(ssize_t, __readlinkat_chk, int, const char*, char*, size_t, size_t);
  return real(folder, redirect_at(folder, path, buffer), out, size, capacity);
}

/* `ls -l` calls these for each file. */
EXPORT ssize_t getxattr(const char* path, const char* name, void* out, size_t size) {
  REAL(ssize_t, getxattr, const char*, const char*, void*, size_t);
  return real(redirect(path, buffer), name, out, size);
}
EXPORT ssize_t lgetxattr(const char* path, const char* name, void* out, size_t size) {
  REAL(ssize_t, lgetxattr, const char*, const char*, void*, size_t);
  return real(redirect(path, buffer), name, out, size);
}
EXPORT ssize_t listxattr(const char* path, char* out, size_t size) {
  REAL(ssize_t, listxattr, const char*, char*, size_t);
  return real(redirect(path, buffer), out, size);
}
EXPORT ssize_t llistxattr(const char* path, char* out, size_t size) {
  REAL(ssize_t, llistxattr, const char*, char*, size_t);
  return real(redirect(path, buffer), out, size);
}

#undef FAILED
#define FAILED NULL

EXPORT FILE* fopen(const char* path, const char* mode) {
  REAL(FILE*, fopen, const char*, const char*);
  return real(redirect(path, buffer), mode);
}
EXPORT FILE* fopen64(const char* path, const char* mode) {
  REAL(FILE*, fopen64, const char*, const char*);
  return real(redirect(path, buffer), mode);
}
EXPORT DIR* opendir(const char* path) {
  REAL(DIR*, opendir, const char*);
  return real(redirect(path, buffer));
}

EXPORT char* realpath(const char* path, char* out);

/* Removes the folder of the tree from a result of realpath(), so that it is the path on a real machine. */
static char* without_tree(char* path) {
  char root[PATH_MAX];
  const char* tree = tree_folder();
  if (path == NULL || tree == NULL || realpath(tree, root) == NULL) return path;
  const size_t length = strlen(root);
  if (strncmp(path, root, length) == 0 && path[length] == '/')
    memmove(path, path + length, strlen(path + length) + 1);
  return path;
}

EXPORT char* realpath(const char* path, char* out) {
  REAL(char*, realpath, const char*, char*);
  const char* instead = redirect(path, buffer);
  char* result = real(instead, out);
  return instead == path ? result : without_tree(result);
}
EXPORT char* __realpath_chk(const char* path, char* out, size_t size) {
  REAL(char*, __realpath_chk, const char*, char*, size_t);
  const char* instead = redirect(path, buffer);
  char* result = real(instead, out, size);
  return instead == path ? result : without_tree(result);
}
EXPORT char* canonicalize_file_name(const char* path) { return realpath(path, NULL); }
