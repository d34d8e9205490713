/*
 * Preloaded into a process (LD_PRELOAD), sets its wall clock wrong by WRONG_CLOCK seconds. Intervals are not touched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long wrong(void) {
  static long by;
  static int known;
  if (!known) {
    const char *text = getenv("WRONG_CLOCK");
    by = text ? atol(text) : 0;
    known = 1;
  }
  return by;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += wrong();
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  static int (*real)(struct timeval *, void *);
  if (!real) real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
  int failed = real(now, zone);
  if (!failed && now) now->tv_sec += wrong();
  return failed;
}

time_t time(time_t *out) {
  static time_t (*real)(time_t *);
  if (!real) real = (time_t (*)(time_t *))dlsym(RTLD_NEXT, "time");
  time_t now = real(0) + wrong();
  if (out) *out = now;
  return now;
}
