/* Hold a program before it opens one path, until its parent releases it.
 *
 * Preloaded (ld.so(8), LD_PRELOAD) into a fio that is started before its predecessor has ended. DRIVELAB_BARRIER is
 * `DESCRIPTOR PATH`: a socket to the parent, and the path of the drive as in the job. The first thread that opens the
 * path writes one byte, "here", and waits for one byte, the release; other threads that open the path wait for the
 * first. If the parent ends or closes its end, the program ends at once, so it never opens the drive without a release.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef int open_function(const char *path, int flags, ...);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool released;

static void pass(int descriptor)
{
    char byte = 'h';
    ssize_t count;
    do
        count = write(descriptor, &byte, 1);
    while (count < 0 && errno == EINTR);
    do
        count = read(descriptor, &byte, 1);
    while (count < 0 && errno == EINTR);
    if (count != 1)
        _exit(1);
    close(descriptor);
    released = true;
}

static void wait_before(const char *path)
{
    const char *barrier = getenv("DRIVELAB_BARRIER");
    char *held;
    if (barrier == NULL)
        return;
    long descriptor = strtol(barrier, &held, 10);
    if (*held != ' ' || strcmp(held + 1, path) != 0)
        return;
    pthread_mutex_lock(&lock);
    if (!released)
        pass((int)descriptor);
    pthread_mutex_unlock(&lock);
}

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    wait_before(path);
    open_function *next;
    *(void **)&next = dlsym(RTLD_NEXT, "open");
    return next(path, flags | O_LARGEFILE, mode); /* as open64 does; it does not matter to a program that calls open */
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
