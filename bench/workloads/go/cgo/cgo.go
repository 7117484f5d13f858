// SPDX-License-Identifier: Apache-2.0

// From Go to C, and from there back to Go: the leaf is Go's on the goroutine's stack, the frames of
// C in the middle are on that of the thread.
package main

/*
#include <stdint.h>
uint64_t c_back(uint64_t x);
uint64_t c_burn(uint64_t x);
*/
import "C"

import (
	"flag"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

var sink uint64

const warm = 500 * time.Millisecond

// CPU time of the process, in the kernel's ticks: others may keep it waiting, and the profiler too.
func used() time.Duration {
	const tick = 10 * time.Millisecond
	var t syscall.Tms
	syscall.Times(&t)
	return time.Duration(t.Utime+t.Stime) * tick
}

// The thread's own name; who calls stays on its thread.
func name(s string) {
	const setName = 15
	bytes := append([]byte(s), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, setName, uintptr(unsafe.Pointer(&bytes[0])), 0)
}

//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 1000000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//export goBack
func goBack(x C.uint64_t) C.uint64_t { return C.uint64_t(leaf(uint64(x))) }

//go:noinline
func down(x uint64) uint64 { return uint64(C.c_burn(C.uint64_t(x))) + 1 }

//go:noinline
func around(x uint64) uint64 { return uint64(C.c_back(C.uint64_t(x))) + 1 }

func main() {
	seconds := flag.Float64("seconds", 5, "how long, at most 120")
	flag.Parse()
	if *seconds > 120 {
		*seconds = 120
	}
	end := time.Duration(*seconds * float64(time.Second))
	runtime.LockOSThread()
	name("warm")
	hot := used() + warm
	x := uint64(1)
	for now := used(); now < end; now = used() {
		if now > hot {
			name("hot")
			hot = end
		}
		x = around(down(x))
	}
	sink = x
}
