// Package cstack tells how much stack C code has where Go calls it: that of a
// thread made with the defaults of the C library, in bytes.
//
//	limit := cstack.Size() / bytesPerLevel
//
// It is eight megabytes on most Linux systems, half a megabyte on macOS, and 128
// kilobytes under musl, Alpine's C library. C code that uses it up ends the
// process with a signal that Go can't recover from.
package cstack

/*
#include <pthread.h>

static size_t default_stack(void) {
	pthread_attr_t attr;
	size_t size = 0;
	if (pthread_attr_init(&attr) != 0) {
		return 0;
	}
	if (pthread_attr_getstacksize(&attr, &size) != 0) {
		size = 0;
	}
	pthread_attr_destroy(&attr);
	return size;
}
*/
import "C"

// Size returns the bytes of stack of a thread, 0 if the C library doesn't say.
func Size() int { return int(C.default_stack()) }
