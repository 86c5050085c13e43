/* Preloaded into a run: everything that changes a file below one folder is written down, with its bytes.
 *
 * A record is a letter (C create, W write, T truncate, S sync, R rename, U unlink), four numbers (place,
 * length of the path, of a second path, of the data), and those bytes. Maps of memory are not seen:
 * SQLite keeps in them only what it can make again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

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
  snprintf(out, PATH_MAX, "%.*s%s%s", PATH_MAX / 2, folder, path ? "/" : "", path ? path : "");
}

static void note(char what, const char *path, const char *other, int64_t place, const void *data,
                 int64_t size) {
  static int journal = -1;
  const char *root = getenv("JOURNAL_ROOT");
  int saved = errno;
  if (!root || strncmp(path, root, strlen(root))) return;
  if (journal < 0) journal = REAL(open)(getenv("JOURNAL"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  int64_t head[4] = {place, (int64_t)strlen(path), (int64_t)strlen(other), size};
  REAL(write)(journal, &what, 1);
  REAL(write)(journal, head, sizeof head);
  REAL(write)(journal, path, head[1]);
  REAL(write)(journal, other, head[2]);
  if (size) REAL(write)(journal, data, size);
  errno = saved;
}

static void opened(int at, const char *path, int flags) {
  char full[PATH_MAX];
  whole(at, path, full);
  if ((flags & O_CREAT) && access(full, F_OK)) note('C', full, "", 0, "", 0);
  else if (flags & O_TRUNC) note('T', full, "", 0, "", 0);
}

#define OPENING(name, kept, at, path_is)                                         \
  int name(kept const char *path, int flags, ...) {                              \
    va_list more;                                                                \
    va_start(more, flags);                                                       \
    mode_t given = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;     \
    va_end(more);                                                                \
    opened(at, path, flags);                                                     \
    return REAL(name)(path_is path, flags, given);                               \
  }
#define COMMA ,
OPENING(open, , AT_FDCWD, )
OPENING(open64, , AT_FDCWD, )
OPENING(openat, int folder COMMA, folder, folder COMMA)
OPENING(openat64, int folder COMMA, folder, folder COMMA)

static ssize_t wrote(int fd, const void *data, off64_t place, ssize_t size) {
  char full[PATH_MAX];
  whole(fd, NULL, full);
  if (size > 0) note('W', full, "", place, data, size);
  return size;
}

ssize_t write(int fd, const void *data, size_t size) {
  off64_t place = lseek64(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
  return wrote(fd, data, place, REAL(write)(fd, data, size));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
  return wrote(fd, data, place, REAL(pwrite)(fd, data, size, place));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
  return wrote(fd, data, place, REAL(pwrite64)(fd, data, size, place));
}

#define BY_FD(name, letter, more, given, place)   \
  int name(int fd more) {                         \
    char full[PATH_MAX];                          \
    whole(fd, NULL, full);                        \
    note(letter, full, "", place, "", 0);         \
    return REAL(name)(fd given);                  \
  }
BY_FD(fsync, 'S', , , 0)
BY_FD(fdatasync, 'S', , , 0)
BY_FD(ftruncate, 'T', COMMA off_t size, COMMA size, size)
BY_FD(ftruncate64, 'T', COMMA off64_t size, COMMA size, size)

int rename(const char *from, const char *to) {
  char old[PATH_MAX], fresh[PATH_MAX];
  whole(AT_FDCWD, from, old), whole(AT_FDCWD, to, fresh);
  note('R', old, fresh, 0, "", 0);
  return REAL(rename)(from, to);
}
int unlink(const char *path) {
  char full[PATH_MAX];
  whole(AT_FDCWD, path, full);
  note('U', full, "", 0, "", 0);
  return REAL(unlink)(path);
}
