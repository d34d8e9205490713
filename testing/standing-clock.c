/*
 * Preloaded into a process (LD_PRELOAD), makes its monotonic clock stand still for as long as a file says, as the
 * monotonic clock of Linux does while the machine is suspended. The wall clock and /proc/uptime go on, as they do then.
 * STANDING_CLOCK names the file: nanoseconds to take away, as a 64-bit integer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *stood_ns;
static int (*system_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_file(void) {
  system_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("STANDING_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) stood_ns = mapped;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  if (!system_clock_gettime) open_file(); /* another library's constructor asked first */
  int failed = system_clock_gettime(clock, now);
  int is_monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW;
  if (failed || !stood_ns || !is_monotonic) return failed;
  int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec - *stood_ns;
  now->tv_sec = ns / 1000000000;
  now->tv_nsec = ns % 1000000000;
  return 0;
}
