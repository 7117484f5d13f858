// SPDX-License-Identifier: Apache-2.0

// A chain of calls with a leaf that has no frame, in the main goroutine and in others.
package main

import (
	"flag"
	"runtime"
	"sync"
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

// No call and no variable on the stack: it neither moves the stack pointer nor saves a frame pointer.
//
//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 100000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

var depth int

//go:noinline
func down(levels int, x uint64) uint64 {
	if levels > 1 {
		return down(levels-1, x) + 1
	}
	return leaf(x) + 1
}

//go:noinline
func inner(x uint64) uint64 {
	if depth > 0 {
		return down(depth, x) + 1
	}
	return leaf(x) + 1
}

//go:noinline
func middle(x uint64) uint64 { return inner(x) + 1 }

//go:noinline
func outer(end time.Duration) {
	runtime.LockOSThread()
	name("warm")
	hot := used() + warm
	x := uint64(1)
	for now := used(); now < end; now = used() {
		if now > hot {
			name("hot")
			hot = end
		}
		x = middle(x)
	}
	sink = x
}

// A goroutine of its own: below it is runtime.goexit and not main.
//
//go:noinline
func worker(end time.Duration, wait *sync.WaitGroup) {
	outer(end)
	wait.Done()
}

func main() {
	seconds := flag.Float64("seconds", 5, "how long, at most 120")
	flag.IntVar(&depth, "depth", 0, "calls of main.down between main.inner and main.leaf")
	goroutines := flag.Int("goroutines", 0, "as many besides main")
	flag.Parse()
	if *seconds > 120 {
		*seconds = 120
	}
	end := time.Duration(*seconds * float64(time.Second))
	var wait sync.WaitGroup
	for i := 0; i < *goroutines; i++ {
		wait.Add(1)
		go worker(end, &wait)
	}
	outer(end)
	wait.Wait()
}
