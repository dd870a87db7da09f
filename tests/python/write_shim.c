/* Preloaded into a process that writes files: stops it, or makes a call fail, at the n-th call below a folder.
 *
 * shim_arm(folder, n, kill): calls are counted from now on. Call n is the last thing the process does (a write leaves
 * half of its bytes), or it fails as a full or broken disk makes it fail. n = 0 only counts.
 * shim_keep(to): before each call the folder is copied to `to`/N, as a process that dies there would leave it.
 * Sleeps and syncs return at once: nobody waits, and no power is lost here.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[PATH_MAX];
static char last[64];
static long count, target;
static int armed, kills;
static char kept[PATH_MAX];
extern char **environ;

void shim_arm(const char *path, long at, int kill_it) {
  strncpy(folder, path, sizeof folder - 1);
  count = 0, target = at, kills = kill_it, last[0] = 0, armed = 1;
}
void shim_keep(const char *path) { strncpy(kept, path, sizeof kept - 1); }
void shim_disarm(void) { armed = 0; }
long shim_count(void) { return count; }
const char *shim_last(void) { return last; } /* the call that failed; "" while none did */

#define REAL(type, name) static type (*real)() = 0; if (!real) real = (type(*)())dlsym(RTLD_NEXT, name)

static int below(int at, const char *path) {
  char held[PATH_MAX];
  if (!armed || (path && path[0] != '/' && at == AT_FDCWD)) return 0;
  if (!path || path[0] != '/') {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t size = readlink(link, held, sizeof held - 1);
    if (size < 0) return 0;
    held[size] = 0, path = held;
  }
  return strncmp(path, folder, strlen(folder)) == 0;
}

static void keep_folder(void) {
  char to[PATH_MAX + 32];
  snprintf(to, sizeof to, "%s/%ld", kept, count);
  char *words[] = {"cp", "-a", folder, to, NULL};
  pid_t pid;
  int status, before = errno;
  armed = 0;
  if (posix_spawnp(&pid, "cp", NULL, NULL, words, environ) == 0) waitpid(pid, &status, 0);
  armed = 1, errno = before;
}

/* Whether this call is to fail, with errno set. */
static int hit(const char *name, int error) {
  if (kept[0]) ++count, keep_folder(), --count;
  if (++count != target) return 0;
  if (kills) kill(getpid(), SIGKILL), pause();
  strncpy(last, name, sizeof last - 1);
  errno = error;
  return 1;
}
#define STOP(at, path, name, error, failed) if (below(at, path) && hit(name, error)) return failed

#define OPEN(name)                                                                        \
  int name(const char *path, int flags, ...) {                                            \
    REAL(int, #name);                                                                     \
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest);      \
    STOP(AT_FDCWD, path, "open", flags & O_CREAT ? ENOSPC : EIO, -1);                     \
    return real(path, flags, mode);                                                       \
  }
#define OPENAT(name)                                                                      \
  int name(int at, const char *path, int flags, ...) {                                    \
    REAL(int, #name);                                                                     \
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest);      \
    STOP(at, path, "openat", flags & O_CREAT ? ENOSPC : EIO, -1);                         \
    return real(at, path, flags, mode);                                                   \
  }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

