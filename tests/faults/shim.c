/* Preloaded into a run: the n-th call of one kind on a file below one folder fails, or ends the process.
 *
 * It stands between every library of the process and libc, so that SQLite's and Polars' calls are met as
 * Python's are. `shim_arm` says what is to happen; until then nothing does, and calls are not counted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN, WRITE, FSYNC, RENAME, UNLINK, TRUNCATE, MKDIR, CHMOD, LOCK, KINDS };
enum { ONCE, LASTING, KILL, SHORT };

static char root[PATH_MAX], aside[PATH_MAX];
static atomic_int counts[KINDS];
static int armed, wanted, nth, number, mode;

void shim_arm(const char *below, const char *but, int kind, int n, int err, int how) {
  snprintf(root, sizeof root, "%s", below);
  snprintf(aside, sizeof aside, "%s", but);
  for (int i = 0; i < KINDS; i++) counts[i] = 0;
  wanted = kind, nth = n, number = err, mode = how, armed = 1;
}

void shim_disarm(void) { armed = 0; }
int shim_count(int kind) { return counts[kind]; }

static int below(const char *path, const char *folder) {
  size_t size = strlen(folder);
  return size && !strncmp(path, folder, size) && (path[size] == '/' || path[size] == 0);
}

static void whole(int at, const char *path, char *out) {
  char folder[PATH_MAX] = "", link[64];
  if (path && path[0] == '/') {
    snprintf(out, PATH_MAX, "%s", path);
    return;
  }
  if (at == AT_FDCWD) {
    if (!getcwd(folder, sizeof folder)) folder[0] = 0;
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t size = readlink(link, folder, sizeof folder - 1);
    folder[size > 0 ? size : 0] = 0;
  }
  if (path) {
    strncat(folder, "/", sizeof folder - strlen(folder) - 1);
    strncat(folder, path, sizeof folder - strlen(folder) - 1);
  }
  snprintf(out, PATH_MAX, "%s", folder);
}

/* 0: go on; 1: fail, errno is set; 2: do half of it. */
static int met(int kind, int at, const char *path) {
  char full[PATH_MAX];
  int saved = errno;
  if (!armed) return 0;
  whole(at, path, full);
  errno = saved;
  if (!below(full, root) || below(full, aside)) return 0;
  int count = ++counts[kind];
  if (kind != wanted || (mode == LASTING ? count < nth : count != nth)) return 0;
  if (mode == KILL) kill(getpid(), SIGKILL);
  if (mode == SHORT) return 2;
  errno = number;
  return 1;
}

#define REAL(name) ((typeof(&name))next_of(#name))
static void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }

#define OPENING(name)                                                  \
  int name(const char *path, int flags, ...) {                         \
    va_list more;                                                      \
    va_start(more, flags);                                             \
    mode_t given = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                      \
    return met(OPEN, AT_FDCWD, path) ? -1 : REAL(name)(path, flags, given); \
  }
#define OPENING_AT(name)                                               \
  int name(int at, const char *path, int flags, ...) {                 \
    va_list more;                                                      \
    va_start(more, flags);                                             \
    mode_t given = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                      \
    return met(OPEN, at, path) ? -1 : REAL(name)(at, path, flags, given); \
  }
OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

#define WRITING(name, more, size, given)                               \
  ssize_t name(int fd, const void *data, size_t size more) {           \
    int how = met(WRITE, fd, NULL);                                    \
    if (how == 1) return -1;                                           \
    if (how == 2 && size > 1) size /= 2;                               \
    return REAL(name)(fd, data, size given);                           \
  }
#define COMMA ,
WRITING(write, , size, )
WRITING(pwrite, COMMA off_t place, size, COMMA place)
WRITING(pwrite64, COMMA off64_t place, size, COMMA place)

ssize_t writev(int fd, const struct iovec *parts, int count) {
  return met(WRITE, fd, NULL) == 1 ? -1 : REAL(writev)(fd, parts, count);
}

#define BY_FD(name, kind) \
  int name(int fd) { return met(kind, fd, NULL) == 1 ? -1 : REAL(name)(fd); }
BY_FD(fsync, FSYNC)
BY_FD(fdatasync, FSYNC)

int ftruncate(int fd, off_t size) {
  return met(TRUNCATE, fd, NULL) == 1 ? -1 : REAL(ftruncate)(fd, size);
}
int ftruncate64(int fd, off64_t size) {
  return met(TRUNCATE, fd, NULL) == 1 ? -1 : REAL(ftruncate64)(fd, size);
}

int rename(const char *from, const char *to) {
  return met(RENAME, AT_FDCWD, to) == 1 ? -1 : REAL(rename)(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
  return met(RENAME, b, to) == 1 ? -1 : REAL(renameat)(a, from, b, to);
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  return met(RENAME, b, to) == 1 ? -1 : REAL(renameat2)(a, from, b, to, flags);
}

int unlink(const char *path) {
  return met(UNLINK, AT_FDCWD, path) == 1 ? -1 : REAL(unlink)(path);
}
int unlinkat(int at, const char *path, int flags) {
  return met(UNLINK, at, path) == 1 ? -1 : REAL(unlinkat)(at, path, flags);
}
int rmdir(const char *path) {
  return met(UNLINK, AT_FDCWD, path) == 1 ? -1 : REAL(rmdir)(path);
}

int mkdir(const char *path, mode_t given) {
  return met(MKDIR, AT_FDCWD, path) == 1 ? -1 : REAL(mkdir)(path, given);
}
int mkdirat(int at, const char *path, mode_t given) {
  return met(MKDIR, at, path) == 1 ? -1 : REAL(mkdirat)(at, path, given);
}

int chmod(const char *path, mode_t given) {
  return met(CHMOD, AT_FDCWD, path) == 1 ? -1 : REAL(chmod)(path, given);
}
int fchmod(int fd, mode_t given) {
  return met(CHMOD, fd, NULL) == 1 ? -1 : REAL(fchmod)(fd, given);
}
int fchmodat(int at, const char *path, mode_t given, int flags) {
  return met(CHMOD, at, path) == 1 ? -1 : REAL(fchmodat)(at, path, given, flags);
}

int flock(int fd, int how) {
  return met(LOCK, fd, NULL) == 1 ? -1 : REAL(flock)(fd, how);
}
