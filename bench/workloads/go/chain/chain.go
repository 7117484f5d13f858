// SPDX-License-Identifier: Apache-2.0

// A chain of calls with a leaf that has no frame, in the main goroutine and in others.
package main

import (
	"flag"
	"sync"
	"time"
)

var sink uint64

// No call and no variable on the stack: it neither moves the stack pointer nor saves a frame pointer.
//
//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 100000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func inner(x uint64) uint64 { return leaf(x) + 1 }

//go:noinline
func middle(x uint64) uint64 { return inner(x) + 1 }

//go:noinline
func outer(end time.Time) {
	x := uint64(1)
	for time.Now().Before(end) {
		x = middle(x)
	}
	sink = x
}

// A goroutine of its own: below it is runtime.goexit and not main.
//
//go:noinline
func worker(end time.Time, wait *sync.WaitGroup) {
	outer(end)
	wait.Done()
}

func main() {
	seconds := flag.Float64("seconds", 5, "how long, at most 120")
	goroutines := flag.Int("goroutines", 0, "as many besides main")
	flag.Parse()
	end := time.Now().Add(time.Duration(min(*seconds, 120) * float64(time.Second)))
	var wait sync.WaitGroup
	for i := 0; i < *goroutines; i++ {
		wait.Add(1)
		go worker(end, &wait)
	}
	outer(end)
	wait.Wait()
}
