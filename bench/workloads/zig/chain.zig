// SPDX-License-Identifier: Apache-2.0
//! `_start;...;chain.main;chain.outer;chain.middle;chain.inner;chain.leaf` for four seconds. Only system calls
//! are used of the library, which changes from release to release.
const linux = @import("std").os.linux;

const clock_process_cputime_id = 2;
const pr_set_name = 15;

var sink: u64 = 0;

noinline fn leaf(n: u64) u64 {
    var x = n;
    for (0..2_000_000) |_| {
        x = x *% 6364136223846793005 +% 1442695040888963407;
        @as(*volatile u64, &sink).* = x;
    }
    return x;
}

// Something is left to do behind each call, so that none is a jump.
noinline fn inner(n: u64) u64 {
    return leaf(n +% 1) *% 3 +% sink;
}

noinline fn middle(n: u64) u64 {
    return inner(n +% 1) *% 5 +% sink;
}

noinline fn outer(n: u64) u64 {
    return middle(n +% 1) *% 7 +% sink;
}

fn milliseconds() u64 {
    var t = [2]u64{ 0, 0 };
    _ = linux.syscall2(.clock_gettime, clock_process_cputime_id, @intFromPtr(&t));
    return t[0] * 1000 + t[1] / 1_000_000;
}

fn name(text: [*:0]const u8) void {
    _ = linux.syscall2(.prctl, pr_set_name, @intFromPtr(text));
}

pub fn main() void {
    const start = milliseconds();
    name("warm");
    while (milliseconds() < start + 500) sink = outer(sink);
    name("hot");
    while (milliseconds() < start + 4000) sink = outer(sink);
}
