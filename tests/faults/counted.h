// What the driver libraries share: calls are counted, and the one that shall fail is.
#pragma once
#include <pthread.h>
#include <string.h>

#include "tests/faults/faults.h"

namespace {

Faults faults;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool fails(const char* name) {
  pthread_mutex_lock(&lock);
  const bool now = ++faults.calls == faults.fail_at;
  if (now) {
    ++faults.failed;
    strncpy(faults.name, name, sizeof faults.name - 1);
  }
  pthread_mutex_unlock(&lock);
  return now;
}
void count(long n) { __atomic_fetch_add(&faults.live, n, __ATOMIC_RELAXED); }

}  // namespace