#define FOPEN(name)                                                                       \
  FILE *name(const char *path, const char *mode) {                                        \
    REAL(FILE *, #name);                                                                  \
    STOP(AT_FDCWD, path, "fopen", ENOSPC, NULL);                                          \
    return real(path, mode);                                                              \
  }
FOPEN(fopen) FOPEN(fopen64)

ssize_t write(int file, const void *data, size_t size) {
  REAL(ssize_t, "write");
  if (below(file, NULL)) {
    if (count + 1 == target) real(file, data, size / 2);
    if (hit("write", ENOSPC)) return -1;
  }
  return real(file, data, size);
}
#define PWRITE(name)                                                                      \
  ssize_t name(int file, const void *data, size_t size, off_t at) {                       \
    REAL(ssize_t, #name);                                                                 \
    STOP(file, NULL, "pwrite", ENOSPC, -1);                                               \
    return real(file, data, size, at);                                                    \
  }
PWRITE(pwrite) PWRITE(pwrite64)
#define PWRITEV(name)                                                                     \
  ssize_t name(int file, const struct iovec *parts, int n, off_t at) {                    \
    REAL(ssize_t, #name);                                                                 \
    STOP(file, NULL, "pwritev", ENOSPC, -1);                                              \
    return real(file, parts, n, at);                                                      \
  }
PWRITEV(pwritev) PWRITEV(pwritev64)
#define COPY(name, to, ...)                                                               \
  REAL(ssize_t, #name);                                                                   \
  STOP(to, NULL, #name, ENOSPC, -1);                                                      \
  return real(__VA_ARGS__);
ssize_t copy_file_range(int from, off_t *at, int to, off_t *there, size_t size, unsigned flags) {
  COPY(copy_file_range, to, from, at, to, there, size, flags)
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) { COPY(sendfile, to, to, from, at, size) }
ssize_t sendfile64(int to, int from, off_t *at, size_t size) { COPY(sendfile64, to, to, from, at, size) }
int ioctl(int file, unsigned long what, ...) {
  REAL(int, "ioctl");
  va_list rest; va_start(rest, what); void *more = va_arg(rest, void *); va_end(rest);
  if (what == 0x40049409ul) STOP(file, NULL, "ioctl", EIO, -1); /* FICLONE */
  return real(file, what, more);
}
ssize_t writev(int file, const struct iovec *parts, int n) {
  REAL(ssize_t, "writev");
  STOP(file, NULL, "writev", ENOSPC, -1);
  return real(file, parts, n);
}
int fsync(int file) { STOP(file, NULL, "fsync", EIO, -1); return 0; }
int fdatasync(int file) { STOP(file, NULL, "fdatasync", EIO, -1); return 0; }
int close(int file) {
  REAL(int, "close");
  if (below(file, NULL) && hit("close", EIO)) { real(file); errno = EIO; return -1; }
  return real(file);
}
int flock(int file, int how) {
  REAL(int, "flock");
  STOP(file, NULL, "flock", EIO, -1);
  return real(file, how);
}
#define TRUNCATE(name)                                                                    \
  int name(int file, off_t size) {                                                        \
    REAL(int, #name);                                                                     \
    STOP(file, NULL, "ftruncate", ENOSPC, -1);                                            \
    return real(file, size);                                                              \
  }
TRUNCATE(ftruncate) TRUNCATE(ftruncate64)

#define TWO(name, error)                                                                  \
  int name(const char *from, const char *to) {                                            \
    REAL(int, #name);                                                                     \
    STOP(AT_FDCWD, to, #name, error, -1);                                                 \
    return real(from, to);                                                                \
  }
TWO(rename, EIO) TWO(link, ENOSPC) TWO(symlink, ENOSPC)
int renameat(int a, const char *from, int b, const char *to) {
  REAL(int, "renameat");
  STOP(b, to, "renameat", EIO, -1);
  return real(a, from, b, to);
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  REAL(int, "renameat2");
  STOP(b, to, "renameat2", EIO, -1);
  return real(a, from, b, to, flags);
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
  REAL(int, "linkat");
  STOP(b, to, "linkat", ENOSPC, -1);
  return real(a, from, b, to, flags);
}
#define ONE(name, error)                                                                  \
  int name(const char *path) {                                                            \
    REAL(int, #name);                                                                     \
    STOP(AT_FDCWD, path, #name, error, -1);                                               \
    return real(path);                                                                    \
  }
ONE(unlink, EIO) ONE(rmdir, EIO) ONE(remove, EIO)
int unlinkat(int at, const char *path, int flags) {
  REAL(int, "unlinkat");
  STOP(at, path, "unlinkat", EIO, -1);
  return real(at, path, flags);
}
int mkdir(const char *path, mode_t mode) {
  REAL(int, "mkdir");
  STOP(AT_FDCWD, path, "mkdir", ENOSPC, -1);
  return real(path, mode);
}
int mkdirat(int at, const char *path, mode_t mode) {
  REAL(int, "mkdirat");
  STOP(at, path, "mkdirat", ENOSPC, -1);
  return real(at, path, mode);
}
char *mkdtemp(char *path) {
  REAL(char *, "mkdtemp");
  STOP(AT_FDCWD, path, "mkdtemp", ENOSPC, NULL);
  return real(path);
}
int mkstemp(char *path) {
  REAL(int, "mkstemp");
  STOP(AT_FDCWD, path, "mkstemp", ENOSPC, -1);
  return real(path);
}
DIR *opendir(const char *path) {
  REAL(DIR *, "opendir");
  STOP(AT_FDCWD, path, "opendir", EIO, NULL);
  return real(path);
}
int chmod(const char *path, mode_t mode) {
  REAL(int, "chmod");
  STOP(AT_FDCWD, path, "chmod", EIO, -1);
  return real(path, mode);
}
int fchmodat(int at, const char *path, mode_t mode, int flags) {
  REAL(int, "fchmodat");
  STOP(at, path, "fchmodat", EIO, -1);
  return real(at, path, mode, flags);
}

int nanosleep(const struct timespec *time, struct timespec *left) { (void)time, (void)left; return 0; }
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
  (void)clock, (void)flags, (void)time, (void)left;
  return 0;
}
