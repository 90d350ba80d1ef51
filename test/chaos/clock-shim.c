/*
 * Lets the wall clock of a program differ from that of the machine: LD_PRELOAD=clock-shim.so CHAOS_CLOCK_OFFSET=file.
 * The file holds the difference in milliseconds, as a 64-bit integer. It may change at any time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset_ms;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_offset(void)
{
    const char *path = getenv("CHAOS_CLOCK_OFFSET");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *memory;
    real_clock_gettime = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    if (file < 0)
        return;
    memory = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED)
        offset_ms = memory;
}

int clock_gettime(clockid_t id, struct timespec *at)
{
    int result;
    if (real_clock_gettime == NULL)
        open_offset();
    result = real_clock_gettime(id, at);
    if (result == 0 && offset_ms != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
    {
        int64_t ns = (int64_t) at->tv_nsec + (*offset_ms % 1000) * 1000000;
        at->tv_sec += *offset_ms / 1000 + (ns < 0 ? -1 : ns / 1000000000);
        at->tv_nsec = ns < 0 ? ns + 1000000000 : ns % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *at, void *zone)
{
    struct timespec now;
    (void) zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}
