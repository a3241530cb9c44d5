// A disk that forgets: stands before the C library, counts what changes files below one folder, remembers in another folder what was
// made durable, and ends the process before the call of a given number. What was durable is put together again by power.rs.
//
// Below STENO_SHIM_SHADOW: f-INODE is a file as it was when it was last synced, d-INODE the names of a folder as they were then,
// v-INODE.CALL the names of a folder after a call that changed them, n-INODE says that a file or folder was made by this process.
// The first line of a list of names is the number of the call. STENO_SHIM_COUNT is a file of eight bytes that holds the number of calls so far.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static const char *root, *shadow;
static size_t root_length;
static uint64_t kill_at;
static volatile uint64_t *count;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("STENO_SHIM_COUNT"), *at = getenv("STENO_SHIM_AT");
    root = getenv("STENO_SHIM_ROOT");
    shadow = getenv("STENO_SHIM_SHADOW");
    if (!root || !shadow || !file) { root = NULL; return; }
    root_length = strlen(root);
    kill_at = at ? strtoull(at, NULL, 10) : 0;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
    if (fd < 0) _exit(99);
    count = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (count == MAP_FAILED) _exit(99);
    syscall(SYS_close, fd);
}

static int below(const char *path) {
    return root && !strncmp(path, root, root_length) && (path[root_length] == '/' || path[root_length] == 0);
}

static int fd_path(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0;
}

static int fd_below(int fd) {
    char path[PATH_MAX];
    return root && fd_path(fd, path) && below(path);
}

static int at_below(int folder, const char *path) {
    if (!root || !path) return 0;
    return path[0] == '/' ? below(path) : folder != AT_FDCWD && fd_below(folder);
}

// Before every call that changes something.
static void step(void) {
    uint64_t number = ++*count;
    if (kill_at && number >= kill_at) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
}

static void name_of(char *path, const char *kind, uint64_t inode) {
    snprintf(path, PATH_MAX, "%s/%s-%llu", shadow, kind, (unsigned long long)inode);
}

static void put_all(int fd, const char *bytes, size_t length) {
    while (length) {
        long done = syscall(SYS_write, fd, bytes, length);
        if (done <= 0) _exit(98);
        bytes += done;
        length -= (size_t)done;
    }
}

// Remembers what a file or folder is now.
static void remember(int fd, const char *kind) {
    struct stat stat;
    char from[64], to[PATH_MAX], temporary[PATH_MAX + 8];
    if (fstat(fd, &stat)) return;
    int is_folder = S_ISDIR(stat.st_mode);
    if (!is_folder && !S_ISREG(stat.st_mode)) return;
    name_of(to, is_folder ? kind : "f", stat.st_ino);
    if (*kind == 'v') snprintf(to + strlen(to), 32, ".%llu", (unsigned long long)*count);
    snprintf(temporary, sizeof temporary, "%s.part", to);
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    int in = (int)syscall(SYS_openat, AT_FDCWD, from, O_RDONLY | O_CLOEXEC);
    int out = (int)syscall(SYS_openat, AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (in < 0 || out < 0) _exit(97);
    static char bytes[1 << 16];
    if (is_folder) {
        long length;
        char first[32];
        put_all(out, first, (size_t)snprintf(first, sizeof first, "%llu\n", (unsigned long long)*count));
        while ((length = syscall(SYS_getdents64, in, bytes, sizeof bytes)) > 0) {
            for (long at = 0; at < length;) {
                struct dirent64 *entry = (struct dirent64 *)(bytes + at);
                at += entry->d_reclen;
                if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
                char line[400];
                const char *kind = entry->d_type == DT_DIR ? "folder" : "file";
                int size = snprintf(line, sizeof line, "%llu %s %s\n", (unsigned long long)entry->d_ino, kind, entry->d_name);
                put_all(out, line, (size_t)size);
            }
        }
    } else {
        long length;
        while ((length = syscall(SYS_read, in, bytes, sizeof bytes)) > 0) put_all(out, bytes, (size_t)length);
    }
    syscall(SYS_close, in);
    syscall(SYS_close, out);
    syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, to, 0);
}

