// SPDX-License-Identifier: Apache-2.0

// A chain of calls of which some are put into their callers by the compiler; and what the run time
// itself says of addresses of this program, with --frames: the truth to compare with.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// What runtime/pprof uses: a program counter becomes one for each inlined call.
//
//go:linkname expand runtime/pprof.runtime_expandFinalInlineFrame
func expand(stack []uintptr) []uintptr

var sink uint64

const (
	warm = 500 * time.Millisecond
	tick = 10 * time.Millisecond
)

func used() time.Duration {
	var t syscall.Tms
	syscall.Times(&t)
	return time.Duration(t.Utime+t.Stime) * tick
}

func name(s string) {
	const setName = 15
	bytes := append([]byte(s), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, setName, uintptr(unsafe.Pointer(&bytes[0])), 0)
}

func deepest(x uint64) uint64 {
	return x*6364136223846793005 + 1442695040888963407 // line deepest
}

func deep(x uint64) uint64 {
	return deepest(x) ^ 1 // line deep
}

//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 100000; i++ {
		x = deep(x) // line leaf
	}
	return x
}

func between(x uint64) uint64 {
	return leaf(x) + 1 // line between
}

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
		x = between(x) // line outer
	}
	sink = x
}

// For each address of the input: it, then two lines for each function, and an empty one.
func frames() {
	in := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		pc, err := strconv.ParseUint(in.Text(), 0, 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		fmt.Fprintf(out, "%#x\n", pc)
		// Return addresses are what it takes.
		all := runtime.CallersFrames(expand([]uintptr{uintptr(pc) + 1}))
		for more := true; more; {
			var f runtime.Frame
			f, more = all.Next()
			if f.Function != "" {
				fmt.Fprintf(out, "%s\n%s:%d\n", f.Function, f.File, f.Line)
			}
		}
		fmt.Fprintln(out)
	}
}

func main() {
	seconds := flag.Float64("seconds", 5, "how long, at most 120")
	ask := flag.Bool("frames", false, "say what is at the addresses in the input")
	form := flag.Bool("json", false, "print an environment; for the code that this brings")
	flag.Parse()
	if *ask {
		frames()
		return
	}
	if *form {
		json.NewEncoder(os.Stdout).Encode(os.Environ())
		return
	}
	if *seconds > 120 {
		*seconds = 120
	}
	outer(time.Duration(*seconds * float64(time.Second)))
}
