//go:build cgo

package demo

/*
#cgo LDFLAGS: -pthread
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_ready = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both_hold_one;

static void *a_then_b(void *unused) {
	pthread_setname_np(pthread_self(), "a-then-b");
	pthread_mutex_lock(&lock_a);
	pthread_barrier_wait(&both_hold_one);
	pthread_mutex_lock(&lock_b);
	return unused;
}

static void *b_then_a(void *unused) {
	pthread_setname_np(pthread_self(), "b-then-a");
	pthread_mutex_lock(&lock_b);
	pthread_barrier_wait(&both_hold_one);
	pthread_mutex_lock(&lock_a);
	return unused;
}

static void *idle(void *unused) {
	pthread_setname_np(pthread_self(), "idle-worker");
	pthread_mutex_lock(&work_lock);
	for (;;) pthread_cond_wait(&work_ready, &work_lock);
	return unused;
}

static int start_deadlock(int idlers) {
	pthread_attr_t small;
	pthread_t t;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	pthread_barrier_init(&both_hold_one, NULL, 2);
	int failed = pthread_create(&t, &small, a_then_b, NULL) | pthread_create(&t, &small, b_then_a, NULL);
	for (int i = 0; i < idlers; i++) failed |= pthread_create(&t, &small, idle, NULL);
	usleep(200000);
	return failed;
}
*/
import "C"

import "errors"

// deadlock really is one: two POSIX threads, two mutexes, opposite order.
func deadlock(ready func()) error {
	if C.start_deadlock(129) != 0 {
		return errors.New("the threads could not be started")
	}
	ready()
	return nil
}
