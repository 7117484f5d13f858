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
	"time"
)

var sink uint64

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
	end := time.Now().Add(time.Duration(min(*seconds, 120) * float64(time.Second)))
	x := uint64(1)
	for time.Now().Before(end) {
		x = around(down(x))
	}
	sink = x
}