// A new file or folder: what had its number before has nothing to do with it.
static void made(int fd) {
    struct stat stat;
    char path[PATH_MAX];
    if (fstat(fd, &stat)) return;
    name_of(path, "f", stat.st_ino);
    syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    name_of(path, "d", stat.st_ino);
    syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    name_of(path, "n", stat.st_ino);
    syscall(SYS_close, (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

// After a name was made, changed or removed.
static void renamed(int folder, const char *path) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof parent) return;
    memcpy(parent, path, length);
    parent[length] = 0;
    int fd = (int)syscall(SYS_openat, folder, slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    if (fd_below(fd)) remember(fd, "v");
    syscall(SYS_close, fd);
}

#define LOCKED(ours, call) \
    pthread_mutex_lock(&lock); \
    if (ours) step(); \
    __typeof__(call) result = call; \
    int error = errno

#define DONE \
    errno = error; \
    pthread_mutex_unlock(&lock); \
    return result

static int open_any(int folder, const char *path, int flags, mode_t mode) {
    int changes = (flags & (O_CREAT | O_TRUNC)) && at_below(folder, path);
    if (!changes) return (int)syscall(SYS_openat, folder, path, flags, mode);
    struct stat stat;
    int was_there = !fstatat(folder, path, &stat, AT_SYMLINK_NOFOLLOW);
    LOCKED(1, (long)syscall(SYS_openat, folder, path, flags, mode));
    if (result >= 0 && !was_there) {
        made((int)result);
        renamed(folder, path);
    }
    errno = error;
    pthread_mutex_unlock(&lock);
    return (int)result;
}

#define MODE \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }

int open(const char *path, int flags, ...) { MODE return open_any(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_any(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE return open_any(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE return open_any(folder, path, flags | O_LARGEFILE, mode); }
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

ssize_t write(int fd, const void *bytes, size_t length) {
    if (!fd_below(fd)) return syscall(SYS_write, fd, bytes, length);
    LOCKED(1, (ssize_t)syscall(SYS_write, fd, bytes, length));
    DONE;
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
    if (!fd_below(fd)) return syscall(SYS_writev, fd, parts, number);
    LOCKED(1, (ssize_t)syscall(SYS_writev, fd, parts, number));
    DONE;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    LOCKED(fd_below(fd), (ssize_t)syscall(SYS_pwrite64, fd, bytes, length, at));
    DONE;
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return pwrite64(fd, bytes, length, at); }

int ftruncate64(int fd, off64_t length) {
    LOCKED(fd_below(fd), (int)syscall(SYS_ftruncate, fd, length));
    DONE;
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int fsync(int fd) {
    int ours = fd_below(fd);
    LOCKED(ours, (int)syscall(SYS_fsync, fd));
    if (ours && !result) remember(fd, "d");
    DONE;
}

int fdatasync(int fd) {
    int ours = fd_below(fd);
    LOCKED(ours, (int)syscall(SYS_fdatasync, fd));
    if (ours && !result) remember(fd, "d");
    DONE;
}

int rename(const char *from, const char *to) {
    LOCKED(at_below(AT_FDCWD, to), (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
    if (!result) renamed(AT_FDCWD, to);
    DONE;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    LOCKED(at_below(to_folder, to), (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
    if (!result) renamed(to_folder, to);
    DONE;
}

int link(const char *from, const char *to) {
    LOCKED(at_below(AT_FDCWD, to), (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
    if (!result) renamed(AT_FDCWD, to);
    DONE;
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    LOCKED(at_below(to_folder, to), (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
    if (!result) renamed(to_folder, to);
    DONE;
}

int unlink(const char *path) {
    LOCKED(at_below(AT_FDCWD, path), (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0));
    if (!result) renamed(AT_FDCWD, path);
    DONE;
}

int unlinkat(int folder, const char *path, int flags) {
    LOCKED(at_below(folder, path), (int)syscall(SYS_unlinkat, folder, path, flags));
    if (!result) renamed(folder, path);
    DONE;
}

int rmdir(const char *path) {
    LOCKED(at_below(AT_FDCWD, path), (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
    if (!result) renamed(AT_FDCWD, path);
    DONE;
}

int mkdir(const char *path, mode_t mode) {
    LOCKED(at_below(AT_FDCWD, path), (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode));
    if (!result && at_below(AT_FDCWD, path)) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        made(fd);
        syscall(SYS_close, fd);
        renamed(AT_FDCWD, path);
    }
    DONE;
}
